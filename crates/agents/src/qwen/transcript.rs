//! Qwen Code's chat file: the notices by which the end of background work begins a turn (no hook tells that), and
//! calls that the person cancelled.

use serde_json::{Value, json};
use watchkeeper_core::signal::{Activity, Facts, Prompt, PromptOrigin, SignalBody, Thread};

use crate::{
    adapter::{Parsed, TranscriptReader},
    function_parts::{results, words},
    json::{parse_object, text},
    line_scanner::holds_any,
    observe::{Context, label, wall},
    task_notification::notices,
};

/// How far into a line its type stands, behind three ids and a time.
const TYPE_WITHIN: usize = 512;
const WANTED: [&[u8]; 3] = [b"\"type\":\"user\"", b"\"type\":\"assistant\"", b"\"type\":\"tool_result\""];

#[derive(Debug)]
pub(super) struct Reader {
    session: String,
}

impl Reader {
    pub(super) fn new(session: &str) -> Self {
        Self { session: session.to_owned() }
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
            ("assistant", _) => context.push(out, SignalBody::Activity { what: Activity::Progress }),
            ("tool_result", _) => {
                let results: Vec<_> = results(message, "parts").collect();
                let body = match !results.is_empty() && results.iter().all(|result| result.cancelled) {
                    true => SignalBody::Aborted { tools_to_work: false },
                    false => SignalBody::Activity { what: Activity::Progress },
                };
                context.push(out, body);
            }
            _ => {}
        }
    }

    fn save(&self) -> Value {
        json!({})
    }
}

#[cfg(test)]
mod tests;
