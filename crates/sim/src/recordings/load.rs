//! The three files of a recording as data.

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use watchkeeper_agents::ancestry::ProcessInfo;
use watchkeeper_core::{AgentKind, Wall, view::ShownState};

/// All states, in the order in which they are listed.
pub const STATES: [ShownState; 5] =
    [ShownState::Working, ShownState::Background, ShownState::Waiting, ShownState::Idle, ShownState::Ended];

/// One recording.
#[derive(Debug)]
pub struct Recording {
    /// `agent/scenario`.
    pub name: String,
    /// The folder's agent (`codex-daemon` and `acp` are ways of running one).
    pub folder: String,
    pub agent: AgentKind,
    pub agent_version: String,
    /// Ids of its sessions; subagents' are none.
    pub sessions: Vec<String>,
    /// The wall clock of t = 0.
    pub wall_zero: Wall,
    pub events: Vec<Event>,
    pub labels: Vec<Label>,
    /// Whether the machine must be kept awake at the very end.
    pub protects_at_end: bool,
}

/// Something that could be noticed, at `t` seconds.
#[derive(Debug, Clone)]
pub struct Event {
    pub t: f64,
    pub kind: EventKind,
}

#[derive(Debug, Clone)]
pub enum EventKind {
    Hook {
        /// When it began, by which what it tells is put in order; it arrives at the event's time.
        begun: f64,
        /// By which a repetition is known; two hooks never share one. 0 names none.
        delivery: u64,
        event: String,
        /// Behind the agent and the event.
        argv: Vec<String>,
        payload: Vec<u8>,
        /// From the hook upwards.
        ancestry: Vec<ProcessInfo>,
        /// The hook printed something that the agent obeys.
        answered: bool,
    },
    Transcript {
        path: String,
        append: Vec<u8>,
    },
    /// A state file of the agent; `None`: it was removed.
    Registry {
        path: String,
        content: Option<Vec<u8>>,
    },
    Exit {
        pid: u32,
    },
    /// For readers only, or of a kind that no adapter reads.
    Other,
}

/// What was true of a session for a while.
#[derive(Debug, Clone)]
pub struct Label {
    pub from: f64,
    pub to: f64,
    pub session: String,
    pub state: ShownState,
}

