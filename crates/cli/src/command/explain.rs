//! `explain SESSION`: the evidence behind its state.

use clap::Args;
use watchkeeper_api::method::{EvidenceRow, Explain, ExplainParams, Explained};

use crate::{
    app::{App, Outcome},
    exit,
    output::{Age, Terminal, age, plain, rows, style},
};

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// An id, an unambiguous beginning of one, or AGENT:ID
    session: String,
}

pub(super) fn run(app: &App, args: &ExplainArgs) -> Outcome {
    let what = format!("cannot explain '{}'", args.session);
    let explained = app.ask::<Explain>(&what, &ExplainParams { session: args.session.clone() })?;
    app.answer(&explained, |app| text(&explained, &app.terminal))?;
    Ok(exit::SUCCESS)
}

fn text(explained: &Explained, terminal: &Terminal) -> String {
    let now = Age::now();
    let Explained { session, evidence } = explained;
    let state = terminal.paint(style::state(session.state), session.state.name());
    let mut lines = vec![format!("{} is {state} for {}", plain(&session.key), age(now, session.since))];
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            lines.push(format!("  {} {}", terminal.paint(style::DIM, &format!("{name:<12}")), plain(&value)));
        }
    };
    fact("title", session.title.clone());
    let lives = session.incarnation;
    fact("incarnation", (lives > 1).then(|| format!("{lives}: it ended before, and was resumed")));
    fact("waits for", session.waiting_for.clone());
    fact("ended", session.ended.clone());
    fact("folder", session.cwd.clone());
    let pids: Vec<String> = session.pids.iter().map(u32::to_string).collect();
    let watched = if session.watched { "watched for exit" } else { "not watched" };
    fact("process", (!pids.is_empty()).then(|| format!("{} ({watched})", pids.join(", "))));
    fact("protects", Some(if session.protects { "yes: keeps the machine awake" } else { "no" }.into()));
    for work in &session.background {
        let label = work.label.as_deref().unwrap_or(&work.id);
        fact("background", Some(format!("{}: {label}, for {}", work.kind, age(now, work.since))));
    }
    fact("flags", (!session.flags.is_empty()).then(|| session.flags.join(", ")));
    for link in &session.lineage {
        fact("lineage", Some(format!("{} {}", link.link.replace('_', " "), link.id)));
    }
    lines.push(String::new());
    let cells: Vec<Vec<String>> = evidence.iter().map(evidence_cells).collect();
    lines.extend(rows(&cells, |row, column, cell| match column {
        0 => terminal.paint(style::DIM, cell),
        4 => evidence[row].to.map_or_else(|| cell.to_owned(), |to| terminal.paint(style::state(to), cell)),
        _ => cell.into(),
    }));
    lines.join("\n") + "\n"
}

/// When, from where, what, the rule, the new state.
fn evidence_cells(row: &EvidenceRow) -> Vec<String> {
    let late = row.happened.map(|happened| age(row.at, happened)).filter(|late| !late.in_seconds());
    let when = match late {
        Some(late) => format!("{} (happened {late} earlier)", row.at),
        None => row.at.to_string(),
    };
    let to = row.to.map(|to| format!("→ {}", to.name())).unwrap_or_default();
    vec![when, plain(&row.source), plain(&row.what), plain(&row.rule), to]
}
