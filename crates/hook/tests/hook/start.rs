//! Who begins work starts the daemon, detached, with nothing of the agent's.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use watchkeeper_frame::{Place, Reply};

use crate::rig::{self, BOUND, Home, Hook, Server, each_hook, run};

/// Stands where the daemon would: writes down how it was started, then lives on as a process that does nothing, so
/// that a pipe it kept open would hold the hook's parent.
const DAEMON: &str = r#"#!/bin/sh
out="$(dirname "$0")/started"
{
    echo "arguments $*"
    echo "pid $$"
    echo "directory $(pwd)"
    echo "session $(cut -d ' ' -f 6 /proc/$$/stat)"
    echo "files $(ls /proc/$$/fd | tr '\n' ' ')"
    echo "output $(readlink /proc/$$/fd/1 /proc/$$/fd/0 | tr '\n' ' ')"
    tr '\0' '\n' < /proc/$$/environ | sed 's/^/env /'
    echo end
} > "$out.$$" 2>&1
mv "$out.$$" "$out"
exec sleep 20
"#;

struct Installed {
    home: Home,
    hook: Hook,
}

impl Installed {
    fn new(hook: &Hook) -> Self {
        let home = Home::new();
        let program = home.dir.join("watchkeeper-hook");
        fs::copy(&hook.program, &program).unwrap();
        let daemon = home.dir.join("watchkeeper");
        let mut file = fs::File::create(&daemon).unwrap();
        file.write_all(DAEMON.as_bytes()).unwrap();
        drop(file);
        fs::set_permissions(&daemon, fs::Permissions::from_mode(0o755)).unwrap();
        Self { home, hook: Hook { name: hook.name, program } }
    }

    /// Waits until the daemon has said how it was started, and ends it.
    fn started(&self) -> BTreeMap<String, Vec<String>> {
        let path = self.home.dir.join("started");
        let deadline = Instant::now() + BOUND;
        let text = loop {
            match fs::read_to_string(&path) {
                Ok(text) => break text,
                Err(_) => assert!(Instant::now() < deadline, "{}: no daemon was started", self.hook.name),
            }
            thread::sleep(Duration::from_millis(5));
        };
        fs::remove_file(&path).unwrap();
        let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (word, rest) in text.lines().filter_map(|line| line.split_once(' ')) {
            said.entry(word.to_owned()).or_default().push(rest.trim().to_owned());
        }
        // The shell's own: a bare system has no program of that name.
        let status = Command::new("sh").args(["-c", "kill \"$0\"", &said["pid"][0]]).status().unwrap();
        assert!(status.success());
        said
    }

    fn has_started(&self) -> bool {
        let mut entries = fs::read_dir(&self.home.dir).unwrap();
        entries.any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with("started"))
    }
}

#[test]
fn it_is_started_detached_and_clean() {
    each_hook(Duration::ZERO, |hook| {
        let installed = Installed::new(hook);
        let mut command = installed.home.command(&installed.hook, &["claude", "SessionStart"]);
        command
            .env("SECRET", "x")
            .env("HOME", "/elsewhere")
            .env("LD_PRELOAD", "")
            .env("PATH", "/bin:/usr/bin");
        command.env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/rig/bus").current_dir(&installed.home.dir);
        // It returns although the daemon lives: the daemon has none of its pipes.
        run(&mut command, b"{}");
        let said = installed.started();
        assert_eq!(said["arguments"], [format!("daemon run --home {}", installed.home.dir.display())]);
        assert_eq!(said["directory"], ["/"]);
        assert_eq!(said["session"], said["pid"], "{}: not the leader of its own session", hook.name);
        assert_eq!(said["output"].len(), 1);
        let variables: BTreeMap<_, _> = said["env"].iter().filter_map(|line| line.split_once('=')).collect();
        assert!(!variables.contains_key("SECRET") && !variables.contains_key("LD_PRELOAD"));
        assert_eq!(variables["HOME"], watchkeeper_frame::place::user_home().unwrap().to_str().unwrap());
        assert_eq!(variables["DBUS_SYSTEM_BUS_ADDRESS"], "unix:path=/rig/bus");
        assert!(variables["PATH"].starts_with("/usr/local/sbin:"));
        assert_eq!(installed.home.all_spooled(1).len(), 1);
    });
}

#[test]
fn explicit_directories_are_handed_on_and_the_bus_is_not() {
    each_hook(Duration::ZERO, |hook| {
        let installed = Installed::new(hook);
        let Place { config, state, run: runtime } = installed.home.place();
        let mut command = Command::new(&installed.hook.program);
        command.arg("--run").arg(&runtime).arg("--state").arg(&state).arg("--config").arg(&config);
        command.args(["copilot", "userPromptSubmitted"]).env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/rig/bus");
        run(&mut command, b"{}");
        let said = installed.started();
        let show = Path::display;
        let expected = format!(
            "daemon run --run {} --state {} --config {}",
            show(&runtime),
            show(&state),
            show(&config)
        );
        assert_eq!(said["arguments"], [expected]);
        assert!(!said["env"].iter().any(|line| line.contains("/rig/bus")), "{}", hook.name);
    });
}

#[test]
fn only_the_beginning_of_work_starts_it() {
    each_hook(Duration::ZERO, |hook| {
        let installed = Installed::new(hook);
        for event in ["PreToolUse", "Stop", "SessionEnd", "", "Nonsense"] {
            run(&mut installed.home.command(&installed.hook, &["claude", event]), b"{}");
        }
        // One that is alive but slow is not started again.
        let silent = Server::start(&installed.home, |mut stream| {
            rig::request(&mut stream);
            stream
        });
        run(&mut installed.home.command(&installed.hook, &["claude", "SessionStart"]), b"{}");
        drop(silent.next());
        fs::remove_file(installed.home.place().hook_socket()).unwrap();
        assert!(!installed.has_started(), "{}", hook.name);
        run(&mut installed.home.command(&installed.hook, &["claude", "UserPromptSubmit"]), b"{}");
        installed.started();
        assert!(!installed.has_started(), "{}: more than one was started", hook.name);
    });
}

#[test]
fn one_that_is_leaving_is_started_again() {
    each_hook(Duration::ZERO, |hook| {
        let installed = Installed::new(hook);
        let leaving = Reply::Refused(watchkeeper_frame::Refusal::ShuttingDown).to_bytes().unwrap();
        let server = rig::answering(&installed.home, vec![leaving]);
        run(&mut installed.home.command(&installed.hook, &["gemini", "BeforeAgent"]), b"{}");
        server.next();
        installed.started();
    });
}

#[test]
fn a_missing_daemon_or_a_relative_instance_is_no_trouble() {
    each_hook(Duration::ZERO, |hook| {
        let installed = Installed::new(hook);
        let mut command = Command::new(&installed.hook.program);
        command.args(["--home", ".", "claude", "SessionStart"]).current_dir(&installed.home.dir);
        run(&mut command, b"{}");
        fs::remove_file(installed.home.dir.join("watchkeeper")).unwrap();
        run(&mut installed.home.command(&installed.hook, &["claude", "SessionStart"]), b"{}");
        assert_eq!(installed.home.all_spooled(2).len(), 2, "{}", hook.name);
        assert!(!installed.has_started());
    });
}