#[derive(Deserialize)]
struct Head {
    format: u32,
    agent: String,
    agent_version: String,
    scenario: String,
    sessions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    Hook {
        t: f64,
        event: String,
        argv: Vec<String>,
        payload: Value,
        ancestry: Vec<Ancestor>,
        #[serde(default)]
        responded: Option<Value>,
    },
    /// What OpenCode's plugin got; its chain is given now and then, and begins with OpenCode itself.
    Opencode {
        t: f64,
        event: String,
        pid: u32,
        data: Value,
        #[serde(default)]
        ancestry: Vec<Ancestor>,
    },
    Transcript {
        t: f64,
        path: String,
        append: String,
    },
    Registry {
        t: f64,
        path: String,
        content: Value,
    },
    Exit {
        t: f64,
        pid: u32,
    },
    Mark {
        t: f64,
        text: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Ancestor {
    pid: u32,
    ppid: u32,
    #[serde(default)]
    comm: Option<String>,
    #[serde(default)]
    exe: Option<String>,
    #[serde(default)]
    cmdline: Option<Vec<String>>,
    #[serde(default)]
    starttime: Option<u64>,
}

#[derive(Deserialize)]
struct LabelLine {
    t_from: f64,
    t_to: f64,
    session: String,
    state: ShownState,
}

#[derive(Deserialize)]
struct EndLine {
    end: bool,
    protects: bool,
}

/// The folders of all recordings at or below `dir`, sorted.
///
/// # Errors
/// When a folder cannot be listed.
pub fn find(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    // A recording lies at most two folders below the corpus.
    let mut open = vec![(dir.to_path_buf(), 0)];
    while let Some((dir, depth)) = open.pop() {
        if dir.join("recording.json").is_file() {
            found.push(dir);
        } else if depth < 3 {
            for entry in fs::read_dir(&dir)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    open.push((entry.path(), depth + 1));
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

impl Recording {
    /// Reads a recording's folder.
    ///
    /// # Errors
    /// When a file is missing or not of the format.
    pub fn load(dir: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| {
            fs::read_to_string(dir.join(name)).with_context(|| format!("{}", dir.join(name).display()))
        };
        let head: Head = serde_json::from_str(&read("recording.json")?)?;
        anyhow::ensure!(head.format == 1, "format {} is not known", head.format);
        let folder = super::agent_of(dir);
        let agent = super::kind_of(&folder)
            .with_context(|| format!("no agent is called {folder} ({})", head.agent))?;
        let (events, wall_zero) = events(&read("events.jsonl")?)?;
        let (labels, protects_at_end) = labels(&read("expected.jsonl")?)?;
        Ok(Self {
            name: format!("{folder}/{}", head.scenario),
            folder,
            agent,
            agent_version: head.agent_version,
            sessions: head.sessions,
            wall_zero,
            events,
            labels,
            protects_at_end,
        })
    }

    /// The moment up to which something is stated.
    #[must_use]
    pub fn end(&self) -> f64 {
        let events = self.events.iter().map(|e| e.t);
        events.chain(self.labels.iter().map(|l| l.to)).fold(0.0, f64::max)
    }
}

fn events(text: &str) -> anyhow::Result<(Vec<Event>, Wall)> {
    let (mut events, mut wall_zero) = (Vec::new(), None);
    let mut chains: BTreeMap<u32, Vec<ProcessInfo>> = BTreeMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let delivery = number as u64 + 1;
        let line: Line =
            serde_json::from_str(line).with_context(|| format!("events.jsonl line {}", number + 1))?;
        let (t, kind) = match line {
            Line::Hook { t, event, argv, payload, ancestry, responded } => {
                let payload = if payload.is_null() { Vec::new() } else { payload.to_string().into_bytes() };
                let argv = argv.into_iter().skip(2).collect();
                let ancestry = ancestry.into_iter().map(process).collect();
                let answered = responded.is_some();
                (t, EventKind::Hook { begun: t, delivery, event, argv, payload, ancestry, answered })
            }
            Line::Opencode { t, event, pid, data, ancestry } => {
                if !ancestry.is_empty() {
                    chains.insert(pid, ancestry.into_iter().map(process).collect());
                }
                let payload = data.to_string().into_bytes();
                let ancestry = chains.get(&pid).cloned().unwrap_or_default();
                let argv = Vec::new();
                (t, EventKind::Hook { begun: t, delivery, event, argv, payload, ancestry, answered: false })
            }
            Line::Transcript { t, path, append } => {
                (t, EventKind::Transcript { path, append: append.into_bytes() })
            }
            Line::Registry { t, path, content } => {
                let content = (!content.is_null()).then(|| content.to_string().into_bytes());
                (t, EventKind::Registry { path, content })
            }
            Line::Exit { t, pid } => (t, EventKind::Exit { pid }),
            Line::Mark { t, text } => {
                if let (None, Some(zero)) = (wall_zero, text.strip_prefix("t=0 is ")) {
                    wall_zero = Some(Wall(zero.trim().parse::<jiff::Timestamp>()?.as_millisecond()));
                }
                (t, EventKind::Other)
            }
            Line::Other => continue,
        };
        anyhow::ensure!(t.is_finite() && t >= 0.0, "events.jsonl line {}: time {t}", number + 1);
        events.push(Event { t, kind });
    }
    // Stable: what is listed first at one moment happened first.
    events.sort_by(|a, b| a.t.total_cmp(&b.t));
    Ok((events, wall_zero.context("no mark gives the wall clock of t = 0")?))
}

fn process(ancestor: Ancestor) -> ProcessInfo {
    let exe = ancestor.exe.unwrap_or_default();
    ProcessInfo {
        pid: ancestor.pid,
        ppid: ancestor.ppid,
        start: ancestor.starttime.unwrap_or(0),
        exe: exe.strip_suffix(" (deleted)").map_or(exe.clone(), str::to_owned),
        comm: ancestor.comm.unwrap_or_default(),
        argv: ancestor.cmdline.unwrap_or_default(),
    }
}

fn labels(text: &str) -> anyhow::Result<(Vec<Label>, bool)> {
    let (mut labels, mut protects) = (Vec::new(), None);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = || format!("expected.jsonl line {}", number + 1);
        if let Ok(EndLine { end: true, protects: at_end }) = serde_json::from_str(line) {
            protects = Some(at_end);
            continue;
        }
        let LabelLine { t_from, t_to, session, state } = serde_json::from_str(line).with_context(place)?;
        if !(t_from.is_finite() && t_to.is_finite() && t_from <= t_to) {
            bail!("{}: from {t_from} to {t_to}", place());
        }
        labels.push(Label { from: t_from, to: t_to, session, state });
    }
    Ok((labels, protects.context("expected.jsonl has no end line")?))
}
