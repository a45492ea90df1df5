//! What the agent may do to the hook's input and command line.

use std::{
    fs::File,
    io::Write as _,
    process::Stdio,
    time::{Duration, Instant},
};

use watchkeeper_frame::{
    Flags,
    wire::{AGENT_MAX_BYTES, ARGV_MAX_ITEMS, EVENT_MAX_BYTES, PAYLOAD_MAX_BYTES},
};

use crate::rig::{self, Home, check, each_hook, run, spawn, taking};

/// What the hook gives its input; then it goes on.
const INPUT_TIME: Duration = Duration::from_millis(140);

#[test]
fn any_bytes_pass_unchanged() {
    let all: Vec<u8> = (0..=255).collect();
    let large = all.repeat(12_000);
    for payload in [&b""[..], b"\n", b"\0\xff\xfe{", &all, &large] {
        each_hook(Duration::ZERO, |hook| {
            let home = Home::new();
            let server = taking(&home);
            run(&mut home.command(hook, &["codex", "Stop"]), payload);
            check(&server.next(), "codex", "Stop", payload, Flags::default());
        });
    }
}

#[test]
fn input_that_never_ends_is_sent_as_far_as_it_came() {
    each_hook(INPUT_TIME, |hook| {
        let home = Home::new();
        let server = taking(&home);
        let started = Instant::now();
        let mut child = spawn(&mut home.command(hook, &["claude", "Stop"]));
        let mut open = child.stdin.take().unwrap();
        open.write_all(b"{\"half\":").unwrap();
        let ran = rig::finish(child, started);
        let request = server.next();
        check(&request, "claude", "Stop", b"{\"half\":", Flags::INCOMPLETE);
        assert_eq!(request.head().original_payload_bytes, 8);
        assert!(ran.elapsed >= INPUT_TIME, "{}: it did not wait", hook.name);
        drop(open);
    });
}

#[test]
fn too_long_input_is_cut_and_its_length_told() {
    const LENGTH: usize = 50 * 1024 * 1024;
    let home = Home::new();
    let path = home.dir.join("large");
    File::create(&path).unwrap().write_all(&vec![b'z'; LENGTH]).unwrap();
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        let server = taking(&home);
        let mut command = home.command(hook, &["claude", "PostToolUse"]);
        let child = command
            .stdin(File::open(&path).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        rig::finish(child, Instant::now());
        let request = server.next();
        let seen = usize::try_from(request.head().original_payload_bytes).unwrap();
        // On a machine too slow to read all of it in time, less is seen, and that is told too.
        let mut flags = Flags::default();
        if seen > PAYLOAD_MAX_BYTES {
            flags = flags.with(Flags::TRUNCATED);
        }
        if seen < LENGTH {
            flags = flags.with(Flags::INCOMPLETE);
        }
        let payload = vec![b'z'; seen.min(PAYLOAD_MAX_BYTES)];
        check(&request, "claude", "PostToolUse", &payload, flags);
    });
}

#[test]
fn whatever_the_command_line_says_arrives() {
    each_hook(Duration::ZERO, |hook| {
        let check_line = |arguments: &[&str], agent: &str, event: &str, flags: Flags| {
            let home = Home::new();
            let server = taking(&home);
            run(&mut home.command(hook, arguments), b"{}");
            let request = server.next();
            check(&request, agent, event, b"{}", flags);
            request
        };
        check_line(&[], "", "", Flags::default());
        check_line(&["nobody"], "nobody", "", Flags::default());
        check_line(&["--odd", "Stop"], "--odd", "Stop", Flags::default());
        check_line(&["claude", "Löschen\n"], "claude", "Löschen\n", Flags::default());
        let long = "n".repeat(500);
        let cut = |max: usize| "n".repeat(max);
        check_line(&[&long, &long], &cut(AGENT_MAX_BYTES), &cut(EVENT_MAX_BYTES), Flags::ARGS_CUT);
        let mut many = vec!["codex", "notify"];
        many.extend(["x"; ARGV_MAX_ITEMS + 4]);
        let request = check_line(&many, "codex", "notify", Flags::ARGS_CUT);
        assert_eq!(request.view().unwrap().argv().count(), ARGV_MAX_ITEMS);
        let large = "j".repeat(100_000);
        let request = check_line(&["codex", "notify", &large], "codex", "notify", Flags::ARGS_CUT);
        assert!(request.view().unwrap().argv().next().unwrap().len() > 60_000);
    });
}

#[test]
fn it_says_which_hook_it_is() {
    each_hook(Duration::ZERO, |hook| {
        let ran = run(std::process::Command::new(&hook.program).arg("--version"), b"");
        assert_eq!(ran.stdout, format!("watchkeeper-hook {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
    });
}
