//! `doctor`: one line a check. What only the daemon can know it is asked; that it is there is seen by dialling it.

use std::{
    io,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::sync_channel,
    thread,
    time::Duration,
};

use watchkeeper_api::{
    ClientError,
    method::{Check, CheckLevel, Doctor, GetDoctor, GetStatus, Nothing},
    status::Machine,
};

use crate::{
    app::{App, Outcome},
    exit,
    output::{plain, rows, style},
};

use super::hooks;

/// How long an agent may take to say its version.
const VERSION_WITHIN: Duration = Duration::from_secs(5);
/// Longest version shown.
const VERSION_CHARS: usize = 60;
/// Less free space than this is a warning: the journal needs some.
#[cfg(unix)]
const FREE_BYTES_MIN: u64 = 200 * 1024 * 1024;

pub(super) fn run(app: &App) -> Outcome {
    let mut checks = daemon(app);
    checks.extend(disk(&app.instance.place.state));
    checks.extend(agents(app));
    let worst = checks.iter().map(|check| check.level).max().unwrap_or(CheckLevel::Ok);
    let doctor = Doctor { checks };
    app.answer(&doctor, |app| text(app, &doctor.checks))?;
    Ok(if worst == CheckLevel::Fail { exit::FAILED } else { exit::SUCCESS })
}

fn check(name: &str, level: CheckLevel, detail: impl Into<String>, fix: Option<&str>) -> Check {
    Check { name: name.into(), level, detail: detail.into(), fix: fix.map(Into::into) }
}

/// The daemon, and what it says of itself and the machine.
fn daemon(app: &App) -> Vec<Check> {
    let path = app.instance.api();
    let mut client = match app.dial() {
        Ok(client) => client,
        Err(error) => {
            let why =
                std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            let fix = if error.is_unreachable() {
                "start it with `watchkeeper up`"
            } else {
                "`watchkeeper daemon restart`"
            };
            return vec![check("daemon", CheckLevel::Fail, format!("{error}{why}"), Some(fix))];
        }
    };
    let version = client.hello().version.clone();
    let ours = env!("CARGO_PKG_VERSION");
    let mut checks = vec![if version == ours {
        check("daemon", CheckLevel::Ok, format!("version {version} answers at {}", path.display()), None)
    } else {
        let detail = format!("version {version} answers, this program is {ours}");
        check("daemon", CheckLevel::Warn, detail, Some("`watchkeeper daemon restart`"))
    }];
    match client.call::<GetDoctor>(&Nothing {}) {
        Ok(doctor) => checks.extend(doctor.checks),
        Err(error) => checks.push(unanswered("daemon-checks", &error)),
    }
    match client.call::<GetStatus>(&Nothing {}) {
        Ok(status) => checks.extend(sources(&status.machine)),
        Err(error) => checks.push(unanswered("sources", &error)),
    }
    checks
}

fn unanswered(name: &str, error: &ClientError) -> Check {
    check(name, CheckLevel::Unknown, error.to_string(), Some("`watchkeeper daemon restart`"))
}

/// Whether lid, displays and power can be read here.
fn sources(machine: &Machine) -> [Check; 3] {
    let known = |name, value: Option<String>| match value {
        Some(value) => check(name, CheckLevel::Ok, value, None),
        None => check(name, CheckLevel::Unknown, "not readable here; unknown never suspends", None),
    };
    let word = |word: &str| (word != "unknown").then(|| word.to_owned());
    [
        known("lid", word(&machine.lid)),
        known("power", word(&machine.power)),
        known("displays", machine.displays.map(|count| format!("{count} external"))),
    ]
}

#[cfg(unix)]
fn disk(state: &Path) -> Vec<Check> {
    // The folder may not be there before the first start.
    let Some(folder) = state.ancestors().find(|folder| folder.is_dir()) else { return Vec::new() };
    vec![match rustix::fs::statvfs(folder) {
        Ok(space) => {
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            let detail = format!("{} MiB free at {}", free / 1024 / 1024, folder.display());
            let low = free < FREE_BYTES_MIN;
            let fix = low.then_some("make room: events that cannot be stored are not acknowledged");
            check("disk", if low { CheckLevel::Warn } else { CheckLevel::Ok }, detail, fix)
        }
        Err(errno) => check("disk", CheckLevel::Unknown, format!("{}: {errno}", folder.display()), None),
    }]
}

