//! Gemini CLI's hooks: `settings.json` in Claude's shape, timeouts in milliseconds.

use watchkeeper_core::AgentKind;

use crate::install::{Home, HookEvent, HooksFile, Installer, OffSwitch, RunsIn, TimeoutUnit, Wait};

/// Not the model events (one or more a request, and one a chunk of an answer) and not `PreCompress` (before each
/// request): Gemini waits for each of them, and they tell nothing more.
const EVENTS: &[HookEvent] = &[
    HookEvent::new("SessionStart"),
    HookEvent::new("BeforeAgent"),
    HookEvent::new("BeforeTool"),
    HookEvent::new("AfterTool"),
    HookEvent::new("Notification"),
    HookEvent::waiting("AfterAgent", Wait::Stop),
    HookEvent::new("SessionEnd"),
];

static SETTINGS: HooksFile = HooksFile {
    off_switches: &[OffSwitch { path: &["hooksConfig", "enabled"], value: false }],
    // By name, and a hook without one goes by its command.
    off_list: &["hooksConfig", "disabled"],
    timeout_unit: TimeoutUnit::Milliseconds,
    runs_in: RunsIn::PowerShell,
    ..HooksFile::settings(AgentKind::Gemini, EVENTS)
};

/// Gemini CLI's installer.
pub static INSTALLER: Installer = Installer {
    agent: AgentKind::Gemini,
    home: Home { variable: "GEMINI_CLI_HOME", below: ".gemini", default: ".gemini" },
    programs: &["gemini"],
    files: &[&SETTINGS],
    notes: &[],
    trust: None,
};
