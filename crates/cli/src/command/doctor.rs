//! `doctor`: one line a check. What only the daemon can know it is asked; that it is there is seen by dialling it.

use std::{
    io,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::sync_channel,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use watchkeeper_agents::maturity::Stage;
use watchkeeper_api::{
    ClientError, Time,
    method::{Check, CheckLevel, DaemonStatus, Doctor, GetDaemonStatus, GetDoctor, GetStatus, Nothing},
    status::Machine,
};
use watchkeeper_core::Wall;

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
/// A session that ran when the daemon started may end without a hook that is heard; later files are another's.
const SILENT_MS: i64 = 60_000;
/// Entries below an agent's folder that are looked at for the time of the last transcript.
const FILES_LOOKED_AT_MAX: usize = 20_000;
/// Folders below an agent's folder that are looked into (Codex: sessions/YEAR/MONTH/DAY).
const FOLDERS_DEEP_MAX: usize = 5;
/// Less free space than this is a warning: the journal needs some.
#[cfg(unix)]
const FREE_BYTES_MIN: u64 = 200 * 1024 * 1024;

pub(super) fn run(app: &App) -> Outcome {
    let (mut checks, status) = daemon(app);
    checks.extend(disk(&app.instance.place.state));
    let of_agents = agents(app, status.as_ref(), &checks);
    checks.extend(of_agents);
    let worst = checks.iter().map(|check| check.level).max().unwrap_or(CheckLevel::Ok);
    let doctor = Doctor { checks };
    app.answer(&doctor, |app| text(app, &doctor.checks))?;
    Ok(if worst == CheckLevel::Fail { exit::FAILED } else { exit::SUCCESS })
}

fn check(name: &str, level: CheckLevel, detail: impl Into<String>, fix: Option<&str>) -> Check {
    Check { name: name.into(), level, detail: detail.into(), fix: fix.map(Into::into) }
}

/// The daemon, and what it says of itself and the machine.
fn daemon(app: &App) -> (Vec<Check>, Option<DaemonStatus>) {
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
            return (vec![check("daemon", CheckLevel::Fail, format!("{error}{why}"), Some(fix))], None);
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
    let status = client.call::<GetDaemonStatus>(&Nothing {});
    if let Err(error) = &status {
        checks.push(unanswered("daemon-status", error));
    }
    (checks, status.ok())
}

fn unanswered(name: &str, error: &ClientError) -> Check {
    // The daemon knows better what to do where it answered at all.
    let hint = match error {
        ClientError::Remote { failure, .. } => failure.hint.as_deref(),
        ClientError::Unreachable { .. }
        | ClientError::Untrusted { .. }
        | ClientError::TimedOut { .. }
        | ClientError::Closed { .. }
        | ClientError::Broken { .. }
        | ClientError::Protocol { .. } => Some("`watchkeeper daemon restart`"),
    };
    check(name, CheckLevel::Unknown, error.to_string(), hint)
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

/// Each agent that is here: its version and how well its adapter is known to fit it, whether it is wired up, and whether
/// anything was heard of it, where the daemon has not told.
fn agents(app: &App, status: Option<&DaemonStatus>, told: &[Check]) -> Vec<Check> {
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
        let said = agent.program.as_deref().map(version);
        let stage = Stage::of(agent.agent, said.as_ref().and_then(|said| said.as_deref().ok()));
        let (level, detail) = match said {
            None => (CheckLevel::Ok, format!("its folder is here, no program on PATH; {stage}")),
            Some(Ok(version)) => (CheckLevel::Ok, format!("{version}; {stage}")),
            Some(Err(error)) => (CheckLevel::Unknown, format!("its version: {error}; {stage}")),
        };
        checks.push(check(&format!("agent-{name}"), level, detail, None));
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
        let Some(status) = status.filter(|status| agent.is_working() && !status.heard.contains_key(name))
        else {
            continue;
        };
        let heard = format!("heard-{name}");
        if let Some(silent) = silent(name, &agent.home, status.started_at) {
            checks.push(silent);
        } else if !told.iter().any(|check| check.name == heard) {
            checks.push(check(
                &heard,
                CheckLevel::Ok,
                "nothing was heard of it since the daemon started",
                None,
            ));
        }
    }
    checks
}

/// An agent that writes transcripts while no hook of it is heard passes its hooks over.
fn silent(name: &str, home: &Path, since: Time) -> Option<Check> {
    let written = newest_transcript(home)?.duration_since(UNIX_EPOCH).ok()?.as_millis();
    let written = i64::try_from(written).ok()?;
    if written <= since.0.0.saturating_add(SILENT_MS) {
        return None;
    }
    let detail = format!(
        "wired up, but no hook was heard since the daemon started ({since}), while files of its sessions were written \
         (last {})",
        Time(Wall(written))
    );
    let fix = "start it, look at its hooks and approve them; one that ran before they were installed must be restarted";
    Some(check(&format!("silent-{name}"), CheckLevel::Warn, detail, Some(fix)))
}

/// When the newest JSON lines below an agent's folder were written. Blocks for at most [`FILES_LOOKED_AT_MAX`] entries;
/// beyond them nothing is found, which says nothing.
fn newest_transcript(home: &Path) -> Option<SystemTime> {
    let (mut folders, mut left, mut newest) = (vec![(home.to_path_buf(), 0)], FILES_LOOKED_AT_MAX, None);
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            left -= 1;
            if left == 0 {
                return newest;
            }
            // Links are not followed.
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() && depth < FOLDERS_DEEP_MAX {
                folders.push((path, depth + 1));
            } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "jsonl") {
                newest = newest.max(entry.metadata().and_then(|metadata| metadata.modified()).ok());
            }
        }
    }
    newest
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `expected`: whether an agent whose transcript was written `written_ms` after the daemon's start counts as silent.
    fn check_silent(place: &str, written_ms: u64, expected: bool) {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(place);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "{}").unwrap();
        let since = SystemTime::now() - Duration::from_secs(3600);
        let handle = std::fs::File::options().write(true).open(&file).unwrap();
        handle.set_modified(since + Duration::from_millis(written_ms)).unwrap();
        let since_ms = i64::try_from(since.duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        let found = silent("codex", home.path(), Time(Wall(since_ms)));
        assert_eq!(found.is_some(), expected, "{place} {written_ms} {found:?}");
        assert!(found.is_none_or(|check| check.level == CheckLevel::Warn && check.name == "silent-codex"));
    }

    #[test]
    fn an_agent_that_writes_and_says_nothing_is_silent() {
        check_silent("sessions/2026/01/02/rollout-1.jsonl", 120_000, true);
        check_silent("sessions/2026/01/02/rollout-1.jsonl", 30_000, false);
        check_silent("sessions/2026/01/02/config.toml", 120_000, false);
        check_silent("a/b/c/d/e/f/too-deep.jsonl", 120_000, false);
    }
}
