use super::*;

static RULES: AncestryRules<'static> = AncestryRules {
    stems: &["agent"],
    path_contains: &["agent/versions"],
    scripts: &[("node", "agent-package/cli.js"), ("gh", "agent")],
    helpers: &["helper", "daemon"],
    shared: &["server"],
    wrapper_scripts: &["bin/agent"],
    print_options: &[],
};

/// A chain from the hook upwards: (exe, argv); pids fall, start times too, pid 1 at the end.
fn chain(processes: &[(&str, &[&str])]) -> Vec<ProcessInfo> {
    let mut chain: Vec<ProcessInfo> = (100_u32..)
        .zip(processes.iter().rev())
        .map(|(pid, (exe, argv))| ProcessInfo {
            pid,
            ppid: if pid == 100 { 1 } else { pid - 1 },
            start: u64::from(pid),
            exe: (*exe).to_owned(),
            comm: String::new(),
            argv: argv.iter().map(|a| (*a).to_owned()).collect(),
        })
        .collect();
    chain.reverse();
    chain.push(ProcessInfo { pid: 1, exe: "/bin/agent".to_owned(), ..ProcessInfo::default() });
    chain
}

fn check(processes: &[(&str, &[&str])], expected: Result<(usize, bool), &str>) {
    let found = match find(&RULES, &chain(processes)) {
        Found::Agent { index, shared } => Ok((index, shared)),
        Found::None { why } | Found::Unknown { why } => Err(why),
    };
    assert_eq!(found, expected, "{processes:?}");
}

const HOOK: (&str, &[&str]) = ("/usr/bin/hook", &["hook", "agent", "Stop"]);
const SHELL: (&str, &[&str]) = ("/bin/dash", &["/bin/sh", "-c", "hook agent Stop"]);

#[test]
fn matches_by_executable_script_and_install_folder() {
    check(&[HOOK, SHELL, ("/opt/x/agent", &["agent"])], Ok((2, false)));
    check(&[HOOK, ("C:\\Users\\d\\Agent.EXE", &["Agent.EXE"])], Ok((1, false)));
    check(&[HOOK, ("/opt/agent (deleted)", &["agent"])], Ok((1, false)));
    check(&[HOOK, ("/home/d/.local/share/agent/versions/2.1.3", &["agent"])], Ok((1, false)));
    check(&[HOOK, ("/usr/bin/node", &["node", "--x", "/lib/agent-package/cli.js", "-p"])], Ok((1, false)));
    check(&[HOOK, ("/usr/bin/gh", &["gh", "agent"])], Ok((1, false)));
}

#[test]
fn never_guesses() {
    let first = Err("reached the first process");
    check(&[HOOK, SHELL], first);
    // Neither a name in an argument, nor a longer name, nor a folder with the name.
    check(&[HOOK, ("/usr/bin/vim", &["vim", "agent"])], first);
    check(&[HOOK, ("/usr/bin/agent-acp", &["agent"])], first);
    check(&[HOOK, ("/usr/bin/agent/run", &["run"])], first);
    check(
        &[HOOK, ("/usr/bin/node", &["node", "/srv/other-package/cli.js", "/x/agent-package/cli.js"])],
        first,
    );
    assert_eq!(find(&RULES, &[]), Found::None { why: "no ancestor is this agent" });
}

#[test]
fn passes_over_helpers_and_names_shared_hosts() {
    let agent: (&str, &[&str]) = ("/opt/agent", &["/opt/agent", "--id", "7", "helper"]);
    let helper: (&str, &[&str]) = ("/opt/agent", &["agent helper", "--socket", "x"]);
    let daemon: (&str, &[&str]) = ("/opt/agent", &["/opt/agent", "daemon", "run"]);
    check(&[HOOK, helper, daemon], Err("reached the first process"));
    check(&[HOOK, ("/opt/agent", &["agent"]), helper, daemon], Ok((1, false)));
    // A prompt that is a helper's word is no helper.
    check(&[HOOK, ("/opt/agent", &["agent", "-p", "daemon"])], Ok((1, false)));
    check(&[HOOK, agent], Err("reached the first process"));
    check(&[HOOK, ("/opt/agent", &["agent", "-c", "a=b", "server"])], Ok((1, true)));
    check(&[HOOK, ("/opt/agent", &["agent", "exec", "server"])], Ok((1, false)));
}

#[test]
fn uses_a_wrapper_only_without_its_native_child() {
    let wrapper: (&str, &[&str]) = ("/usr/bin/node", &["node", "/usr/lib/bin/agent", "exec"]);
    check(&[HOOK, ("/opt/agent", &["agent"]), wrapper], Ok((1, false)));
    check(&[HOOK, wrapper], Ok((1, false)));
    check(&[HOOK, ("/opt/agent", &["agent", "daemon"]), wrapper], Err("reached the first process"));
}

#[test]
fn stops_where_the_chain_lies() {
    let check_chain = |change: &dyn Fn(&mut Vec<ProcessInfo>), why| {
        let mut lies = chain(&[HOOK, SHELL, ("/opt/agent", &["agent"])]);
        change(&mut lies);
        assert_eq!(find(&RULES, &lies), Found::None { why });
    };
    check_chain(&|c| c[2].start = 999, "a parent is younger than its child");
    check_chain(&|c| c[1].ppid = 77, "a parent is missing");
    check_chain(
        &|c| {
            c[1].ppid = c[0].pid;
            c[2].pid = c[0].pid;
        },
        "the chain runs in a circle",
    );
    let long: Vec<(&str, &[&str])> =
        std::iter::repeat_n(SHELL, MAX_HOPS).chain([("/opt/agent", &["agent"][..])]).collect();
    check(&long, Err("more than 32 ancestors"));
}

#[test]
fn trusts_the_short_name_only_without_an_executable() {
    let mut unreadable = chain(&[HOOK, ("", &[])]);
    unreadable[1].comm = "agent".to_owned();
    assert_eq!(find(&RULES, &unreadable), Found::Agent { index: 1, shared: false });
    unreadable[1].exe = "/usr/bin/other".to_owned();
    assert_eq!(find(&RULES, &unreadable), Found::None { why: "reached the first process" });
}
