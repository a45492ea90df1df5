//! Gemini CLI's chat file: prompts, tool results, and what it tells its person (a cancelled request, an API error). A
//! record of the model is written again, with its old time, when its tools are done. A command that is slow to die has its
//! result written when the next turn runs already.

use serde_json::{Value, json};
use watchkeeper_core::{
    Wall,
    signal::{Activity, Facts, Prompt, PromptOrigin, SignalBody, Thread},
};

use super::payload::call;
use crate::{
    adapter::{Parsed, TranscriptReader},
    content_parts::{ToolResult, results, words},
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

/// Digits of a time in milliseconds, from 2001 to 2286.
const MS_DIGITS: usize = 13;

#[derive(Debug)]
pub(super) struct Reader {
    session: String,
    /// When the latest prompt was written.
    prompted: Option<Wall>,
}

impl Reader {
    pub(super) fn new(session: &str, saved: Option<&Value>) -> Self {
        let prompted = saved.and_then(|saved| saved.get("prompted")).and_then(Value::as_i64).map(Wall);
        Self { session: session.to_owned(), prompted }
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

    /// What goes to the model: a prompt, or the results of its calls. With all of them cancelled nothing goes.
    fn user(&mut self, record: &Value, context: &Context, out: &mut Parsed) {
        let results: Vec<_> = results(record, "content").collect();
        if let Some(last) = results.last() {
            if results.iter().all(|result| result.cancelled) {
                self.cancelled(last, context, out);
            }
            for result in results {
                let name = label(result.name);
                let failed = result.cancelled;
                context.push(out, SignalBody::ToolFinished { id: call(&name), name, failed });
            }
            return;
        }
        // What Gemini puts there itself begins with a tag: the context, written anew after a cancelled request, or a summary.
        // A person's prompt that does has its hook.
        if let Some(text) = words(record, "content").filter(|text| !text.trim_start().starts_with('<')) {
            self.prompted = context.at;
            let prompt = Prompt { text, origin: PromptOrigin::Person };
            context.push(out, SignalBody::Started { prompt: Some(prompt) });
        }
    }

    /// Ends the turn that the call began in. Told before the call is over: as long as it runs it is known which turn that is.
    fn cancelled(&self, result: &ToolResult<'_>, context: &Context, out: &mut Parsed) {
        let call = match (result.call.and_then(made_at), self.prompted) {
            (Some(made), Some(prompted)) if prompted > made => return,
            (Some(_), Some(_)) => None,
            (None, _) | (_, None) => Some(call(&label(result.name))),
        };
        context.push(out, SignalBody::Aborted { tools_to_work: false, call });
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
            "user" => self.user(&record, &context, out),
            "gemini" => context.push(out, SignalBody::Activity { what: Activity::Progress }),
            "info" if text(&record, "content") == Some("Request cancelled.") => {
                context.push(out, SignalBody::Aborted { tools_to_work: false, call: None });
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
        json!({ "prompted": self.prompted.map(|at| at.0) })
    }
}

/// When a call was made, by its id where Gemini made that up: it ends with a time in milliseconds and a number.
fn made_at(call: &str) -> Option<Wall> {
    let mut parts = call.rsplit('_').skip(1);
    parts.next().filter(|ms| ms.len() == MS_DIGITS)?.parse().ok().map(Wall)
}

#[cfg(test)]
mod tests;
