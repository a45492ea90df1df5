//! The MCP servers as a client meets them: real programs, real pipes, a real daemon of their own.
#![expect(clippy::unwrap_used, reason = "what a test cannot go on without fails it")]

mod common;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use common::Instance;
use serde_json::{Value, json};

/// One client's session with one server.
struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl Session {
    /// Starts a server and introduces itself.
    fn start(instance: &Instance, words: &[&str]) -> Self {
        Self::raw(instance, words).introduced()
    }

    fn introduced(mut self) -> Self {
        let hello = self.ask(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "watchkeeper", "{hello}");
        assert!(hello["result"]["capabilities"]["tools"].is_object(), "{hello}");
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        self
    }

    fn raw(instance: &Instance, words: &[&str]) -> Self {
        Self::of(instance.command(&[&["mcp"], words].concat()))
    }

    fn of(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, next_id: 1 }
    }

    fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the server closed its output");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The answer to one request.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        loop {
            let answer = self.read();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        for tool in tools {
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert!(tool["description"].as_str().unwrap().len() > 10, "{tool}");
        }
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// The structured content of a call that succeeds; its text twin is never empty.
    fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        assert!(!result["content"][0]["text"].as_str().unwrap().is_empty(), "{tool}: {result}");
        assert!(result["structuredContent"].is_object(), "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// The three parts of a call that fails; its text says them too.
    fn refused(&mut self, tool: &str, arguments: Value, part: &str) {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        let error = &result["structuredContent"]["error"];
        assert!(error["what"].as_str().unwrap().starts_with("cannot "), "{tool}: {result}");
        assert!(error["why"].as_array().is_some_and(|why| !why.is_empty()), "{tool}: {result}");
        assert!(error["do"].as_array().is_some_and(|todo| !todo.is_empty()), "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(part), "{tool}: {text} does not say '{part}'");
    }

    /// Closes standard input; the server must end by itself, well.
    fn end(mut self) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_line(&mut rest).unwrap();
        assert_eq!(rest, "", "nothing more is said");
        assert!(self.child.wait().unwrap().success());
    }
}

fn with_daemon() -> Instance {
    let instance = Instance::new();
    let (code, out, err) = instance.said(&["up", "--no-hooks"]);
    assert_eq!(code, Some(0), "{out}{err}");
    instance
}

/// The state of a session; empty when it is not known.
fn state(instance: &Instance, key: &str) -> String {
    let status = instance.json(&["status"]);
    let sessions = status["sessions"].as_array().unwrap();
    let found = sessions.iter().find(|session| session["key"] == key);
    found.map(|session| session["state"].as_str().unwrap().to_owned()).unwrap_or_default()
}

const READS: [&str; 4] = ["get_status", "list_sessions", "why", "explain"];
const WRITES: [&str; 4] =
    ["set_session_soft_lock", "clear_session_soft_lock", "remove_session", "update_settings"];

#[test]
fn the_control_server_reads() {
    let instance = with_daemon();
    instance.json(&["start", "claude", "--id", "one", "--title", "a title"]);
    instance.json(&["start", "codex", "--id", "two"]);
    instance.json(&["softlock", "codex:two", "--reason", "question"]);
    let mut session = Session::start(&instance, &[]);
    assert_eq!(session.tools(), READS);

    let status = session.done("get_status", json!({}));
    assert_eq!(status["sessions"].as_array().unwrap().len(), 2, "{status}");
    assert_eq!(status["sessions"], instance.json(&["status"])["sessions"]);
    let waiting = session.done("list_sessions", json!({"state": "waiting"}));
    assert_eq!(waiting["sessions"][0]["key"], "codex:two");
    assert_eq!(waiting["sessions"].as_array().unwrap().len(), 1);
    let of_claude = session.done("list_sessions", json!({"agent": "claude-code"}));
    assert_eq!(of_claude["sessions"][0]["key"], "claude:one");
    let why = session.done("why", json!({}));
    assert!(why["code"].is_string(), "{why}");
    let explained = session.done("explain", json!({"session": "one"}));
    assert_eq!(explained["session"]["state"], "working");
    assert!(!explained["evidence"].as_array().unwrap().is_empty());

    session.refused("explain", json!({"session": "zzz"}), "no session matches 'zzz'");
    session.refused("explain", json!({}), "'session' is missing");
    session.refused("explain", json!({"session": ["one"]}), "is not a text");
    session.refused("list_sessions", json!({"state": "asleep"}), "is none of working");
    session.refused("list_sessions", json!({"agent": "no body"}), "no name of an agent");
    session.refused("get_status", json!({"verbose": true}), "no argument 'verbose'");
    session.end();
}

