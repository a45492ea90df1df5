//! Prints verdicts: text for people, one JSON object a recording, or a table an agent.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is the output of a command")]

use serde::Serialize;
use std::{collections::BTreeMap, process::ExitCode};
use watchkeeper_core::view::ShownState;

use super::{
    Args, STATES,
    judge::{Interval, Judged, recall, short},
    load::Recording,
    replay::Replay,
};

pub(super) struct Report<'a> {
    args: &'a Args,
    agents: BTreeMap<String, Totals>,
    left_out: BTreeMap<String, u32>,
    broken: u32,
    unknown: BTreeMap<String, u32>,
    malformed: BTreeMap<String, u32>,
}

#[derive(Default)]
struct Totals {
    version: String,
    recordings: u32,
    right: u32,
    wrong_s: f64,
    late: u32,
    end_wrong: u32,
    seconds: BTreeMap<ShownState, (f64, f64)>,
}

impl<'a> Report<'a> {
    pub(super) fn new(args: &'a Args) -> Self {
        Self {
            args,
            agents: BTreeMap::new(),
            left_out: BTreeMap::new(),
            broken: 0,
            unknown: BTreeMap::new(),
            malformed: BTreeMap::new(),
        }
    }

    pub(super) fn left_out(&mut self, agent: &str) {
        *self.left_out.entry(agent.to_owned()).or_default() += 1;
    }

    /// A recording that cannot be read says so and fails the run; the others are still judged.
    pub(super) fn broken(&mut self, name: &str, error: &dyn std::fmt::Display) {
        eprintln!("broken: {name}: {error:#}");
        self.broken += 1;
    }

    pub(super) fn judged(&mut self, recording: &Recording, judged: &Judged, replay: &Replay) {
        let totals = self.agents.entry(recording.folder.clone()).or_default();
        totals.version.clone_from(&recording.agent_version);
        totals.recordings += 1;
        totals.right += u32::from(judged.right());
        totals.wrong_s += judged.wrong_s;
        totals.late += judged.late;
        totals.end_wrong += u32::from(!judged.end_ok);
        for (state, (right, all)) in &judged.seconds {
            let sum = totals.seconds.entry(*state).or_default();
            sum.0 += right;
            sum.1 += all;
        }
        for (from, to) in [(&replay.unknown, &mut self.unknown), (&replay.malformed, &mut self.malformed)] {
            for (name, count) in from {
                *to.entry(format!("{} {name}", recording.folder)).or_default() += count;
            }
        }
        if self.args.json {
            match json_line(recording, judged) {
                Ok(line) => println!("{line}"),
                Err(error) => self.broken(&recording.name, &error),
            }
        } else if !self.args.table {
            self.text(recording, judged, replay);
        }
    }

    fn text(&self, recording: &Recording, judged: &Judged, replay: &Replay) {
        let verdict = if judged.right() { "ok" } else { "WRONG" };
        let recall =
            recall(&judged.seconds).map_or_else(|| "-".to_owned(), |r| format!("{:.1} %", r * 100.0));
        println!(
            "{verdict:5} {}: wrong {:.3} s, late {}, recall {recall}, at the end {}{}",
            recording.name,
            judged.wrong_s,
            judged.late,
            awake(judged.protects_at_end),
            if judged.end_ok { "" } else { " (wrong)" },
        );
        for interval in &judged.intervals {
            let to = interval.to.map_or_else(|| "…".to_owned(), |t| format!("{t:.3}"));
            let id = short(&interval.session);
            println!("        {:>9.3} {to:>9} {id:13} {}", interval.from, interval.state.name());
        }
        let boundaries: Vec<String> =
            judged.boundaries.iter().map(|(t, protects)| format!("{t:.3} {}", awake(*protects))).collect();
        println!("        at the labels' bounds: {}", boundaries.join(", "));
        for line in &judged.wrong {
            println!("      ! {line}");
        }
        for id in &judged.unlisted {
            println!("      ! {id} is no session");
        }
        for violation in &judged.violations {
            println!("      ! {violation}");
        }
        if self.args.explain {
            for session in replay.core().sessions() {
                for evidence in replay.core().explain(&session.key).unwrap_or_default() {
                    #[expect(clippy::cast_precision_loss, reason = "recordings last minutes")]
                    let t = (evidence.at.0 - recording.wall_zero.0) as f64 / 1000.0;
                    let to = evidence.to.map_or("", ShownState::name);
                    println!(
                        "        {t:>9.3} {:13} {:?} {}: {} {to}",
                        short(&session.key.id),
                        evidence.source,
                        evidence.what,
                        evidence.rule
                    );
                }
            }
        }
    }

