//! Prints what came of all runs: a table a kind and agent, and each run that cost the inactivity rule or is wrong.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is the output of a command")]

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use super::{Args, Kind, Outcome, Verdict};

const OUTCOMES: [Outcome; 6] = [
    Outcome::Right,
    Outcome::Converged,
    Outcome::Untold,
    Outcome::Unheld,
    Outcome::Inactivity,
    Outcome::Wrong,
];

pub(super) fn print(args: &Args, verdicts: &[Verdict], beyond: &[String]) -> ExitCode {
    if args.json {
        for verdict in verdicts {
            match serde_json::to_string(verdict) {
                Ok(line) => println!("{line}"),
                Err(error) => eprintln!("{error}"),
            }
        }
    } else {
        for verdict in verdicts.iter().filter(|v| args.all && v.outcome != Outcome::Right) {
            println!(
                "{:?} {} {}: {}",
                verdict.outcome,
                verdict.recording,
                verdict.change,
                verdict.notes.join("; ")
            );
        }
        table(verdicts);
        for (outcome, title) in [
            (
                Outcome::Unheld,
                "May sleep up to the next evidence, since no other evidence of the turn exists:",
            ),
            (Outcome::Inactivity, "Cost the inactivity rule, since no other evidence exists:"),
            (Outcome::Wrong, "Wrong:"),
        ] {
            list(verdicts, outcome, title);
        }
    }
    for line in beyond {
        eprintln!("{line}");
    }
    let wrong = verdicts.iter().any(|v| v.outcome == Outcome::Wrong);
    if wrong || !beyond.is_empty() || verdicts.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn table(verdicts: &[Verdict]) {
    let mut counts: BTreeMap<(Kind, &str), [u32; OUTCOMES.len()]> = BTreeMap::new();
    let recordings: BTreeSet<&str> = verdicts.iter().map(|v| v.recording.as_str()).collect();
    for verdict in verdicts {
        let row = counts.entry((verdict.kind, &verdict.folder)).or_default();
        for (count, outcome) in row.iter_mut().zip(OUTCOMES) {
            *count += u32::from(verdict.outcome == outcome);
        }
    }
    println!("{} runs of {} recordings\n", verdicts.len(), recordings.len());
    println!(
        "| What goes wrong | Agent | Runs | Right at once | Within the bound | Untold by anything else | May sleep up to the next evidence | Cost the inactivity rule | Wrong |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for ((kind, folder), row) in counts {
        let [right, converged, untold, unheld, inactivity, wrong] = row;
        let runs: u32 = row.iter().sum();
        println!(
            "| {} | {folder} | {runs} | {right} | {converged} | {untold} | {unheld} | {inactivity} | {wrong} |",
            kind.name()
        );
    }
}

fn list(verdicts: &[Verdict], outcome: Outcome, title: &str) {
    let listed: Vec<&Verdict> = verdicts.iter().filter(|v| v.outcome == outcome).collect();
    if listed.is_empty() {
        return;
    }
    println!("\n{title}\n");
    for verdict in listed {
        println!("- {} {}: {}", verdict.recording, verdict.change, verdict.notes.join("; "));
    }
}
