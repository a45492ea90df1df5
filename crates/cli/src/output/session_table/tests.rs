use super::*;
use serde_json::json;

/// `sessions` and `machine` are laid over a quiet machine without sessions; times count from 1970 in seconds.
fn check(machine: serde_json::Value, sessions: &[serde_json::Value], expected: &str) {
    let mut status = json!({
        "version": 1,
        "machine": {"awake": false, "armed": true, "wanted": false, "held": [], "refused": [], "reasons": [],
                    "lid": "open", "power": "mains", "displays": 0},
        "sessions": [],
    });
    for (name, value) in machine.as_object().unwrap() {
        status["machine"][name] = value.clone();
    }
    for session in sessions {
        let mut row = json!({
            "key": format!("claude:{}", session["id"].as_str().unwrap()), "agent": "claude", "namespace": null,
            "incarnation": 1, "since": "1970-01-01T00:00:00Z", "turn_since": null,
            "last_activity": "1970-01-01T00:00:00Z", "waiting_for": null, "background": [], "pid": null,
            "watched": true, "cwd": null, "title": null, "parent": null, "flags": [], "lineage": [],
        });
        for (name, value) in session.as_object().unwrap() {
            row[name] = value.clone();
        }
        status["sessions"].as_array_mut().unwrap().push(row);
    }
    let status: Status = serde_json::from_value(status).unwrap();
    let now: Time = "1970-01-01T00:05:00Z".parse().unwrap();
    let shown = status_view(&status, now, &Terminal::PLAIN).join("\n");
    assert_eq!(shown, expected.trim_start_matches('\n'), "\n{shown}");
}

#[test]
fn the_machine_line_says_why() {
    let facts = "\nheld: idle   lid: open   power: mains   external displays: 0\n\n";
    let reason =
        |session: &str| json!([{"session": session, "why": "working", "since": "1970-01-01T00:03:00Z"}]);
    check(
        json!({"awake": true, "wanted": true, "held": ["idle"], "reasons": reason("claude:abcdefghij")}),
        &[json!({"id": "abcdefghij", "state": "working", "title": "fix the tests"})],
        &format!(
            "awake: yes — claude working for 2 min (fix the tests){facts}\
             STATE    FOR    AGENT   SESSION   WHAT\n\
             working  5 min  claude  abcdefgh  fix the tests"
        ),
    );
    let refused = json!([{"kind": "idle", "why": "denied"}]);
    check(
        json!({"wanted": true, "refused": refused, "reasons": reason("claude:gone")}),
        &[json!({"id": "abcdefghij", "state": "idle"})],
        "awake: no — the system refuses idle: denied\n\
         held: nothing   lid: open   power: mains   external displays: 0\n\n\
         STATE  FOR    AGENT   SESSION   WHAT\n\
         idle   5 min  claude  abcdefgh",
    );
    check(
        json!({"armed": false, "reasons": reason("claude:abcdefghij"), "power": "battery", "battery_percent": 71,
               "displays": null, "lid": "closed"}),
        &[json!({"id": "abcdefghij", "state": "working"})],
        "awake: no — keeping awake is switched off (1 session would keep it awake)\n\
         held: nothing   lid: closed   power: battery 71 %   external displays: unknown\n\n\
         STATE    FOR    AGENT   SESSION   WHAT\n\
         working  5 min  claude  abcdefgh",
    );
}

#[test]
fn ids_are_as_short_as_they_can_be_and_the_dead_are_few() {
    let ended =
        |id: &str, since: &str| json!({"id": id, "state": "ended", "ended": "reported", "since": since});
    check(
        json!({}),
        &[
            json!({"id": "01234567-a", "state": "waiting", "waiting_for": "permission_prompt", "title": "a\u{1b}[2J"}),
            json!({"id": "01234567-b", "state": "background", "flags": ["quiet"], "background": [
                {"id": "1", "kind": "shell", "since": "1970-01-01T00:00:00Z"},
                {"id": "2", "kind": "shell", "since": "1970-01-01T00:00:00Z"},
                {"id": "3", "kind": "monitor", "since": "1970-01-01T00:00:00Z"},
            ]}),
            ended("e1", "1970-01-01T00:00:01Z"),
            ended("e2", "1970-01-01T00:00:02Z"),
            ended("e3", "1970-01-01T00:00:03Z"),
            ended("e4", "1970-01-01T00:04:04Z"),
        ],
        "awake: no — no agent works (1 waits for you)\n\
         held: nothing   lid: open   power: mains   external displays: 0\n\n\
         STATE       FOR    AGENT   SESSION     WHAT\n\
         waiting     5 min  claude  01234567-a  waits: permission_prompt · a [2J\n\
         background  5 min  claude  01234567-b  2 shells and 1 monitor · [quiet]\n\
         ended       56 s   claude  e4          reported\n\
         ended       4 min  claude  e3          reported\n\
         ended       4 min  claude  e2          reported\n\
         and 1 more that ended (`--json` lists all)",
    );
}

#[test]
fn a_first_run_says_what_to_do() {
    check(
        json!({}),
        &[],
        "awake: no — no agent works\n\
         held: nothing   lid: open   power: mains   external displays: 0\n\n\
         No session yet. Start a coding agent and it appears here.\n\n  \
           watchkeeper hooks status   are the agents wired up?\n  \
           watchkeeper install        wire them up (shows the changes and asks first)\n  \
           watchkeeper up --demo      see a recorded session play",
    );
}
