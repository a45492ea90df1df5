//! `status` for people: the machine's line first, then who does what.

use watchkeeper_api::{
    Status, Time,
    status::{Machine, Session, Work},
};
use watchkeeper_core::view::ShownState;

use super::{Terminal, age, cut, plain, rows, style};

/// Shortest beginning of an id that is shown.
const ID_CHARS_MIN: usize = 8;
/// Ended sessions shown, the youngest first; the rest is counted.
const ENDED_MAX: usize = 3;
/// Longest description when the output has no width.
const WHAT_CHARS: usize = 100;

/// Lines without their line feeds.
pub(crate) fn status_view(status: &Status, now: Time, terminal: &Terminal) -> Vec<String> {
    let mut lines = vec![machine_line(status, now, terminal)];
    lines.push(terminal.paint(style::DIM, &facts_line(&status.machine)));
    for notice in &status.notices {
        lines.push(format!("{} {}", terminal.paint(style::WARN, "notice:"), plain(notice)));
    }
    lines.push(String::new());
    if status.sessions.is_empty() {
        lines.extend(FIRST_RUN.lines().map(str::to_owned));
    } else {
        lines.extend(session_lines(status, now, terminal));
    }
    lines
}

const FIRST_RUN: &str = "\
No session yet. Start a coding agent and it appears here.

  watchkeeper hooks status   are the agents wired up?
  watchkeeper install        wire them up (shows the changes and asks first)
  watchkeeper up --demo      see a recorded session play";

/// Why the machine is awake or not: the first reason, in words.
fn machine_line(status: &Status, now: Time, terminal: &Terminal) -> String {
    let machine = &status.machine;
    let (verdict, colour) = match (machine.awake, machine.wanted) {
        (true, _) => ("yes", style::GOOD),
        (false, true) => ("no", style::BAD),
        (false, false) => ("no", style::STRONG),
    };
    let why = if machine.awake || machine.wanted { wanted(status, now) } else { unwanted(status) };
    format!("awake: {} — {why}", terminal.paint(colour, verdict))
}

