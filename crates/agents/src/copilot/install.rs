//! Copilot CLI's hooks: a file of our own below `hooks/`, in one spelling of the event names only, since an event
//! that is hooked in both runs both, at once and in no order.

use watchkeeper_core::AgentKind;

use crate::install::{Home, HookEvent, HooksFile, Installer, Nesting, OffSwitch, RunsIn, TimeoutUnit, Wait};

/// A failing PreToolUse hook denies the tool, so that one never fails.
const EVENTS: &[HookEvent] = &[
    HookEvent::new("SessionStart"),
    HookEvent::new("UserPromptSubmit"),
    HookEvent::new("PreToolUse").must_succeed(),
    HookEvent::new("PostToolUse"),
    HookEvent::new("PostToolUseFailure"),
    HookEvent::waiting("PermissionRequest", Wait::Permission),
    HookEvent::new("Notification"),
    HookEvent::waiting("Stop", Wait::Stop),
    HookEvent::new("SubagentStart"),
    HookEvent::new("SubagentStop"),
    HookEvent::new("PreCompact"),
    HookEvent::new("ErrorOccurred"),
    HookEvent::new("SessionEnd"),
];

static HOOKS: HooksFile = HooksFile {
    path: "hooks/watchkeeper.json",
    agent: AgentKind::Copilot,
    nesting: Nesting::Flat,
    events: EVENTS,
    preamble: &[("version", "1")],
    own: true,
    strict: false,
    off_switches: &[OffSwitch::DISABLE_ALL],
    off_list: &[],
    timeout_unit: TimeoutUnit::Seconds,
    runs_in: RunsIn::PowerShell,
};

/// Copilot CLI's installer.
pub static INSTALLER: Installer = Installer {
    agent: AgentKind::Copilot,
    home: Home { variable: "COPILOT_HOME", below: "", default: ".copilot" },
    programs: &["copilot"],
    files: &[&HOOKS],
    notes: &[],
    trust: None,
};
