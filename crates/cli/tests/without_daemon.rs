//! What a person meets before a daemon runs.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what a test cannot go on without fails it")]

mod common;

use common::Instance;
use snapbox::{assert_data_eq, str};

#[test]
fn help() {
    let instance = Instance::new();
    let (code, out, err) = instance.said(&["--help"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_data_eq!(
        out,
        str![[r#"
Knows which coding agents work, wait or idle, and keeps the machine awake exactly while they work

Usage: watchkeeper [OPTIONS] <COMMAND>

Commands:
  up              Start the daemon, wire up the agents, and show what they do until Ctrl-C
  status          Show the sessions, and whether the machine is kept awake
  why             Say in one line why the machine is kept awake, or why not
  explain         Show the evidence behind a session's state
  events          Print the journal as JSON lines
  wait            Wait until a session is in a state
  start           Begin a turn of a session, of any agent
  stop            End the turn of a session
  activity        Say that a session works
  softlock        Say that a session waits for a person
  clear-softlock  Say that a session does not wait any more
  remove          Forget a session
  hold            Keep the machine awake for a while, or list who does
  release         Let go of a hold
  install         Wire up the agents: shows the changes and asks first
  uninstall       Take the wiring out of the agents again
  hooks           Show whether the agents are wired up
  doctor          Check everything that must work, one line each
  config          Read and change settings
  daemon          Run, stop, restart or describe the daemon
  mcp             Serve MCP on standard input and output, for an agent
  completions     Print the completions of a shell
  api             Describe the local interface

Options:
      --home <DIR>  A private instance: configuration, state and runtime files below DIR [env:
                    WATCHKEEPER_HOME]
      --json        Print JSON, with a version field and documented in docs/cli.md
  -h, --help        Print help
  -V, --version     Print version

Begin with `watchkeeper up`. SESSION is an id, an unambiguous beginning of one, or AGENT:ID.
Exit codes: 0 done, 1 failed, 2 usage, 3 no daemon answers, 4 not known (why), 5 timed out (wait).

"#]]
    );
}

#[test]
fn nobody_answers() {
    let instance = Instance::new();
    let (code, out, err) = instance.said(&["status"]);
    assert_eq!((code, out.as_str()), (Some(3), ""));
    assert_data_eq!(
        err,
        str![[r#"
error: cannot show the status
  why: no daemon answers at [HOME]/run/api.sock
       No such file or directory (os error 2)
  do:  Start it with `watchkeeper up`.

"#]]
    );
    let (code, out, _) = instance.said(&["status", "--json"]);
    assert_eq!((code, out.as_str()), (Some(3), ""));
}

#[test]
fn no_daemon_is_a_reason_not_to_be_awake() {
    let instance = Instance::new();
    let (code, out, err) = instance.said(&["why", "--json"]);
    assert_eq!((code, err.as_str()), (Some(1), ""));
    let why: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&why["version"], &why["awake"], &why["code"]),
        (&1.into(), &false.into(), &"no_daemon".into())
    );
}

#[test]
fn a_bad_key_is_named_with_the_nearest() {
    let instance = Instance::new();
    let (code, out, err) = instance.said(&["config", "set", "keep_awak", "on"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_data_eq!(
        err,
        str![[r#"
error: cannot set 'keep_awak'
  why: unknown setting 'keep_awak'; did you mean 'keep_awake'?
  do:  `watchkeeper config schema` lists every setting with what it takes.

"#]]
    );
}

#[test]
fn settings_are_kept_without_a_daemon_too() {
    let instance = Instance::new();
    let change = instance.json(&["config", "set", "inactivity_timeout", "20m"]);
    assert_eq!((&change["before"], &change["after"]), (&"12m".into(), &"20m".into()));
    let (_, out, _) = instance.said(&["config", "get", "inactivity_timeout"]);
    assert_eq!(out, "20m\n");
    let path = instance.home().join("config/config.toml");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "inactivity_timeout = \"20m\"\n");
    instance.json(&["config", "unset", "inactivity_timeout"]);
    let all = instance.json(&["config", "get"]);
    let sources: Vec<_> =
        all["settings"].as_array().unwrap().iter().map(|setting| &setting["source"]).collect();
    assert!(!sources.is_empty() && sources.iter().all(|source| **source == "default"), "{all}");
}

#[test]
fn wrong_usage_has_its_own_code() {
    let instance = Instance::new();
    for words in [&["wait", "x"][..], &["start", "no body"], &["hold", "--for", "soon"], &["frobnicate"], &[]]
    {
        assert_eq!(instance.run(words).status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn stopping_nothing_is_no_failure() {
    let instance = Instance::new();
    let (code, out, err) = instance.said(&["daemon", "stop"]);
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "no daemon runs\n", ""));
}

#[test]
fn completions_and_schema_need_nothing() {
    let instance = Instance::new();
    for shell in ["bash", "fish", "zsh", "elvish", "powershell"] {
        let (code, out, _) = instance.said(&["completions", shell]);
        assert!(code == Some(0) && out.contains("softlock"), "{shell}");
    }
    assert!(
        instance.json(&["api", "schema"])["methods"].as_array().is_some_and(|methods| methods.len() > 20)
    );
}

/// A reader that leaves early (`| head -1`) is no error.
#[test]
fn a_closed_pipe_is_quiet() {
    let instance = Instance::new();
    let mut child = instance
        .command(&["config", "schema"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    // Either everything was written before the pipe closed, or nobody complains.
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