fn wanted(status: &Status, now: Time) -> String {
    let machine = &status.machine;
    let reason = match machine.reasons.first() {
        None => plain(&machine.why),
        Some(reason) => {
            let session =
                reason.session.as_ref().and_then(|key| status.sessions.iter().find(|s| s.key == *key));
            let since = age(now, reason.since);
            match session {
                Some(session) => {
                    let title =
                        session.title.as_deref().map(|title| format!(" ({})", cut(&plain(title), 40)));
                    let does = match session.state {
                        ShownState::Working => "working".into(),
                        ShownState::Background => format!("has {}", background(&session.background)),
                        ShownState::Waiting | ShownState::Idle | ShownState::Ended => plain(&reason.why),
                    };
                    format!("{} {does} for {since}{}", session.agent, title.unwrap_or_default())
                }
                None => format!("{} for {since}", plain(&reason.why)),
            }
        }
    };
    let more = match machine.reasons.len() {
        0 | 1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    match (machine.awake, machine.refused.first()) {
        (true, None) => format!("{reason}{more}"),
        (true, Some(refused)) => {
            format!("{reason}{more}; {} refused: {}", plain(&refused.kind), plain(&refused.why))
        }
        (false, Some(refused)) => {
            format!("the system refuses {}: {}", plain(&refused.kind), plain(&refused.why))
        }
        (false, None) => format!("the system has not confirmed it yet: {reason}{more}"),
    }
}

/// Armed is not holding: a machine that would be held if it were armed is told apart.
fn unwanted(status: &Status) -> String {
    let machine = &status.machine;
    let count = |state| status.sessions.iter().filter(|session| session.state == state).count();
    let would = machine.reasons.len();
    if !machine.armed {
        let would = if would > 0 {
            format!(" ({} would keep it awake)", counted(would, "session"))
        } else {
            String::new()
        };
        return format!("keeping awake is switched off{would}");
    }
    match (count(ShownState::Waiting), count(ShownState::Idle)) {
        (0, 0) => "no agent works".into(),
        (0, idle) => format!("no agent works ({idle} idle)"),
        (waiting, _) => format!(
            "no agent works ({} for you)",
            if waiting == 1 { "1 waits".into() } else { format!("{waiting} wait") }
        ),
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn facts_line(machine: &Machine) -> String {
    let battery = machine.battery_percent.map(|percent| format!(" {percent} %")).unwrap_or_default();
    let displays = machine.displays.map_or_else(|| "unknown".into(), |count| count.to_string());
    let held = if machine.held.is_empty() { "nothing".into() } else { machine.held.join(", ") };
    let suspend = machine.suspend.as_ref().map(|what| format!("   suspend: {}", plain(what)));
    format!(
        "held: {}   lid: {}   power: {}{battery}   external displays: {displays}{}",
        plain(&held),
        plain(&machine.lid),
        plain(&machine.power),
        suspend.unwrap_or_default()
    )
}

fn session_lines(status: &Status, now: Time, terminal: &Terminal) -> Vec<String> {
    let (mut ended, mut shown): (Vec<&Session>, Vec<&Session>) =
        status.sessions.iter().partition(|session| session.state == ShownState::Ended);
    ended.sort_by_key(|session| std::cmp::Reverse(session.since));
    let left_out = ended.len().saturating_sub(ENDED_MAX);
    shown.extend(ended.into_iter().take(ENDED_MAX));

    let header = ["STATE", "FOR", "AGENT", "SESSION", "WHAT"].map(String::from).to_vec();
    let ids: Vec<&str> = status.sessions.iter().map(|session| session.id.as_str()).collect();
    let mut cells = vec![header];
    cells.extend(shown.iter().map(|session| {
        vec![
            session.state.name().into(),
            age(now, session.since).to_string(),
            agent(session),
            plain(short_id(&session.id, &ids)),
            String::new(),
        ]
    }));
    let used = (0..4)
        .map(|column| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0) + 2)
        .sum::<usize>();
    let room = terminal.columns.map_or(WHAT_CHARS, |columns| columns.saturating_sub(used).max(16));
    for (row, session) in cells.iter_mut().skip(1).zip(&shown) {
        row[4] = cut(&what(session), room);
    }
    let mut lines = rows(&cells, |row, column, cell| match (row, column) {
        (0, _) => terminal.paint(style::DIM, cell),
        (row, 0) => terminal.paint(style::state(shown[row - 1].state), cell),
        (row, _) if shown[row - 1].state == ShownState::Ended => terminal.paint(style::DIM, cell),
        _ => cell.into(),
    });
    if left_out > 0 {
        lines.push(
            terminal.paint(style::DIM, &format!("and {left_out} more that ended (`--json` lists all)")),
        );
    }
    lines
}

fn agent(session: &Session) -> String {
    match &session.namespace {
        Some(namespace) => format!("{}/{}", session.agent, plain(namespace)),
        None => session.agent.to_string(),
    }
}

/// The shortest beginning of `id` that no other id has, of at least [`ID_CHARS_MIN`] characters.
fn short_id<'a>(id: &'a str, all: &[&str]) -> &'a str {
    let ends = id.char_indices().map(|(at, _)| at).skip(ID_CHARS_MIN);
    ends.map(|end| &id[..end])
        .find(|short| all.iter().filter(|other| other.starts_with(short)).count() <= 1)
        .unwrap_or(id)
}

/// What it waits for, then what it is about, then what runs beside it, then what is odd.
fn what(session: &Session) -> String {
    let mut parts = Vec::new();
    if let Some(reason) = &session.waiting_for {
        parts.push(format!("waits: {}", plain(reason)));
    }
    if let Some(cause) = &session.ended {
        parts.push(plain(cause));
    }
    if let Some(title) = &session.title {
        parts.push(plain(title));
    }
    if !session.background.is_empty() {
        parts.push(background(&session.background));
    }
    parts.extend(session.flags.iter().map(|flag| format!("[{}]", plain(flag))));
    parts.join(" · ")
}

/// `shell: npm run dev`, `2 shells and 1 subagent`.
fn background(work: &[Work]) -> String {
    if let [one] = work {
        let label = one.label.as_ref().map(|label| format!(": {}", cut(&plain(label), 40)));
        return format!("{}{}", plain(&one.kind), label.unwrap_or_default());
    }
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for item in work {
        match kinds.iter_mut().find(|(kind, _)| *kind == item.kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((&item.kind, 1)),
        }
    }
    kinds.into_iter().map(|(kind, count)| counted(count, &plain(kind))).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests;
