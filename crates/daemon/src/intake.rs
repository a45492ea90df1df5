//! From what an adapter observed to what the core is told: the shell adds the sender, the time and the delivery id, and
//! cuts texts down to what the person allowed to be recorded.

use watchkeeper_agents::Observation;
use watchkeeper_core::{
    AgentKind, DeliveryId, SessionKey, Signal, SignalBody,
    settings::RecordPrompts,
    signal::{AgentProcess, Source},
    time::Stamp,
};

/// Characters of a prompt that are kept in any case, unless recording is off.
const PREVIEW_CHARS: usize = 50;
/// Longest prompt kept with `record_prompts = full`, in characters; the rest is cut.
const PROMPT_CHARS: usize = 20_000;
/// Longest final message, label, title or error text kept, in characters; the rest is cut.
const TEXT_CHARS: usize = 2_000;
/// Longest session id accepted, in bytes; longer ones name no session of any known agent.
pub(crate) const SESSION_ID_BYTES: usize = 256;

/// Who sent a group of observations, when, and under which delivery.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub agent: AgentKind,
    pub namespace: Option<String>,
    /// The session that observations without an id of their own belong to.
    pub session: Option<String>,
    pub source: Source,
    pub happened: Option<Stamp>,
    pub process: Option<AgentProcess>,
    /// The first observation's delivery; those after it count on from there.
    pub delivery: DeliveryId,
}

/// Makes the signal of the `index`th observation of one group. `None` when it names no session.
#[must_use]
pub(crate) fn signal(
    observation: Observation,
    index: usize,
    sender: &Sender,
    record: RecordPrompts,
) -> Option<Signal> {
    let id = observation.session.or_else(|| sender.session.clone())?;
    if id.is_empty() || id.len() > SESSION_ID_BYTES {
        return None;
    }
    Some(Signal {
        key: SessionKey { agent: sender.agent, namespace: sender.namespace.clone(), id },
        incarnation: None,
        turn: observation.turn,
        thread: observation.thread,
        delivery: DeliveryId(sender.delivery.0.wrapping_add(index as u128)),
        source: sender.source,
        happened: sender.happened,
        process: sender.process,
        facts: observation.facts,
        body: cut_texts(observation.body, record),
    })
}

fn cut_texts(body: SignalBody, record: RecordPrompts) -> SignalBody {
    match body {
        SignalBody::Started { prompt } => SignalBody::Started {
            prompt: prompt.map(|mut prompt| {
                let keep = match record {
                    RecordPrompts::Off => 0,
                    RecordPrompts::Preview => PREVIEW_CHARS,
                    RecordPrompts::Full => PROMPT_CHARS,
                };
                cut(&mut prompt.text, keep);
                prompt
            }),
        },
        SignalBody::Stopped { mut final_message, can_continue, continued, mut live } => {
            if let Some(text) = &mut final_message {
                cut(text, if record == RecordPrompts::Full { TEXT_CHARS } else { 0 });
            }
            for item in live.iter_mut().flatten() {
                cut_label(item.label.as_mut(), record);
            }
            SignalBody::Stopped { final_message, can_continue, continued, live }
        }
        SignalBody::WorkStarted { id, what, mut label, process } => {
            cut_label(label.as_mut(), record);
            SignalBody::WorkStarted { id, what, label, process }
        }
        SignalBody::WorkLevel { mut live, except } => {
            for item in &mut live {
                cut_label(item.label.as_mut(), record);
            }
            SignalBody::WorkLevel { live, except }
        }
        SignalBody::Failed { mut message, fatal } => {
            if let Some(text) = &mut message {
                cut(text, TEXT_CHARS);
            }
            SignalBody::Failed { message, fatal }
        }
        other @ (SignalBody::SessionStarted { .. }
        | SignalBody::Activity { .. }
        | SignalBody::Displayed { .. }
        | SignalBody::ToolStarted { .. }
        | SignalBody::ToolFinished { .. }
        | SignalBody::SoftLocked { .. }
        | SignalBody::LockResolved { .. }
        | SignalBody::WorkFinished { .. }
        | SignalBody::Aborted { .. }
        | SignalBody::IdleNoticed
        | SignalBody::SessionEnded { .. }
        | SignalBody::AgentStated { .. }
        | SignalBody::ProcessExited { .. }
        | SignalBody::Orphaned
        | SignalBody::Removed
        | SignalBody::SoftLockCleared
        | SignalBody::Unknown { .. }) => other,
    }
}

/// Labels of background work are commands: as private as prompts.
fn cut_label(label: Option<&mut String>, record: RecordPrompts) {
    if let Some(label) = label {
        cut(label, if record == RecordPrompts::Off { 0 } else { PREVIEW_CHARS });
    }
}

fn cut(text: &mut String, chars: usize) {
    if let Some((end, _)) = text.char_indices().nth(chars) {
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watchkeeper_core::signal::{Facts, Prompt, PromptOrigin, Thread};

    fn started(text: &str) -> Observation {
        Observation {
            session: Some("s".into()),
            turn: None,
            thread: Thread::Main,
            at: None,
            facts: Facts::default(),
            body: SignalBody::Started {
                prompt: Some(Prompt { text: text.into(), origin: PromptOrigin::Person }),
            },
        }
    }

    fn sender() -> Sender {
        Sender {
            agent: AgentKind::Claude,
            namespace: None,
            session: None,
            source: Source::Hook,
            happened: None,
            process: None,
            delivery: DeliveryId(u128::MAX),
        }
    }

    fn check_prompt(record: RecordPrompts, given: &str, kept: &str) {
        let signal = signal(started(given), 0, &sender(), record).unwrap();
        let SignalBody::Started { prompt: Some(prompt) } = signal.body else {
            panic!("a start stays a start")
        };
        assert_eq!(prompt.text, kept);
    }

    #[test]
    fn prompts_are_kept_as_far_as_allowed() {
        let long = "ä".repeat(60);
        check_prompt(RecordPrompts::Off, &long, "");
        check_prompt(RecordPrompts::Preview, &long, &"ä".repeat(50));
        check_prompt(RecordPrompts::Full, &long, &long);
        check_prompt(RecordPrompts::Preview, "", "");
    }

    #[test]
    fn every_observation_of_a_group_has_its_own_delivery() {
        let a = signal(started("x"), 0, &sender(), RecordPrompts::Off).unwrap();
        let b = signal(started("x"), 1, &sender(), RecordPrompts::Off).unwrap();
        assert_ne!(a.delivery, b.delivery);
    }

    #[test]
    fn a_session_without_a_usable_id_is_no_session() {
        let mut unnamed = started("x");
        unnamed.session = None;
        assert!(signal(unnamed, 0, &sender(), RecordPrompts::Off).is_none());
        let mut long = started("x");
        long.session = Some("x".repeat(SESSION_ID_BYTES + 1));
        assert!(signal(long, 0, &sender(), RecordPrompts::Off).is_none());
    }
}
