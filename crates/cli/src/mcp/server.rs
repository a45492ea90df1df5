//! The protocol side: one session over standard input and output, each call on a thread of its own, all of it bounded.

use std::sync::Arc;

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    serve_server,
    service::{RequestContext, ServerInitializeError},
    transport::{async_rw::AsyncRwTransport, stdio_pipes},
};
use tokio::sync::Semaphore;

use super::{
    arguments::shown,
    parent::Parent,
    room::WithRoom,
    signals::told_to_end,
    tools::{Answer, Description, Effect, Toolset},
};
use crate::complaint::Complaint;

/// Longest line that a client may send; a longer one is passed over and the session goes on.
const LINE_BYTES_MAX: usize = 256 * 1024;
/// Calls that ask the daemon at once; further ones wait.
const CALLS_MAX: usize = 4;
/// Calls at work or waiting; a further one is told to try again.
const WAITING_MAX: usize = 64;

#[derive(Debug, Clone)]
struct Server {
    tools: Arc<dyn Toolset>,
    at_work: Arc<Semaphore>,
    admitted: Arc<Semaphore>,
}

/// Serves one client until it closes standard input, its process is gone or a signal ends the server. Blocks.
pub(crate) fn serve(tools: Arc<dyn Toolset>, parent: Parent) -> Result<(), Complaint> {
    let what = "cannot serve MCP on standard input and output";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(CALLS_MAX + 2) // and standard input and output where they are no pipes
        .build()
        .map_err(|error| Complaint::new(what).caused_by(&error))?;
    let server = Server {
        tools: Arc::clone(&tools),
        at_work: Arc::new(Semaphore::new(CALLS_MAX)),
        admitted: Arc::new(Semaphore::new(WAITING_MAX)),
    };
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = session(server) => ended,
            () = parent.gone() => Ok(()),
            () = told_to_end() => Ok(()),
        }
    });
    // A read of standard input that never ends must not keep a server whose parent has gone.
    runtime.shutdown_background();
    tools.leave();
    ended.map_err(|error| {
        Complaint::new(what)
            .caused_by(&*error)
            .todo("Start it from an MCP client; docs/mcp.md shows how it is registered.")
    })
}

async fn session(server: Server) -> Result<(), Box<dyn std::error::Error>> {
    let (input, output) = stdio_pipes();
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(LINE_BYTES_MAX);
    match serve_server(server, WithRoom::new(transport)).await {
        Ok(running) => {
            running.waiting().await?;
            Ok(())
        }
        // It left before it said anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("watchkeeper", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.tools.instructions())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.descriptions().iter().map(tool_of).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ok(_admitted) = Arc::clone(&self.admitted).try_acquire_owned() else {
            let busy = Complaint::new(format!("cannot call {}", shown(&request.name)))
                .because(format!("{WAITING_MAX} calls wait already"))
                .todo("Try again in a moment.");
            return Ok(failed(&busy).into());
        };
        let stopping = |_| ErrorData::internal_error("the server is stopping", None);
        let _at_work = Arc::clone(&self.at_work).acquire_owned().await.map_err(stopping)?;
        let tools = Arc::clone(&self.tools);
        let name = request.name.clone();
        let arguments = request.arguments.unwrap_or_default();
        let called =
            tokio::task::spawn_blocking(move || tools.call(&name, arguments)).await.map_err(|_| {
                ErrorData::internal_error("the call broke off; nothing more is known of it", None)
            })?;
        match called {
            Some(Ok(Answer { value, text })) => {
                let mut result = CallToolResult::structured(value);
                result.content = vec![ContentBlock::text(text)];
                Ok(result.into())
            }
            Some(Err(complaint)) => Ok(failed(&complaint).into()),
            None => {
                let message = format!("there is no tool '{}' here", shown(&request.name));
                Err(ErrorData::invalid_params(message, None))
            }
        }
    }
}

fn failed(complaint: &Complaint) -> CallToolResult {
    let mut result = CallToolResult::structured_error(complaint.value());
    result.content = vec![ContentBlock::text(complaint.plain())];
    result
}

fn tool_of(description: &Description) -> Tool {
    let hints = ToolAnnotations::new()
        .read_only(description.effect == Effect::Reads)
        .destructive(description.effect == Effect::Removes)
        .open_world(false);
    Tool::new(description.name, description.what, description.schema()).with_annotations(hints)
}
