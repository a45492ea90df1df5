//! A whole transcript of Claude Code's through the scanner and the reader, against `wc -l` on the same file in the page
//! cache. Figures for `cargo xtask bench`, which judges; no test.

#![expect(clippy::print_stdout, reason = "a bench")]
#![expect(clippy::unwrap_used, reason = "a bench ends at what it cannot do")]

use std::{
    fs::File,
    io::{BufWriter, Read as _, Write as _},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use serde_json::Value;
use watchkeeper_agents::{LineScanner, Parsed, adapter};
use watchkeeper_core::AgentKind;

const FILE_BYTES: u64 = 1 << 30;
const SESSION: &str = "0b1c2d3e-0000-4000-8000-000000000000";
/// What the daemon reads at once, and in one turn.
const READ_BYTES: usize = 64 << 10;
const TURN_BYTES: usize = 1 << 20;
/// In turns, so that a busy machine hurts both alike; the middle one counts.
const ROUNDS: usize = 5;
/// Output of a tool as it stands in the transcript, as long as agents keep it at most.
const OUTPUT_BYTES: usize = 30_000;

fn main() {
    let lines = recorded_lines();
    let long: Vec<String> = lines.iter().map(|line| with_output(line)).collect();
    for (name, lines) in [("recorded", &lines), ("outputs", &long)] {
        let file = Repeated::of(lines, name);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            theirs.push(wc(&file.0));
            ours.push(scan(&file.0));
        }
        println!("figure transcript.{name}.wc_ms {:.1}", middle(theirs));
        println!("figure transcript.{name}.scan_ms {:.1}", middle(ours));
    }
}

/// Every line of Claude Code's transcripts among the recordings, as if of one session.
fn recorded_lines() -> Vec<String> {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/claude");
    let mut lines = Vec::new();
    for folder in std::fs::read_dir(recordings).unwrap() {
        let text = std::fs::read_to_string(folder.unwrap().path().join("events.jsonl")).unwrap();
        for event in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            lines.extend(event["append"].as_str().unwrap_or_default().lines().map(of_the_session));
        }
    }
    lines
}

fn of_the_session(line: &str) -> String {
    let mark = "\"sessionId\":\"";
    let Some(at) = line.find(mark).map(|at| at + mark.len()) else { return line.to_owned() };
    format!("{}{SESSION}{}", &line[..at], &line[at + SESSION.len()..])
}

/// A result of a tool gets a long output.
fn with_output(line: &str) -> String {
    let output = "error: cannot find \\\"x\\\" in this scope\\n".repeat(OUTPUT_BYTES / 40);
    for mark in ["\"stdout\":\"", "\"content\":\""] {
        if line.contains("tool_result") && line.contains(mark) {
            return line.replacen(mark, &format!("{mark}{output}"), 1);
        }
    }
    line.to_owned()
}

/// Removed when dropped.
struct Repeated(PathBuf);

impl Repeated {
    fn of(lines: &[String], name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.jsonl", std::process::id()));
        let text = lines.join("\n") + "\n";
        let mut file = BufWriter::new(File::create(&path).unwrap());
        let times = FILE_BYTES.div_ceil(text.len() as u64);
        for _ in 0..times {
            file.write_all(text.as_bytes()).unwrap();
        }
        file.into_inner().unwrap().sync_all().unwrap();
        println!(
            "{name}: {} lines of {} bytes on average",
            lines.len() as u64 * times,
            text.len() / lines.len()
        );
        Self(path)
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Milliseconds.
fn wc(path: &Path) -> f64 {
    let began = Instant::now();
    assert!(Command::new("wc").arg("-l").arg(path).output().unwrap().status.success());
    began.elapsed().as_secs_f64() * 1e3
}

/// Milliseconds.
fn scan(path: &Path) -> f64 {
    let began = Instant::now();
    let mut file = File::open(path).unwrap();
    let mut scanner = LineScanner::new();
    let mut reader = adapter(AgentKind::Claude).unwrap().transcript(SESSION, None).unwrap();
    let (mut buffer, mut parsed, mut taken) = (vec![0; READ_BYTES], Parsed::default(), 0);
    loop {
        let read = file.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        scanner.push(&buffer[..read], reader.as_mut(), &mut parsed);
        taken += read;
        if taken >= TURN_BYTES {
            (parsed, taken) = (Parsed::default(), 0);
        }
    }
    began.elapsed().as_secs_f64() * 1e3
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}
