use super::*;
use serde_json::json;
use watchkeeper_core::{
    BootId, Incarnation, ProcessRef, Wall,
    input::{Known, Refused},
};

fn session(id: &str, state: ShownState) -> SessionView {
    SessionView {
        key: SessionKey::new(AgentKind::Claude, id),
        incarnation: Incarnation(1),
        state,
        since: Wall(1000),
        started_at: Wall(0),
        turn_since: None,
        last_activity: Wall(2000),
        waiting_for: None,
        background: vec![WorkView { id: "b1".into(), kind: WorkKind::Shell, label: None, since: Wall(1500) }],
        processes: vec![ProcessRef { pid: 42, start: 7, boot: BootId(1) }],
        watched: true,
        protects: true,
        cwd: Some("/home/dev/project".into()),
        transcript: None,
        title: None,
        prompt_preview: Some("fix the tests".into()),
        agent_version: None,
        parent: None,
        lineage: vec![Lineage::ForkedFrom("0".into())],
        flags: vec!["quiet".into()],
        ended: None,
    }
}

fn machine() -> MachineView {
    MachineView {
        awake: true,
        armed: true,
        wanted: true,
        held: vec!["idle".into()],
        refused: vec![Refused { kind: "handle-lid-switch".into(), why: "denied by polkit".into() }],
        reasons: vec![DemandView {
            session: Some(SessionKey::new(AgentKind::Claude, "a")),
            lease: None,
            why: "working".into(),
            since: Wall(1000),
        }],
        lid_closed: Known::Unknown,
        external_displays: Known::Is(0),
        on_battery: Known::Is(false),
        battery_percent: Known::Unknown,
        suspend: None,
    }
}

/// The promise to scripts: exactly these names and shapes.
#[test]
fn version_1_keeps_its_shape() {
    let status =
        Status::of_views(3, &machine(), "claude works".into(), &[session("a", ShownState::Background)]);
    assert_eq!(
        serde_json::to_value(&status).unwrap(),
        json!({
            "version": 1,
            "revision": 3,
            "machine": {
                "awake": true, "armed": true, "wanted": true, "held": ["idle"],
                "refused": [{"kind": "handle-lid-switch", "why": "denied by polkit"}],
                "reasons": [{"session": "claude:a", "why": "working", "since": "1970-01-01T00:00:01.000Z"}],
                "lid": "unknown", "power": "mains", "displays": 0, "battery_percent": null, "suspend": null,
                "why": "claude works",
            },
            "sessions": [{
                "key": "claude:a", "agent": "claude", "namespace": null, "id": "a", "incarnation": 1,
                "state": "background", "since": "1970-01-01T00:00:01.000Z",
                "started_at": "1970-01-01T00:00:00.000Z", "turn_since": null,
                "last_activity": "1970-01-01T00:00:02.000Z", "waiting_for": null,
                "background": [{"id": "b1", "kind": "shell", "label": null, "since": "1970-01-01T00:00:01.500Z"}],
                "pid": 42, "pids": [42], "watched": true, "protects": true, "cwd": "/home/dev/project",
                "title": "fix the tests", "prompt_preview": "fix the tests", "transcript": null,
                "agent_version": null, "parent": null, "flags": ["quiet"],
                "lineage": [{"link": "forked_from", "id": "0"}], "ended": null,
            }],
            "notices": [],
        })
    );
}

#[test]
fn a_reader_needs_only_what_version_1_promised() {
    let old = json!({
        "version": 1,
        "machine": {"awake": false, "armed": true, "held": [], "refused": [], "reasons": [], "lid": "open",
                    "power": "battery", "displays": null},
        "sessions": [],
        "from_the_future": 1,
    });
    let status: Status = serde_json::from_value(old).unwrap();
    assert_eq!(status.machine.power, "battery");
}

