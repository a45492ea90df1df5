//! A spooled event tells of which processes it is.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::Write as _,
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use watchkeeper_frame::ancestry::{Ancestor, Ancestry, descent, namespace};

use crate::rig::{Home, each_hook, finish, run, spawn};

fn start_of(pid: u32) -> u64 {
    descent(&fs::read(format!("/proc/{pid}/stat")).unwrap()).unwrap().start
}

/// A shell under an agent's name.
fn agent(home: &Home) -> PathBuf {
    let agent = home.dir.join("claude");
    // By a process of its own: what another test forks at this moment would keep our copy from being run.
    assert!(Command::new("cp").arg("/bin/sh").arg(&agent).status().unwrap().success());
    agent
}

#[test]
fn a_spooled_event_names_its_ancestors() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        let agent = agent(&home);
        // It stays, so that it can be looked at, until its input ends.
        let script = "\"$0\" --home \"$1\" claude Stop </dev/null; echo; read -r end";
        let mut command = Command::new(&agent);
        command.args(["-c", script]).arg(&hook.program).arg(&home.dir);
        let started = Instant::now();
        let mut living = spawn(&mut command);
        let mut byte = [0];
        std::io::Read::read_exact(living.stdout.as_mut().unwrap(), &mut byte).unwrap();
        let event = home.one_spooled_event();
        let read = Ancestry::parse(&event.ancestry).unwrap();
        let link = fs::read_link("/proc/self/ns/pid").unwrap();
        assert_eq!(read.namespaces.pid, namespace(link.as_os_str().as_bytes()));
        let ancestors: Vec<Ancestor<'_>> = read.ancestors().collect();
        let mut arguments = Vec::new();
        for word in
            [agent.as_os_str(), "-c".as_ref(), script.as_ref(), hook.program.as_ref(), home.dir.as_ref()]
        {
            arguments.extend_from_slice(word.as_bytes());
            arguments.push(0);
        }
        let expected = Ancestor {
            pid: living.id(),
            start: start_of(living.id()),
            executable: agent.as_os_str().as_bytes(),
            name: b"claude",
            arguments: &arguments,
        };
        assert_eq!(ancestors.first(), Some(&expected), "{}", hook.name);
        let ours = std::process::id();
        assert_eq!(ancestors.get(1).map(|a| (a.pid, a.start)), Some((ours, start_of(ours))), "{}", hook.name);
        living.stdin.take().unwrap().write_all(b"\n").unwrap();
        finish(living, started);
    });
}

#[test]
fn a_long_line_of_ancestors_is_cut_and_long_arguments_are_left_out() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        let mut script = "\"$0\" --home \"$1\" claude Stop </dev/null; :".to_owned();
        for _ in 0..3 {
            script = format!("sh -c '{}' \"$0\" \"$1\"; :", script.replace('\'', "'\\''"));
        }
        // Eight shells above the hook, one of them with long arguments.
        for _ in 0..5 {
            script = format!("( {script} ); :");
        }
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(&hook.program).arg(&home.dir).arg("x".repeat(3000));
        command.stdin(Stdio::null());
        run(&mut command, b"");
        let event = home.one_spooled_event();
        let read = Ancestry::parse(&event.ancestry).unwrap();
        let ancestors: Vec<Ancestor<'_>> = read.ancestors().collect();
        assert_eq!(ancestors.len(), watchkeeper_frame::ancestry::ANCESTORS_MAX, "{}", hook.name);
        assert!(ancestors.windows(2).all(|pair| pair[0].start >= pair[1].start));
        assert!(ancestors.iter().all(|a| a.arguments.is_empty() || a.arguments.ends_with(b"\0")));
    });
}
