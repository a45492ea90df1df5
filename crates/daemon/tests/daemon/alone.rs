//! Time passes as well for a daemon that nobody is connected to.

use std::fs;

use serde_json::json;
use watchkeeper_api::method::{Explain, ExplainParams};
use watchkeeper_daemon::{Origin, Place, run};
use watchkeeper_frame::spool::Spool;

use crate::rig::{Daemon, frame, payload, until};

#[test]
fn a_deferred_stop_is_carried_out_with_nobody_connected() {
    let home = tempfile::tempdir().unwrap();
    let place = Place::of_home(home.path());
    let configure = |text: &str| {
        fs::create_dir_all(&place.config).unwrap();
        fs::write(place.config.join("config.toml"), format!("keep_awake = \"off\"\n{text}")).unwrap();
    };
    configure("wake_grace = \"1s\"\ncleanup_delay = \"1s\"\n");
    let spool = Spool::at(place.spool());
    let shell = json!([{ "id": "b", "type": "shell", "status": "running" }]);
    for (delivery, event, more) in [
        (1, "SessionStart", json!({ "source": "startup" })),
        (2, "UserPromptSubmit", json!({ "prompt": "p", "prompt_id": "t" })),
        (3, "Stop", json!({ "prompt_id": "t", "background_tasks": shell })),
        (4, "SubagentStop", json!({ "agent_id": "x", "background_tasks": [] })),
    ] {
        spool.write(&frame(delivery, event, &payload("s", event, more)), b"").unwrap();
    }
    // The agent may wake for a second, then the stop counts, then nothing needs the daemon.
    let own = place.clone();
    let life = std::thread::spawn(move || run(own, true, Origin::default()));
    until("the daemon leaves by itself", || life.is_finished().then_some(()));
    life.join().unwrap().unwrap();

    configure("cleanup_delay = \"off\"\n");
    let daemon = Daemon::start(home.path());
    assert_eq!(daemon.state_of("s"), Some("idle"));
    let explained = daemon.client().call::<Explain>(&ExplainParams { session: "s".into() }).unwrap();
    let carried_out = explained.evidence.iter().any(|e| e.rule == "the deferred stop is carried out");
    assert!(carried_out, "{explained:?}");
    daemon.stop();
}
