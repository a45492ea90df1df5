//! Qwen Code's hooks: `settings.json` in Claude's shape.

use watchkeeper_core::AgentKind;

use crate::install::{
    ConfigFile, Home, HookEvent, HooksFile, Installer, Nesting, OffSwitch, RunsIn, TimeoutUnit, Wait,
};

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
    path: "settings.json",
    agent: AgentKind::Qwen,
    nesting: Nesting::Groups,
    events: EVENTS,
    preamble: &[],
    own: false,
    strict: false,
    off_switches: &[OffSwitch::DISABLE_ALL],
    timeout_unit: TimeoutUnit::SecondsBelow1000,
    runs_in: RunsIn::Named,
};

static FILES: &[&dyn ConfigFile] = &[&SETTINGS];

/// Qwen Code's installer.
#[derive(Debug)]
pub struct QwenInstall;

impl Installer for QwenInstall {
    fn agent(&self) -> AgentKind {
        AgentKind::Qwen
    }

    fn home(&self) -> Home {
        Home { variable: "QWEN_HOME", below: "", default: ".qwen" }
    }

    fn programs(&self) -> &'static [&'static str] {
        &["qwen"]
    }

    fn files(&self) -> &'static [&'static dyn ConfigFile] {
        FILES
    }
}
