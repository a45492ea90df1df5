//! Qwen Code's hooks: `settings.json` in Claude's shape.

use watchkeeper_core::AgentKind;

use crate::install::{Home, HookEvent, HooksFile, Installer, RunsIn, TimeoutUnit, Wait};

/// Not `MessageDisplay` (one a piece of an answer), `PostToolBatch`, and what only displays.
const EVENTS: &[HookEvent] = &[
    HookEvent::new("SessionStart"),
    HookEvent::new("UserPromptSubmit"),
    HookEvent::new("PreToolUse"),
    HookEvent::waiting("PermissionRequest", Wait::Permission),
    HookEvent::new("PermissionDenied"),
    HookEvent::new("PostToolUse"),
    HookEvent::new("PostToolUseFailure"),
    HookEvent::new("Notification"),
    HookEvent::waiting("Stop", Wait::Stop),
    HookEvent::new("StopFailure"),
    HookEvent::new("SubagentStart"),
    HookEvent::new("SubagentStop"),
    HookEvent::new("PreCompact"),
    HookEvent::new("PostCompact"),
    HookEvent::new("SessionEnd"),
];

static SETTINGS: HooksFile = HooksFile {
    timeout_unit: TimeoutUnit::SecondsBelow1000,
    runs_in: RunsIn::Named,
    ..HooksFile::settings(AgentKind::Qwen, EVENTS)
};

/// Qwen Code's installer.
pub static INSTALLER: Installer = Installer {
    agent: AgentKind::Qwen,
    home: Home { variable: "QWEN_HOME", below: "", default: ".qwen" },
    programs: &["qwen"],
    files: &[&SETTINGS],
    notes: &[],
    trust: None,
};