    /// Prints the sums; success only if nothing was wrong and something was judged.
    pub(super) fn finish(self) -> ExitCode {
        let asked = |agent: &String| self.args.only.contains(agent);
        let refused = self.left_out.keys().any(asked);
        let wrong = self.agents.values().any(|t| t.right != t.recordings);
        let judged: u32 = self.agents.values().map(|t| t.recordings).sum();
        if self.args.table {
            self.table();
        } else if !self.args.json {
            println!();
            for (agent, t) in &self.agents {
                println!(
                    "{agent}: {} of {} right, wrong {:.3} s, late {}, end verdicts wrong {}",
                    t.right, t.recordings, t.wrong_s, t.late, t.end_wrong
                );
            }
        }
        for (agent, count) in &self.left_out {
            eprintln!("left out: {count} recordings of {agent}: no adapter");
        }
        for (name, count) in &self.unknown {
            eprintln!("unknown: {name} ({count})");
        }
        for (why, count) in &self.malformed {
            eprintln!("malformed: {why} ({count})");
        }
        if judged == 0 {
            eprintln!("nothing was judged");
        }
        if wrong || refused || judged == 0 || self.broken > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    fn table(&self) {
        let names: Vec<&str> = STATES.iter().map(|s| s.name()).collect();
        println!(
            "| Recordings of | Version | Right | Wrong seconds | Late | End verdicts wrong | {} |",
            names.join(" | ")
        );
        println!("|---|---|---|---|---|---|{}", "---|".repeat(STATES.len()));
        for (agent, t) in &self.agents {
            let shares: Vec<String> = STATES
                .iter()
                .map(|state| match t.seconds.get(state) {
                    Some((right, all)) if *all > 0.0 => {
                        format!("{:.1} % of {all:.0} s", right / all * 100.0)
                    }
                    _ => "-".to_owned(),
                })
                .collect();
            println!(
                "| {agent} | {} | {} of {} | {:.3} | {} | {} | {} |",
                t.version,
                t.right,
                t.recordings,
                t.wrong_s,
                t.late,
                t.end_wrong,
                shares.join(" | ")
            );
        }
    }
}

fn awake(protects: bool) -> &'static str {
    if protects { "awake" } else { "free" }
}

/// One recording for programs. Times are those of its events.
#[derive(Serialize)]
struct JsonLine<'a> {
    recording: &'a str,
    wrong_s: f64,
    late: u32,
    end_ok: bool,
    protects_at_end: bool,
    intervals: Vec<JsonInterval<'a>>,
}

#[derive(Serialize)]
struct JsonInterval<'a> {
    session: &'a str,
    state: &'a str,
    from: f64,
    to: Option<f64>,
}

impl<'a> JsonInterval<'a> {
    fn of(interval: &'a Interval) -> Self {
        let Interval { session, state, from, to } = interval;
        Self { session, state: state.name(), from: *from, to: *to }
    }
}

fn json_line(recording: &Recording, judged: &Judged) -> serde_json::Result<String> {
    serde_json::to_string(&JsonLine {
        recording: &recording.name,
        wrong_s: judged.wrong_s,
        late: judged.late,
        end_ok: judged.end_ok,
        protects_at_end: judged.protects_at_end,
        intervals: judged.intervals.iter().map(JsonInterval::of).collect(),
    })
}