#[test]
fn writes_are_not_there_unless_allowed() {
    let instance = with_daemon();
    instance.json(&["start", "claude", "--id", "one"]);
    let mut session = Session::start(&instance, &[]);
    for tool in WRITES {
        let answer = session.ask("tools/call", json!({"name": tool, "arguments": {"session": "one"}}));
        assert!(answer["error"]["message"].as_str().unwrap().contains("no tool"), "{answer}");
    }
    assert_eq!(state(&instance, "claude:one"), "working");
    session.end();

    let mut session = Session::start(&instance, &["--allow-write"]);
    assert_eq!(session.tools(), [READS, WRITES].concat());
    let locked = session.done("set_session_soft_lock", json!({"session": "one"}));
    assert_eq!((&locked["session"], &locked["state"]), (&json!("claude:one"), &json!("waiting")));
    let cleared = session.done("clear_session_soft_lock", json!({"session": "one"}));
    assert_eq!(cleared["state"], "working");
    session.done("remove_session", json!({"session": "one"}));
    assert_eq!(state(&instance, "claude:one"), "ended");

    let changed = session.done("update_settings", json!({"settings": {"inactivity_timeout": "30m"}}));
    assert_eq!(changed["changed"][0]["after"], "30m");
    session.done("update_settings", json!({"settings": {"inactivity_timeout": null}}));
    for setting in ["sound", "suspend", "record_prompts", "webhook_url", "remote_permission"] {
        let settings = json!({"settings": {"keep_awake": "off", setting: "x"}});
        session.refused("update_settings", settings, "an MCP client may not change it");
    }
    let of_file = instance.json(&["config", "get", "keep_awake"]);
    assert_eq!(of_file["settings"][0]["source"], "default", "nothing of a refused change is made: {of_file}");
    session.refused("update_settings", json!({"settings": {}}), "names no setting");
    session.refused("update_settings", json!({"settings": {"keep_awake": "perhaps"}}), "perhaps");
    session.end();
}

