//! Qwen Code's chat file: the notices by which the end of background work begins a turn (no hook tells that), and
//! calls that the person cancelled.

use serde_json::{Value, json};
use watchkeeper_core::signal::{Activity, Facts, Prompt, PromptOrigin, SignalBody, Thread};

use crate::{
    adapter::{Parsed, TranscriptReader},
    content_parts::{results, words},
    json::{items, parse_object, text},
    line_scanner::holds_any,
    observe::{Context, id, label, wall},
    open_calls::OpenCalls,
    task_notification::notices,
};

/// How far into a line its type stands, behind three ids and a time.
const TYPE_WITHIN: usize = 512;
const WANTED: [&[u8]; 3] = [b"\"type\":\"user\"", b"\"type\":\"assistant\"", b"\"type\":\"tool_result\""];

#[derive(Debug)]
pub(super) struct Reader {
    session: String,
    calls: OpenCalls,
    /// Those that were made before the latest turn began.
    earlier: OpenCalls,
}

impl Reader {
    pub(super) fn new(session: &str, saved: Option<&Value>) -> Self {
        let (calls, earlier) = (OpenCalls::restored(saved, "calls"), OpenCalls::restored(saved, "earlier"));
        Self { session: session.to_owned(), calls, earlier }
    }

    fn called(&mut self, message: &Value) {
        for part in items(message, "parts") {
            let call = part.get("functionCall").unwrap_or(&Value::Null);
            if let Some(id) = id(call, "id") {
                self.calls.begin(id, &text(call, "name").map(label).unwrap_or_default());
            }
        }
    }

    /// Results of calls. With all of them cancelled the turn is over that they were made in, which may be an earlier one: a
    /// command that is slow to die has its result written when the next turn runs already.
    fn returned(&mut self, message: &Value, context: &Context, out: &mut Parsed) {
        let results: Vec<_> = results(message, "parts").collect();
        let mut late = false;
        for call in results.iter().filter_map(|result| result.call) {
            late |= self.earlier.end(call).is_some();
            self.calls.end(call);
        }
        let cancelled = !results.is_empty() && results.iter().all(|result| result.cancelled);
        match (cancelled, late) {
            (true, true) => {}
            (true, false) => {
                context.push(out, SignalBody::Aborted { tools_to_work: false, call: None });
            }
            (false, _) => context.push(out, SignalBody::Activity { what: Activity::Progress }),
        }
    }
}

impl TranscriptReader for Reader {
    fn wants(&self, line: &[u8]) -> bool {
        let head = line.get(..TYPE_WITHIN).unwrap_or(line);
        holds_any(head, &WANTED)
    }

    fn line(&mut self, line: &[u8], out: &mut Parsed) {
        let Ok(record) = parse_object(line) else { return };
        let (Some(kind), Some(at)) = (text(&record, "type"), text(&record, "timestamp").and_then(wall))
        else {
            return;
        };
        let context = Context {
            session: Some(self.session.clone()),
            turn: None,
            thread: Thread::Main,
            at: Some(at),
            facts: Facts { agent_version: text(&record, "version").map(label), ..Facts::default() },
        };
        let message = record.get("message").unwrap_or(&Value::Null);
        if kind == "user" {
            self.calls.move_to(&mut self.earlier);
        }
        match (kind, text(&record, "subtype")) {
            // A person's own prompt has its hook.
            ("user", Some("notification" | "cron")) => {
                let text = words(message, "parts").unwrap_or_default();
                let ends = notices(&text);
                let prompt = Prompt { text, origin: PromptOrigin::Work };
                context.push(out, SignalBody::Started { prompt: Some(prompt) });
                for notice in ends {
                    if let Some(cause) = notice.end {
                        context.push(out, SignalBody::WorkFinished { id: notice.task, cause });
                    }
                }
            }
            ("assistant", _) => {
                self.called(message);
                context.push(out, SignalBody::Activity { what: Activity::Progress });
            }
            ("tool_result", _) => self.returned(message, &context, out),
            _ => {}
        }
    }

    fn save(&self) -> Value {
        json!({ "calls": self.calls.save(), "earlier": self.earlier.save() })
    }
}

#[cfg(test)]
mod tests;