#[test]
fn who_waits_comes_first() {
    let views = [
        session("a", ShownState::Ended),
        session("b", ShownState::Idle),
        session("d", ShownState::Waiting),
        session("c", ShownState::Waiting),
        session("e", ShownState::Working),
    ];
    let order: Vec<String> = Status::of_views(0, &machine(), String::new(), &views)
        .sessions
        .into_iter()
        .map(|session| session.id)
        .collect();
    assert_eq!(order, ["c", "d", "e", "b", "a"]);
}

/// As long as the core keeps any.
fn maximal(id: &str, state: ShownState) -> SessionView {
    let text = || Some("\u{1F980}".repeat(1024));
    SessionView {
        cwd: text(),
        transcript: text(),
        title: text(),
        agent_version: text(),
        ..session(id, state)
    }
}

/// At least so many fit, and these notices are given for so many sessions and reasons that do not.
#[track_caller]
fn check_fit(sessions: &[SessionView], at_least: usize, notices: fn(usize, usize) -> Vec<String>) {
    let mut machine = machine();
    let live = sessions.iter().filter(|s| s.state != ShownState::Ended);
    machine.reasons = live
        .map(|s| DemandView {
            session: Some(s.key.clone()),
            lease: None,
            why: "working".into(),
            since: Wall(0),
        })
        .collect();
    let mut status = Status::of_views(1, &machine, "some work".into(), sessions);
    let all = status.sessions.clone();
    status.fit();
    let kept = status.sessions.len();
    assert!(kept >= at_least, "{kept}");
    assert_eq!(
        status.notices,
        notices(all.len() - kept, machine.reasons.len() - status.machine.reasons.len())
    );
    let order: Vec<&String> = all.iter().map(|s| &s.key).take(kept).collect();
    assert_eq!(status.sessions.iter().map(|s| &s.key).collect::<Vec<_>>(), order, "the most urgent stay");
    let outcome = Ok(serde_json::to_value(&status).unwrap());
    crate::Message::Response { id: None, outcome }.to_line().unwrap();
}

#[test]
fn very_many_sessions_fit_a_frame_and_what_is_left_out_is_said() {
    fn cut(left_out: String) -> Vec<String> {
        vec!["there are very many sessions; their long texts are cut".to_owned(), left_out]
    }
    let of = |n: usize, state, make: fn(&str, ShownState) -> SessionView| {
        (0..n).map(|i| make(&format!("{i:05}-{}", state as u8), state)).collect::<Vec<_>>()
    };
    check_fit(&of(30, ShownState::Ended, maximal), 30, |_, _| Vec::new());
    let mut sessions = of(watchkeeper_core::core::ENDED_MAX, ShownState::Ended, maximal);
    check_fit(&sessions, 150, |left, _| cut(format!("{left} ended sessions are left out")));
    sessions.insert(7, maximal("waiting", ShownState::Waiting));
    check_fit(&sessions, 150, |left, _| cut(format!("{left} ended sessions are left out")));
    let mut sessions = of(4000, ShownState::Working, session);
    let live = |left: usize, r: usize| {
        [
            cut(format!("{left} sessions are left out")),
            vec![format!("{r} reasons to keep the machine awake are left out")],
        ]
        .concat()
    };
    check_fit(&sessions, 1000, live);
    sessions.extend(of(10, ShownState::Ended, session));
    check_fit(&sessions, 1000, |left, r| {
        let left_out = format!("{} sessions and 10 ended ones are left out", left - 10);
        [cut(left_out), vec![format!("{r} reasons to keep the machine awake are left out")]].concat()
    });
}

#[test]
fn a_cut_path_keeps_its_end() {
    let mut sessions: Vec<SessionView> =
        (0..1000).map(|i| maximal(&i.to_string(), ShownState::Idle)).collect();
    sessions[0].cwd = Some(format!("/{}/project", "x".repeat(300)));
    let mut status = Status::of_views(1, &machine(), String::new(), &sessions);
    status.fit();
    let cwd = status.sessions[0].cwd.as_ref().unwrap();
    assert!(cwd.starts_with("…x") && cwd.ends_with("/project") && cwd.chars().count() == 161, "{cwd}");
}
