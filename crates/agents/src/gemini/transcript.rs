//! Gemini CLI's chat file: prompts, tool results, and what it tells its person (a cancelled request, an API error). A
//! record of the model is written again, with its old time, when its tools are done.

use serde_json::{Value, json};
use watchkeeper_core::signal::{Activity, Facts, Prompt, PromptOrigin, SignalBody, Thread};

use super::payload::call;
use crate::{
    adapter::{Parsed, TranscriptReader},
    function_parts::{results, words},
    json::{parse_object, text},
    line_scanner::holds_any,
    observe::{Context, label, wall},
};

/// How far into a line its type stands, behind an id and a time.
const TYPE_WITHIN: usize = 256;

/// Beginnings and marks of records that are parsed. A `$set` repeats what was said, up to the whole history.
const HEADER: &[u8] = b"{\"sessionId\":";
const RECORD: &[u8] = b"{\"id\":";
const WANTED: [&[u8]; 4] =
    [b"\"type\":\"user\"", b"\"type\":\"gemini\"", b"\"type\":\"info\"", b"\"type\":\"error\""];

#[derive(Debug)]
pub(super) struct Reader {
    session: String,
}

impl Reader {
    pub(super) fn new(session: &str) -> Self {
        Self { session: session.to_owned() }
    }

    fn context(&self, record: &Value, time: &str) -> Option<Context> {
        Some(Context {
            session: Some(self.session.clone()),
            turn: None,
            thread: Thread::Main,
            at: Some(text(record, time).and_then(wall)?),
            facts: Facts::default(),
        })
    }
}

impl TranscriptReader for Reader {
    fn wants(&self, line: &[u8]) -> bool {
        let head = line.get(..TYPE_WITHIN).unwrap_or(line);
        head.starts_with(HEADER) || (head.starts_with(RECORD) && holds_any(head, &WANTED))
    }

    fn line(&mut self, line: &[u8], out: &mut Parsed) {
        let Ok(record) = parse_object(line) else { return };
        if text(&record, "sessionId").is_some() {
            // Written when a process takes the session up: whatever ran before runs no more.
            if let Some(context) = self.context(&record, "startTime") {
                context.push(out, SignalBody::IdleNoticed);
            }
            return;
        }
        let (Some(kind), Some(context)) = (text(&record, "type"), self.context(&record, "timestamp")) else {
            return;
        };
        match kind {
            "user" => user(&record, &context, out),
            "gemini" => context.push(out, SignalBody::Activity { what: Activity::Progress }),
            "info" if text(&record, "content") == Some("Request cancelled.") => {
                context.push(out, SignalBody::Aborted { tools_to_work: false });
            }
            "error" => {
                if let Some(error) = text(&record, "content").filter(|error| error.starts_with("[API Error"))
                {
                    context.push(out, SignalBody::Failed { message: Some(label(error)), fatal: false });
                }
            }
            _ => {}
        }
    }

    fn save(&self) -> Value {
        json!({})
    }
}

/// What goes to the model: a prompt, or the results of its calls. With all of them cancelled nothing goes.
fn user(record: &Value, context: &Context, out: &mut Parsed) {
    let (mut count, mut cancelled) = (0_usize, 0_usize);
    for result in results(record, "content") {
        count += 1;
        cancelled += usize::from(result.cancelled);
        let name = label(result.name);
        context.push(out, SignalBody::ToolFinished { id: call(&name), name, failed: result.cancelled });
    }
    if count > 0 {
        if cancelled == count {
            context.push(out, SignalBody::Aborted { tools_to_work: false });
        }
        return;
    }
    // What Gemini puts there itself begins with a tag: the context, written anew after a cancelled request, or a summary.
    // A person's prompt that does has its hook.
    if let Some(text) = words(record, "content").filter(|text| !text.trim_start().starts_with('<')) {
        let prompt = Prompt { text, origin: PromptOrigin::Person };
        context.push(out, SignalBody::Started { prompt: Some(prompt) });
    }
}

#[cfg(test)]
mod tests;