#[cfg(unix)]
#[test]
fn the_capability_decides_what_the_server_may_do() {
    use std::os::unix::fs::PermissionsExt as _;
    let instance = with_daemon();
    instance.json(&["start", "claude", "--id", "one"]);
    let folder = instance.home().join("state/mcp");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("capability.json");
    let put = |path: &std::path::Path, secret: &str, write: bool, mode: u32| {
        let text = json!({"version": 1, "secret": secret, "write": write}).to_string();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let (right, wrong) = ("0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdee");
    put(&path, right, false, 0o600);
    let mut session = Session::start(&instance, &["--allow-write", "--capability", path.to_str().unwrap()]);
    let lock = || json!({"session": "one"});
    session.done("get_status", json!({}));
    // The flag opens nothing that the file does not allow.
    session.refused("set_session_soft_lock", lock(), "this capability only reads");
    let settings = || json!({"settings": {"work_max": "2h"}});
    session.refused("update_settings", settings(), "this capability only reads");
    assert_eq!(state(&instance, "claude:one"), "working");
    put(&path, right, true, 0o600);
    assert_eq!(session.done("set_session_soft_lock", lock())["state"], "waiting");
    assert_eq!(session.done("update_settings", settings())["changed"][0]["after"], "2h");
    // A file that others may read counts for nothing, nor does one that is not this instance's.
    put(&path, right, true, 0o640);
    session.refused("why", json!({}), "can be read or written by others");
    let other = instance.home().join("other.json");
    put(&other, wrong, true, 0o600);
    put(&path, right, true, 0o600);
    let mut stranger = Session::start(&instance, &["--capability", other.to_str().unwrap()]);
    stranger.refused("get_status", json!({}), "the capability counts for nothing");
    stranger.end();
    std::fs::remove_file(&path).unwrap();
    session.refused("why", json!({}), "cannot be used");
    session.end();
}

/// In the user's own instance a program inside an agent has session scope; the capability alone widens it, and only so far.
#[cfg(target_os = "linux")]
#[test]
fn inside_an_agent_only_the_capability_widens() {
    use std::os::unix::fs::PermissionsExt as _;
    use watchkeeper_api::{
        Client, ClientOptions,
        method::{GetDaemonStatus, Nothing},
    };
    let instance = Instance::new();
    let at = |name: &str| instance.home().join(name).display().to_string();
    let places = [at("own-run"), at("own-state"), at("own-config")];
    let own = ["--run", &places[0], "--state", &places[1], "--config", &places[2]];
    let words = |words: &[&'static str]| [&own[..], words].concat();
    let (code, out, err) = instance.said(&words(&["up", "--no-hooks"]));
    assert_eq!(code, Some(0), "{out}{err}");
    let secret = "0123456789abcdef0123456789abcdef";
    let capability = instance.home().join("own-state/mcp/capability.json");
    std::fs::create_dir(capability.parent().unwrap()).unwrap();
    std::fs::write(&capability, json!({"version": 1, "secret": secret, "write": false}).to_string()).unwrap();
    std::fs::set_permissions(&capability, std::fs::Permissions::from_mode(0o600)).unwrap();

    let mut provider = Session::of(instance.command(&words(&["mcp", "--provider", "one"]))).introduced();
    provider.done("provider_start_session", json!({"session_id": "x"}));
    // A shell of the agent's name is the agent, as far as ancestry tells.
    let agent = instance.home().join("claude");
    // By a process of its own: what another test forks at this moment would keep our copy from being run.
    assert!(Command::new("cp").arg("/bin/sh").arg(&agent).status().unwrap().success());
    let inside = |more: &[&str]| {
        let mut command = instance.command(&[]);
        let server = instance.command(&[&words(&["mcp"]), more].concat());
        let mut shell = Command::new(&agent);
        shell.args(["-c", "\"$@\"; exit $?", "claude"]).arg(server.get_program()).args(server.get_args());
        shell
            .env_clear()
            .envs(command.env("SHLVL", "1").get_envs().filter_map(|(name, value)| Some((name, value?))));
        Session::of(shell).introduced()
    };
    let mut narrow = inside(&["--allow-write"]);
    assert_eq!(narrow.done("list_sessions", json!({}))["sessions"], json!([]));
    narrow.refused("explain", json!({"session": "mcp/one:x"}), "no session matches");
    narrow.refused(
        "set_session_soft_lock",
        json!({"session": "mcp/one:x"}),
        "not allowed from inside an agent",
    );
    narrow.end();
    let path = capability.display().to_string();
    let mut wide = inside(&["--allow-write", "--capability", &path]);
    assert_eq!(wide.done("list_sessions", json!({}))["sessions"][0]["key"], "mcp/one:x");
    wide.refused("set_session_soft_lock", json!({"session": "mcp/one:x"}), "this capability only reads");
    wide.end();
    provider.end();

    let options = ClientOptions { capability: Some(secret.to_owned()), ..ClientOptions::new("test") };
    let mut client = Client::connect(&instance.home().join("own-run/api.sock"), &options).unwrap();
    let daemon = client.call::<GetDaemonStatus>(&Nothing {}).unwrap();
    // Its own way to be stopped is a person's; this test may itself run inside an agent.
    assert!(Command::new("kill").arg(daemon.pid.to_string()).status().unwrap().success());
}

#[test]
fn a_provider_tells_of_its_own_sessions() {
    let instance = with_daemon();
    let mut session = Session::start(&instance, &["--provider", "one"]);
    let tools = session.tools();
    assert_eq!(
        tools,
        [
            "provider_start_session",
            "provider_stop_session",
            "provider_set_soft_lock",
            "provider_clear_soft_lock",
            "hold",
            "release_hold"
        ]
    );
    let started = session.done("provider_start_session", json!({"title": "a title", "cwd": "/"}));
    let id = started["session_id"].as_str().unwrap().to_owned();
    let key = format!("mcp/one:{id}");
    assert_eq!((&started["session"], &started["state"]), (&json!(key), &json!("working")));
    let explained = instance.json(&["explain", &key]);
    assert_eq!(explained["evidence"][0]["source"], "mcp", "{explained}");
    // It ends with the program that hosts the model: this one.
    assert_eq!(explained["session"]["pid"], std::process::id());

    let reason = json!({"session_id": id, "reason": "waiting_for_credentials"});
    assert_eq!(session.done("provider_set_soft_lock", reason)["state"], "waiting");
    assert_eq!(session.done("provider_clear_soft_lock", json!({"session_id": id}))["state"], "working");
    let stopped = session.done("provider_stop_session", json!({"session_id": id, "message": "done"}));
    assert_eq!(stopped["state"], "idle");
    session.done("provider_start_session", json!({"session_id": id}));
    assert_eq!(state(&instance, &key), "working");
    session.done("provider_stop_session", json!({"session_id": id, "end": true}));
    assert_eq!(state(&instance, &key), "ended");

    session.refused("provider_set_soft_lock", json!({"session_id": id}), "'reason' is missing");
    session.refused("provider_stop_session", json!({"session_id": "zzz"}), "no session matches");
    session.end();
}

#[test]
fn a_provider_reaches_nothing_of_another_s() {
    let instance = with_daemon();
    instance.json(&["start", "claude", "--id", "same"]);
    let foreign_hold = instance.json(&["hold", "--for", "10m"])["id"].as_str().unwrap().to_owned();
    let mut one = Session::start(&instance, &["--provider", "one"]);
    let mut two = Session::start(&instance, &["--provider", "two"]);
    one.done("provider_start_session", json!({"session_id": "same"}));
    // The same id, another key.
    two.refused("provider_stop_session", json!({"session_id": "same"}), "no session matches");
    two.done("provider_start_session", json!({"session_id": "same-and-more"}));
    // A beginning of its own id is not enough either, nor another's key spelled out.
    for id in ["same", "sam", "mcp/one:same", "claude:same", "../one:same"] {
        two.refused("provider_stop_session", json!({"session_id": id}), "no session matches");
        two.refused("provider_set_soft_lock", json!({"session_id": id, "reason": "x"}), "no session matches");
    }
    assert_eq!(state(&instance, "mcp/one:same"), "working");
    assert_eq!(state(&instance, "claude:same"), "working");

    let hold = one.done("hold", json!({"seconds": 600, "reason": "a long build"}));
    let hold_id = hold["hold_id"].as_str().unwrap().to_owned();
    assert_eq!(hold["owner"], "mcp/one");
    for id in [&hold_id, &foreign_hold] {
        two.refused("release_hold", json!({"hold_id": id}), "names no hold");
        two.refused("hold", json!({"hold_id": id, "seconds": 1, "reason": "x"}), "is another's");
    }
    one.refused("hold", json!({"seconds": 0, "reason": "x"}), "'seconds' is not a whole number");
    one.refused("hold", json!({"seconds": 5}), "'reason' is missing");
    let holds = instance.json(&["hold", "--list"]);
    assert_eq!(holds["holds"].as_array().unwrap().len(), 2, "{holds}");
    // What it took goes with it.
    one.end();
    two.end();
    let holds = instance.json(&["hold", "--list"]);
    let left: Vec<&str> =
        holds["holds"].as_array().unwrap().iter().filter_map(|hold| hold["id"].as_str()).collect();
    assert_eq!(left, [foreign_hold]);
}

/// A client that is killed by its terminal takes its server with it; what the server held must not stay.
#[cfg(unix)]
#[test]
fn a_signal_ends_a_provider_and_its_holds() {
    let instance = with_daemon();
    for signal in ["TERM", "INT", "HUP"] {
        let mut session = Session::start(&instance, &["--provider", "one"]);
        session.done("hold", json!({"seconds": 600, "reason": "a long build"}));
        session.done("hold", json!({"seconds": 600, "reason": "another"}));
        let pid = session.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        assert!(session.child.wait().unwrap().success(), "{signal}");
        let holds = instance.json(&["hold", "--list"]);
        assert_eq!(holds["holds"], json!([]), "{signal}");
    }
}

#[test]
fn a_provider_leaves_room_for_the_holds_of_others() {
    use watchkeeper_api::mcp::PROVIDER_HOLDS_MAX;
    let instance = with_daemon();
    let mut session = Session::start(&instance, &["--provider", "one"]);
    for id in 0..PROVIDER_HOLDS_MAX {
        session.done("hold", json!({"seconds": 600, "reason": "x", "hold_id": format!("h{id}")}));
    }
    session.refused("hold", json!({"seconds": 600, "reason": "x"}), "32 holds already");
    // One that it has is renewed, and one that it let go makes room.
    session.done("hold", json!({"seconds": 900, "reason": "x", "hold_id": "h0"}));
    session.done("release_hold", json!({"hold_id": "h0"}));
    session.done("hold", json!({"seconds": 600, "reason": "x"}));
    instance.json(&["hold", "--for", "10m"]);
    session.end();
    let left = instance.json(&["hold", "--list"]);
    assert_eq!(left["holds"].as_array().unwrap().len(), 1, "{left}");
}

/// More requests at once than may be open: they wait in the pipe, and each is answered.
#[test]
fn a_flood_is_answered_to_the_last() {
    let instance = Instance::new();
    let mut session = Session::start(&instance, &[]);
    let mut input = session.input.take().unwrap();
    let ids = 1000..4000;
    let asked = ids.clone();
    let writing = std::thread::spawn(move || {
        for id in asked {
            let line = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
            input.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
        input
    });
    let mut answered: Vec<u64> = ids.clone().map(|_| session.read()["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert!(answered.into_iter().eq(ids));
    session.input = Some(writing.join().unwrap());
    session.end();
}

#[test]
fn without_a_daemon_every_tool_says_so_and_starts_none() {
    let instance = Instance::new();
    let mut session = Session::start(&instance, &["--allow-write"]);
    for tool in ["get_status", "list_sessions", "why"] {
        session.refused(tool, json!({}), "no daemon answers");
    }
    session.refused("explain", json!({"session": "x"}), "watchkeeper up");
    session.refused("update_settings", json!({"settings": {"keep_awake": "off"}}), "no daemon answers");
    session.end();
    let mut session = Session::start(&instance, &["--provider", "one"]);
    session.refused("provider_start_session", json!({}), "no daemon answers");
    session.refused("hold", json!({"seconds": 5, "reason": "x"}), "no daemon answers");
    session.end();
    assert_eq!(instance.said(&["why"]).0, Some(1), "none was started");
}

#[test]
fn hostile_lines_harm_nobody() {
    let instance = with_daemon();
    let mut session = Session::start(&instance, &[]);
    for line in ["", "{", "null", "[]", "\u{0}", "{\"jsonrpc\":\"2.0\"}", "{\"id\":1e999}"] {
        session.write(line);
    }
    session.write(&"[".repeat(200_000));
    session.write(&format!("{{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"{}\"}}", "x".repeat(2 << 20)));
    session.input.as_mut().unwrap().write_all(b"\xff\xfe\n").unwrap();
    session.done("why", json!({}));
    session.refused("explain", json!({"session": "x".repeat(5000)}), "more than 4096 bytes");
    session.refused("explain", json!({"session": "\u{1b}[31m\u{0}\u{202e}"}), "no session matches");
    let odd = session.ask("tools/call", json!({"name": "\u{1b}[31m", "arguments": {}}));
    assert!(!odd["error"]["message"].as_str().unwrap().contains('\u{1b}'), "{odd}");
    let odd = session.ask("tools/call", json!({"name": "why", "arguments": [1]}));
    assert!(odd["error"].is_object(), "{odd}");
    session.done("get_status", json!({}));
    session.end();
    for name in ["", "a b", "a/b", "x:y"] {
        let (code, _, err) = instance.said(&["mcp", "--provider", name]);
        assert_eq!(code, Some(2), "{name}: {err}");
    }
    // Many calls at once: each is answered.
    let mut session = Session::start(&instance, &[]);
    for id in 1000..1040 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "why", "arguments": {}}});
        session.write(&call.to_string());
    }
    let mut answered: Vec<u64> = (0..40).map(|_| session.read()["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, (1000..1040).collect::<Vec<u64>>());
    session.end();
}

#[test]
fn a_client_that_says_nothing_leaves_in_peace() {
    let instance = Instance::new();
    Session::raw(&instance, &[]).end();
    Session::raw(&instance, &["--provider", "one"]).end();
}

/// The parent dies while somebody else keeps the server's standard input open.
#[cfg(unix)]
#[test]
fn it_ends_with_its_parent() {
    let instance = Instance::new();
    let program = env!("CARGO_BIN_EXE_watchkeeper");
    // The shell stays the server's parent; the other end of the input stays with this test.
    let mut shell = Command::new("/bin/sh")
        .args(["-c", "exec 3<&0; \"$0\" mcp --home \"$1\" <&3 & wait", program])
        .arg(instance.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    let mut output = BufReader::new(shell.stdout.take().unwrap());
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    input.write_all(format!("{hello}\n").as_bytes()).unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.contains("serverInfo"), "{line}");
    shell.kill().unwrap();
    shell.wait().unwrap();
    // The server holds the other end of this output: it reads to its end when the server has gone.
    line.clear();
    assert_eq!(output.read_line(&mut line).unwrap(), 0, "{line}");
    drop(input);
}
