//! First inputs for every door, from the recorded sessions and from what the installers write.

use anyhow::Context as _;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};
use watchkeeper_agents::install::{ALL, Edit};
use watchkeeper_core::AgentKind;
use watchkeeper_frame::wire::{self, PREFIX_MAX_BYTES};
use watchkeeper_sim::recordings::{self, EventKind, Recording};

use crate::config_file::wiring;

/// Larger inputs cost time and find nothing that smaller ones do not.
const SEED_MAX_BYTES: usize = 32 * 1024;

/// Writes the seeds of each door into a folder of its name.
///
/// # Errors
/// A recording that cannot be read, a folder that cannot be written.
pub fn write(folder: &Path, into: &Path) -> anyhow::Result<()> {
    let mut seeds: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for folder in recordings::find(folder).context("no recordings there")? {
        of_recording(&Recording::load(&folder)?, &mut seeds);
    }
    of_configurations(&mut seeds);
    for line in RPC {
        seeds.entry("rpc".to_owned()).or_default().insert(line.as_bytes().to_vec());
    }
    for (door, inputs) in &seeds {
        let folder = into.join(door);
        fs::create_dir_all(&folder)?;
        for (n, input) in inputs.iter().filter(|i| i.len() <= SEED_MAX_BYTES).enumerate() {
            fs::write(folder.join(format!("seed-{n}")), input)?;
        }
    }
    Ok(())
}

fn of_recording(recording: &Recording, seeds: &mut BTreeMap<String, BTreeSet<Vec<u8>>>) {
    let agent = recording.agent.name();
    let mut files: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for event in &recording.events {
        match &event.kind {
            EventKind::Hook { event, payload, .. } => {
                let input = [event.as_bytes(), b"\n", payload].concat();
                seeds.entry(format!("payload-{agent}")).or_default().insert(input);
                if recording.agent == AgentKind::Codex {
                    seeds.entry("hook-frame".to_owned()).or_default().extend(frame(agent, event, payload));
                }
            }
            EventKind::Transcript { path, append } => {
                files.entry(path).or_insert_with(|| vec![40]).extend_from_slice(append);
            }
            EventKind::Registry { path, content } => {
                let name = path.rsplit('/').next().unwrap_or_default();
                let content = content.as_deref().unwrap_or_default();
                let input = [name.as_bytes(), b"\n", content].concat();
                seeds.entry("state-file".to_owned()).or_default().insert(input);
            }
            EventKind::Exit { .. } | EventKind::Other => {}
        }
    }
    let of_agent = seeds.entry(format!("transcript-{agent}")).or_default();
    for file in files.into_values() {
        // A long one by pieces of whole lines, each with the byte that says how it arrives.
        let mut piece = Vec::new();
        for line in file.split_inclusive(|b| *b == b'\n') {
            if piece.len() + line.len() > SEED_MAX_BYTES {
                of_agent.insert(std::mem::replace(&mut piece, vec![40]));
            }
            piece.extend_from_slice(line);
        }
        of_agent.insert(piece);
    }
}

/// The frame of such a hook, as the hook program would send it.
fn frame(agent: &str, event: &str, payload: &[u8]) -> Option<Vec<u8>> {
    let mut buffer = vec![0; PREFIX_MAX_BYTES + payload.len()];
    let argv: [&[u8]; 2] = [b"--flag", b""];
    let mut draft =
        wire::draft(&mut buffer, wire::Head::default(), agent.as_bytes(), event.as_bytes(), argv)?;
    draft.payload_room().get_mut(..payload.len())?.copy_from_slice(payload);
    Some(draft.seal(payload.len()).to_vec())
}

fn of_configurations(seeds: &mut BTreeMap<String, BTreeSet<Vec<u8>>>) {
    for (ending, samples) in [("json", &JSON[..]), ("toml", &TOML[..])] {
        let files = ALL.iter().flat_map(|i| i.files).filter(|f| f.path().ends_with(ending));
        for (n, file) in (0_u8..).zip(files) {
            let mut texts: Vec<String> = samples.iter().map(|s| (*s).to_owned()).collect();
            texts.extend(samples.iter().filter_map(|text| match file.install(Some(text), &wiring()) {
                Ok(Edit::Write(text)) => Some(text),
                Ok(Edit::Keep | Edit::Delete) | Err(_) => None,
            }));
            let inputs = texts.into_iter().map(|text| [&[n], text.as_bytes()].concat());
            seeds.entry(format!("config-{ending}")).or_default().extend(inputs);
        }
    }
}

const JSON: [&str; 6] = [
    "{}",
    "// mine\n{\n  \"model\": \"x\", // which\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"other\"}]},\n    ],\n  },\n}\n",
    "{\"hooks\":{\"Stop\":[{\"matcher\":\"*\",\"hooks\":[]}],\"PreToolUse\":[]},\"disableAllHooks\":true}",
    "\u{feff}{\r\n\t\"hooks\": {},\r\n\t\"version\": 1\r\n}",
    "{\"hooks\":[]}",
    "{\"hooks\":{\"enabled\":false,\"disabled\":[\"x\"]},\"tools\":{\"enableHooks\":false},\"hooksConfig\":{\"enabled\":false}}",
];

const TOML: [&str; 4] = [
    "[features]\nhooks = false\n",
    "model = 'x'\n\n[features]\ncodex_hooks = false # off\nhooks = true\n",
    "features = { hooks = false, other = 1 }\n",
    "features.hooks = false\n[hooks.state]\n'/h/hooks.json:stop:0:0' = { enabled = false, trusted_hash = 'x' }\n",
];

const RPC: [&str; 6] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"client":{"name":"x","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"event.changed","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":"a","result":{"ok":true}}"#,
    r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no such method","data":{"hint":"h","candidates":["a"]}}}"#,
    r#"[{"jsonrpc":"2.0"}]"#,
    r#"{"jsonrpc":"1.0","id":null}"#,
];
