//! Every door through which bytes of others come in, each as a function that takes any bytes and panics when what must
//! hold does not. The corpus is replayed by this crate's test; `targets/` gives the same functions to libFuzzer.

pub mod config_file;
pub mod hook_frame;
pub mod payload;
pub mod rpc;
#[cfg(feature = "seeds")]
pub mod seeds;
pub mod state_file;
pub mod transcript;

use watchkeeper_core::AgentKind;

/// One door.
#[derive(Debug, Clone, Copy)]
pub struct Door {
    /// Also the name of its folder in the corpus and of its target.
    pub name: &'static str,
    pub knock: fn(&[u8]),
    /// The code behind it that the corpus must reach, below the project's root: files, or folders with all their files.
    pub covers: &'static [&'static str],
}

pub const DOORS: [Door; 16] = [
    Door {
        name: "payload-claude",
        knock: payload::claude,
        covers: &["crates/agents/src/claude/payload.rs", "crates/agents/src/claude/payload"],
    },
    Door {
        name: "payload-codex",
        knock: payload::codex,
        covers: &["crates/agents/src/codex/payload.rs", "crates/agents/src/codex/payload"],
    },
    Door {
        name: "payload-copilot",
        knock: payload::copilot,
        covers: &["crates/agents/src/copilot/payload.rs", "crates/agents/src/copilot/payload"],
    },
    Door {
        name: "payload-gemini",
        knock: payload::gemini,
        covers: &["crates/agents/src/gemini/payload.rs", "crates/agents/src/gemini/payload"],
    },
    Door {
        name: "payload-opencode",
        knock: payload::opencode,
        covers: &[
            "crates/agents/src/opencode/payload.rs",
            "crates/agents/src/opencode/payload",
            "crates/agents/src/opencode/task.rs",
        ],
    },
    Door {
        name: "payload-qwen",
        knock: payload::qwen,
        covers: &["crates/agents/src/qwen/payload.rs", "crates/agents/src/qwen/payload"],
    },
    Door {
        name: "transcript-claude",
        knock: transcript::claude,
        covers: &[
            "crates/agents/src/claude/transcript.rs",
            "crates/agents/src/claude/transcript",
            "crates/agents/src/task_notification.rs",
        ],
    },
    Door {
        name: "transcript-codex",
        knock: transcript::codex,
        covers: &["crates/agents/src/codex/transcript.rs", "crates/agents/src/codex/transcript"],
    },
    Door {
        name: "transcript-copilot",
        knock: transcript::copilot,
        covers: &["crates/agents/src/copilot/transcript.rs", "crates/agents/src/copilot/transcript"],
    },
    Door {
        name: "transcript-gemini",
        knock: transcript::gemini,
        covers: &["crates/agents/src/gemini/transcript.rs", "crates/agents/src/gemini/transcript"],
    },
    Door {
        name: "transcript-qwen",
        knock: transcript::qwen,
        covers: &["crates/agents/src/qwen/transcript.rs", "crates/agents/src/qwen/transcript"],
    },
    Door { name: "state-file", knock: state_file::any, covers: &["crates/agents/src/claude/registry.rs"] },
    Door {
        name: "config-json",
        knock: config_file::json,
        covers: &[
            "crates/agents/src/install/jsonc.rs",
            "crates/agents/src/install/hooks_file.rs",
            "crates/agents/src/install/hooks_file/removal.rs",
            "crates/agents/src/install/hooks_file/said.rs",
        ],
    },
    Door { name: "config-toml", knock: config_file::toml, covers: &["crates/agents/src/install/switch.rs"] },
    Door {
        name: "hook-frame",
        knock: hook_frame::any,
        covers: &["crates/frame/src/wire.rs", "crates/frame/src/request.rs"],
    },
    Door { name: "rpc", knock: rpc::any, covers: &["crates/api/src/rpc.rs"] },
];

fn adapter(kind: AgentKind) -> &'static dyn watchkeeper_agents::Adapter {
    match watchkeeper_agents::adapter(kind) {
        Some(adapter) => adapter,
        None => unreachable!("a door stands only where there is an adapter"),
    }
}

/// What stands before the first newline, and what behind it: how an input carries a name beside its bytes.
fn named(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|b| *b == b'\n') {
        Some(at) => (input.get(..at).unwrap_or_default(), input.get(at + 1..).unwrap_or_default()),
        None => (&[], input),
    }
}
