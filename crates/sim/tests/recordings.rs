//! The corpus as an oracle: every recording of an agent with an adapter is right, at every labelled moment.

use std::path::{Path, PathBuf};
use watchkeeper_sim::recordings::{Event, EventKind, Recording, Replay, find, judge};

/// The corpus's folders, one an agent or a way of running it.
const FOLDERS: [&str; 8] =
    ["acp", "claude", "codex", "codex-daemon", "copilot", "gemini", "opencode", "qwen"];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings")
}

/// Replays the corpus as `change` leaves its events, and returns what is not right.
fn failures(change: impl Fn(&mut Vec<Event>)) -> Vec<String> {
    let mut judged_count = 0;
    let mut failures = Vec::new();
    for folder in FOLDERS {
        let found = find(&corpus().join(folder)).expect("the corpus is part of the repository");
        assert!(!found.is_empty(), "no recordings of {folder}");
        for path in found {
            let mut recording =
                Recording::load(&path).unwrap_or_else(|e| panic!("{}: {e:#}", path.display()));
            change(&mut recording.events);
            let mut replay = Replay::new(&recording).expect("an adapter is built in");
            replay.run(&recording.events, recording.end());
            let judged = judge(&recording, &replay);
            judged_count += 1;
            if !judged.right() {
                failures.push(format!(
                    "{}: wrong {:.3} s, late {}, end ok {}, unlisted {:?}, {:?} {:?}",
                    recording.name,
                    judged.wrong_s,
                    judged.late,
                    judged.end_ok,
                    judged.unlisted,
                    judged.wrong,
                    judged.violations
                ));
            }
            for (kind, names) in [("unknown", &replay.unknown), ("malformed", &replay.malformed)] {
                assert!(names.is_empty(), "{}: {kind} {names:?}", recording.name);
            }
        }
    }
    assert!(judged_count >= 173, "only {judged_count} recordings were judged");
    failures
}

fn check(change: impl Fn(&mut Vec<Event>)) {
    let failures = failures(change);
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_recording_is_right() {
    check(|_| {});
}

#[test]
fn and_without_the_agents_state_files() {
    check(|events| events.retain(|e| !matches!(e.kind, EventKind::Registry { .. })));
}

/// A transcript that is written late carries its own times.
#[test]
fn and_with_late_transcripts() {
    check(|events| {
        for event in events.iter_mut().filter(|e| matches!(e.kind, EventKind::Transcript { .. })) {
            event.t += 0.7;
        }
        events.sort_by(|a, b| a.t.total_cmp(&b.t));
    });
}

/// The oracle itself: a corpus without hooks cannot be right.
#[test]
fn hooks_are_what_it_takes() {
    let failures = failures(|events| events.retain(|e| !matches!(e.kind, EventKind::Hook { .. })));
    assert!(failures.len() > 140, "only {} recordings need their hooks", failures.len());
}

/// What `doctor` would say of a newer version must not be said of the recorded ones.
#[test]
fn no_payload_has_a_field_that_is_not_known() {
    let mut payloads = 0;
    let found = FOLDERS
        .iter()
        .flat_map(|folder| find(&corpus().join(folder)).expect("the corpus is part of the repository"));
    for path in found {
        let recording = Recording::load(&path).unwrap_or_else(|e| panic!("{}: {e:#}", path.display()));
        let adapter = watchkeeper_agents::adapter(recording.agent).expect("an adapter is built in");
        for event in &recording.events {
            let EventKind::Hook { event, payload, .. } = &event.kind else { continue };
            let parsed = adapter.payload(Some(event), &[], payload);
            let fields: Vec<&String> =
                parsed.unknown.iter().filter(|name| name.starts_with("field ")).collect();
            assert!(fields.is_empty(), "{} {event}: {fields:?}", recording.name);
            payloads += 1;
        }
    }
    assert!(payloads > 1000, "{payloads}");
}
