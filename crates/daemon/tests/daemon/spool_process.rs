//! A session met only through the spool: its process is known from what its hooks wrote down.
#![cfg(target_os = "linux")]

use std::{fs, path::Path};

use serde_json::{Value, json};
use watchkeeper_frame::{
    Place,
    ancestry::Namespaces,
    event::EventClass,
    spool::{self, Spool, SpoolName},
    wire::RequestRef,
};

use crate::{
    agent::Agent,
    rig::{Daemon, frame, payload, until},
};

/// Where a frame names its boot.
const BOOT_ID_AT: usize = 40;

fn leave(home: &Path, delivery: u128, event: &str, more: Value, ancestry: &[u8]) {
    let spool = Spool::at(Place::of_home(home).spool());
    spool.write(&frame(delivery, event, &payload("s", event, more)), ancestry).unwrap();
}

/// The name and the content of a spooled event: a spool is listed for each that it writes itself.
fn spool_file(frame: &[u8], ancestry: &[u8]) -> (String, Vec<u8>) {
    let content = [frame, ancestry, &spool::trailer(frame, ancestry)].concat();
    let view = RequestRef::parse(frame).unwrap();
    let name = SpoolName::new(&view.head, EventClass::of(view.event), content.len());
    (String::from_utf8(name.write().to_vec()).unwrap(), content)
}

fn begin(home: &Path, ancestry: &[u8]) {
    leave(home, 1, "SessionStart", json!({ "source": "startup" }), ancestry);
    leave(home, 2, "UserPromptSubmit", json!({ "prompt": "p", "prompt_id": "t" }), ancestry);
}

/// How the session ended, once it has.
fn ended(daemon: &Daemon) -> String {
    until("the session ends", || {
        daemon.status().sessions.into_iter().find(|s| s.id == "s").and_then(|s| s.ended)
    })
}

#[test]
fn a_living_agent_is_watched_until_it_dies() {
    let home = tempfile::tempdir().unwrap();
    let agent = Agent::start(home.path(), "claude", &[]);
    begin(home.path(), &agent.ancestry(Namespaces::own()));
    let daemon = Daemon::start(home.path());
    let pid = agent.identity().pid;
    until("the agent is watched", || {
        let session = daemon.status().sessions.into_iter().find(|s| s.id == "s")?;
        (session.watched && session.pid == Some(pid)).then_some(())
    });
    assert_eq!(daemon.state_of("s"), Some("working"));
    agent.kill();
    assert_eq!(ended(&daemon), "process_exited");
    daemon.stop();
}

#[test]
fn an_agent_that_died_meanwhile_leaves_an_orphan() {
    let home = tempfile::tempdir().unwrap();
    let agent = Agent::start(home.path(), "claude", &[]);
    begin(home.path(), &agent.ancestry(Namespaces::own()));
    agent.kill();
    let daemon = Daemon::start(home.path());
    assert_eq!(ended(&daemon), "orphaned");
    assert_eq!(daemon.counter("process.gone"), 2);
    daemon.stop();

    // The end stays what it is, however often the spool tells of that agent.
    let daemon = Daemon::start(home.path());
    assert_eq!(ended(&daemon), "orphaned");
    daemon.stop();
}

#[test]
fn an_end_that_the_agent_reported_before_it_died_is_believed() {
    let home = tempfile::tempdir().unwrap();
    let agent = Agent::start(home.path(), "claude", &[]);
    let ancestry = agent.ancestry(Namespaces::own());
    begin(home.path(), &ancestry);
    leave(home.path(), 3, "SessionEnd", json!({ "reason": "other" }), &ancestry);
    agent.kill();
    let daemon = Daemon::start(home.path());
    assert_eq!(ended(&daemon), "reported");
    daemon.stop();
}

#[test]
fn an_agent_of_an_earlier_boot_is_gone_whoever_has_its_numbers_now() {
    let home = tempfile::tempdir().unwrap();
    let agent = Agent::start(home.path(), "claude", &[]);
    let more = json!({ "prompt": "p", "prompt_id": "t" });
    let mut prompt = frame(1, "UserPromptSubmit", &payload("s", "UserPromptSubmit", more));
    prompt[BOOT_ID_AT] ^= 1;
    let spool = Spool::at(Place::of_home(home.path()).spool());
    spool.write(&prompt, &agent.ancestry(Namespaces::own())).unwrap();
    let daemon = Daemon::start(home.path());
    assert_eq!(ended(&daemon), "orphaned");
    daemon.stop();
}

