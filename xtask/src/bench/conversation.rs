//! Conversations of Claude Code's with a private daemon: a hook that tells of the transcript, lines that are appended to it,
//! and what the daemon makes of them, as a client is told.

use anyhow::{Context as _, Result, ensure};
use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use super::daemon::PrivateDaemon;
use crate::build;

/// A change that takes longer is none.
const TOLD_WITHIN: Duration = Duration::from_secs(300);

/// One session with a living agent, which has had a turn.
#[derive(Debug)]
pub(super) struct Conversation {
    id: String,
    turns: u32,
    transcript: File,
}

/// Begins the conversation of this number, whose agent is `pid`. Its transcript is new, or the one that is there.
pub(super) fn begin(daemon: &PrivateDaemon, index: usize, pid: u32) -> Result<Conversation> {
    let id = format!("0b1c2d3e-0000-4000-8000-{index:012}");
    let path = transcript_path(daemon, index);
    fs::create_dir_all(path.parent().context("no folder")?)?;
    let mut transcript = OpenOptions::new().append(true).create(true).open(&path)?;
    transcript.write_all(b"{\"type\":\"summary\"}\n")?;
    daemon.ask(&["start", "claude", "--id", &id, "--pid", &pid.to_string()])?;
    let payload = serde_json::json!({
        "session_id": id, "transcript_path": path, "cwd": daemon.home(),
        "hook_event_name": "Stop", "stop_hook_active": false, "last_assistant_message": "Done.",
    });
    let mut hook = Command::new(build::hook()?)
        .arg("--home")
        .arg(daemon.home())
        .args(["claude", "Stop"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    hook.stdin.take().context("no standard input")?.write_all(payload.to_string().as_bytes())?;
    ensure!(hook.wait()?.success(), "a hook failed");
    Ok(Conversation { id, turns: 0, transcript })
}

/// Where the conversation of this number has its transcript.
pub(super) fn transcript_path(daemon: &PrivateDaemon, index: usize) -> PathBuf {
    let folder = daemon.home().join("claude/projects").join(format!("project-{}", index % 10));
    folder.join(format!("0b1c2d3e-0000-4000-8000-{index:012}.jsonl"))
}

impl Conversation {
    /// A prompt: the session works from here on.
    pub(super) fn prompt(&mut self) -> Result<()> {
        self.turns += 1;
        let turn = format!("turn-{}", self.turns);
        let message = serde_json::json!({ "role": "user", "content": "go on" });
        self.append(&serde_json::json!({ "type": "user", "promptId": turn, "message": message }))
    }

    /// The end of the turn.
    pub(super) fn end_of_turn(&mut self) -> Result<()> {
        self.append(&serde_json::json!({ "type": "system", "subtype": "turn_duration" }))
    }

    /// The result of a tool, with an output of about so many bytes.
    pub(super) fn result(&mut self, bytes: usize) -> Result<()> {
        const LINE: &str = "error: cannot find \"x\" in this scope\n";
        let output = LINE.repeat(bytes / LINE.len());
        let block = serde_json::json!({ "type": "tool_result", "tool_use_id": "toolu_1", "content": output });
        let message = serde_json::json!({ "role": "user", "content": [block] });
        self.append(&serde_json::json!({ "type": "user", "message": message }))
    }

    fn append(&mut self, record: &serde_json::Value) -> Result<()> {
        let mut record = record.clone();
        let fields = record.as_object_mut().context("a record is an object")?;
        fields.insert("sessionId".into(), self.id.as_str().into());
        let now = jiff::Timestamp::try_from(SystemTime::now())?;
        fields.insert("timestamp".into(), format!("{now:.3}").into());
        self.transcript.write_all(format!("{record}\n").as_bytes()).context("cannot write the transcript")
    }
}

/// A client that is told of everything. Ended when dropped.
#[derive(Debug)]
pub(super) struct Told {
    client: Child,
    lines: mpsc::Receiver<(Instant, String)>,
}

impl Told {
    /// Once a daemon: what happened before is passed over, up to the row that tells of this client.
    pub(super) fn by(daemon: &PrivateDaemon) -> Result<Self> {
        let mut client = daemon.command();
        client.args(["events", "--follow", "--json"]).stdout(Stdio::piped());
        let mut client = client.spawn()?;
        let told = Self { lines: lines_of(&mut client)?, client };
        while !told.next("itself")?.1.contains("\"input\":\"observers\"") {}
        Ok(told)
    }

    fn next(&self, of: &str) -> Result<(Instant, String)> {
        self.lines.recv_timeout(TOLD_WITHIN).with_context(|| format!("nothing tells of {of}"))
    }

    /// When it was told that the conversation came to be in this state; waits for it.
    pub(super) fn when(&self, conversation: &Conversation, state: &str) -> Result<Instant> {
        let change = format!("\"session\":\"claude:{}\",\"to\":\"{state}\"", conversation.id);
        loop {
            let (at, line) = self.next(state)?;
            if line.contains(&change) {
                return Ok(at);
            }
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        drop(self.client.kill());
        drop(self.client.wait());
    }
}

/// What a program prints, with the moment at which each line was read.
pub(super) fn lines_of(program: &mut Child) -> Result<mpsc::Receiver<(Instant, String)>> {
    let output = BufReader::new(program.stdout.take().context("no standard output")?);
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if sender.send((Instant::now(), line)).is_err() {
                break;
            }
        }
    });
    Ok(lines)
}
