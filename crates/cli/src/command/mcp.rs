//! `mcp`: an MCP server on standard input and output, for the agent that starts it.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use watchkeeper_api::mcp::check_provider;

use crate::{
    app::{App, Outcome},
    complaint::Complaint,
    exit,
    mcp::{Control, Parent, Provider, serve},
};

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Serve a program that hosts a model: it tells of its own sessions, under this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["capability", "allow_write"])]
    provider: Option<String>,
    /// Offer the four tools that change something, too
    #[arg(long)]
    allow_write: bool,
    /// The capability that `install --mcp` wrote
    #[arg(long, value_name = "FILE")]
    capability: Option<PathBuf>,
}

pub(super) fn run(app: &App, args: McpArgs) -> Outcome {
    let parent = Parent::find();
    let api = app.instance.api();
    match args.provider {
        Some(name) => {
            check_provider(&name).map_err(|error| {
                Complaint::new("cannot serve this provider").caused_by(&error).exit(exit::USAGE)
            })?;
            serve(Arc::new(Provider::new(api, name, parent.pid())), parent)?;
        }
        None => {
            let McpArgs { capability, allow_write, provider: _ } = args;
            serve(Arc::new(Control { api, capability, allow_write }), parent)?;
        }
    }
    Ok(exit::SUCCESS)
}