#[cfg(not(unix))]
fn disk(state: &Path) -> Vec<Check> {
    vec![check(
        "disk",
        CheckLevel::Unknown,
        format!("{}: free space is not read on this system", state.display()),
        None,
    )]
}

/// Each agent that is here: its version, and whether it is wired up.
fn agents(app: &App) -> Vec<Check> {
    let agents = match hooks::agents(app) {
        Ok(agents) => agents,
        Err(complaint) => {
            return vec![check(
                "hooks",
                CheckLevel::Fail,
                complaint.text(&crate::output::Terminal::PLAIN),
                None,
            )];
        }
    };
    let present: Vec<_> = agents.iter().filter(|agent| agent.present).collect();
    if present.is_empty() {
        return vec![check("agents", CheckLevel::Warn, "no coding agent found that Watchkeeper knows", None)];
    }
    let mut checks = Vec::new();
    for agent in present {
        let name = agent.agent.name();
        checks.push(match agent.program.as_deref().map(version) {
            None => check(
                &format!("agent-{name}"),
                CheckLevel::Ok,
                "its folder is here, no program on PATH",
                None,
            ),
            Some(Ok(version)) => check(&format!("agent-{name}"), CheckLevel::Ok, version, None),
            Some(Err(error)) => {
                check(&format!("agent-{name}"), CheckLevel::Unknown, format!("its version: {error}"), None)
            }
        });
        let hooks = format!("hooks-{name}");
        checks.push(if agent.is_working() {
            check(&hooks, CheckLevel::Ok, "wired up", None)
        } else {
            let details = hooks::details(agent);
            let (fixes, facts): (Vec<_>, Vec<_>) = details.iter().partition(|line| line.starts_with("do: "));
            let facts: Vec<&str> = facts.into_iter().map(String::as_str).collect();
            let detail = if facts.is_empty() { "not wired up".into() } else { facts.join("; ") };
            check(&hooks, CheckLevel::Warn, detail, fixes.first().map(|fix| &fix[4..]))
        });
    }
    checks
}

/// What `PROGRAM --version` prints first, within a limit.
fn version(program: &Path) -> io::Result<String> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = child.stdout.take();
    let (read, line) = sync_channel(1);
    thread::spawn(move || {
        let mut text = Vec::new();
        let outcome = output
            .map_or(Ok(0), |output| io::Read::read_to_end(&mut io::Read::take(output, 4096), &mut text));
        // Nobody listens when the time is over.
        _ = read.send(outcome.map(|_| text));
    });
    let text = line.recv_timeout(VERSION_WITHIN);
    // It has said what was wanted, or has had its time.
    _ = child.kill();
    _ = child.wait();
    let text = text.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let text = String::from_utf8_lossy(&text);
    let first = plain(text.lines().next().unwrap_or_default());
    if first.is_empty() {
        Err(io::Error::other("it says nothing"))
    } else {
        Ok(crate::output::cut(&first, VERSION_CHARS))
    }
}

fn text(app: &App, checks: &[Check]) -> String {
    let cells: Vec<Vec<String>> = checks
        .iter()
        .map(|check| {
            let fix = check.fix.as_ref().map(|fix| format!(" — do: {}", plain(fix))).unwrap_or_default();
            vec![word(check.level).into(), plain(&check.name), format!("{}{fix}", plain(&check.detail))]
        })
        .collect();
    let lines = rows(&cells, |row, column, cell| match (column, checks[row].level) {
        (0, CheckLevel::Ok) => app.terminal.paint(style::GOOD, cell),
        (0, CheckLevel::Warn | CheckLevel::Unknown) => app.terminal.paint(style::WARN, cell),
        (0, CheckLevel::Fail) => app.terminal.paint(style::BAD, cell),
        _ => cell.into(),
    });
    lines.join("\n") + "\n"
}

const fn word(level: CheckLevel) -> &'static str {
    match level {
        CheckLevel::Ok => "ok",
        CheckLevel::Unknown => "unknown",
        CheckLevel::Warn => "warn",
        CheckLevel::Fail => "fail",
    }
}