#[test]
fn what_cannot_be_told_ends_nothing() {
    let elsewhere = Namespaces { pid: Namespaces::own().pid + 1, ..Namespaces::own() };
    let check = |what: &str, change: &dyn Fn(&Agent) -> Vec<u8>| {
        let home = tempfile::tempdir().unwrap();
        let agent = Agent::start(home.path(), "claude", &[]);
        begin(home.path(), &change(&agent));
        agent.kill();
        let daemon = Daemon::start(home.path());
        until("the spool is heard", || (daemon.counter("process.not_found") == 2).then_some(()));
        let session = daemon.status().sessions.into_iter().find(|s| s.id == "s").unwrap();
        assert_eq!((session.state.name(), session.watched, session.pid), ("working", false, None), "{what}");
        daemon.stop();
    };
    check("nothing written down", &|_| Vec::new());
    check("another container", &|agent| agent.ancestry(elsewhere));
    check("noise", &|agent| agent.ancestry(Namespaces::own()).iter().map(|b| b ^ 0x55).collect());
    check("cut", &|agent| {
        let mut block = agent.ancestry(Namespaces::own());
        block.truncate(block.len() - 1);
        block
    });
}

#[test]
fn the_dead_begin_no_session_in_the_middle_of_a_turn() {
    let home = tempfile::tempdir().unwrap();
    let agent = Agent::start(home.path(), "claude", &[]);
    let tool = json!({ "tool_name": "Bash", "tool_input": {}, "tool_use_id": "u" });
    leave(home.path(), 1, "PreToolUse", tool.clone(), &agent.ancestry(Namespaces::own()));
    agent.kill();
    let daemon = Daemon::start(home.path());
    until("the spool is heard", || (daemon.counter("spool.taken") == 1).then_some(()));
    assert_eq!(daemon.state_of("s"), None);
    let agent = Agent::start(home.path(), "claude", &[]);
    leave(home.path(), 2, "PreToolUse", tool, &agent.ancestry(Namespaces::own()));
    until("a living one does", || {
        let session = daemon.status().sessions.into_iter().find(|s| s.id == "s")?;
        (session.watched && session.state.name() == "working").then_some(())
    });
    agent.kill();
    assert_eq!(ended(&daemon), "process_exited");
    daemon.stop();
}

#[test]
fn an_exit_waits_for_all_that_the_spool_tells_of_the_time_before() {
    let home = tempfile::tempdir().unwrap();
    let agent = Agent::start(home.path(), "claude", &[]);
    let ancestry = agent.ancestry(Namespaces::own());
    begin(home.path(), &ancestry);
    let daemon = Daemon::start(home.path());
    until("the agent is watched", || {
        daemon.status().sessions.iter().any(|s| s.id == "s" && s.watched).then_some(())
    });
    // More than one turn takes; the end comes last.
    let told = (10..1600).map(|delivery| {
        let prompt = json!({ "prompt": "p", "prompt_id": delivery.to_string() });
        (delivery, "UserPromptSubmit", prompt)
    });
    let end = (1600, "SessionEnd", json!({ "reason": "other" }));
    let aside = home.path().join("aside");
    fs::create_dir(&aside).unwrap();
    for (delivery, event, more) in told.chain([end]) {
        let (name, content) = spool_file(&frame(delivery, event, &payload("s", event, more)), &ancestry);
        fs::write(aside.join(name), content).unwrap();
    }
    // All of them are there at once, and the exit right behind them.
    fs::rename(daemon.place.spool(), home.path().join("before")).unwrap();
    fs::rename(aside, daemon.place.spool()).unwrap();
    agent.kill();
    assert_eq!(ended(&daemon), "reported");
    assert_eq!(daemon.counter("spool.taken"), 1593);
    daemon.stop();
}
