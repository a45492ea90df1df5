//! Gemini CLI's hooks: `settings.json` in Claude's shape, timeouts in milliseconds.

use watchkeeper_core::AgentKind;

use crate::install::{
    ConfigFile, Home, HookEvent, HooksFile, Installer, Nesting, OffSwitch, RunsIn, TimeoutUnit, Wait,
};

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
    path: "settings.json",
    agent: AgentKind::Gemini,
    nesting: Nesting::Groups,
    events: EVENTS,
    preamble: &[],
    own: false,
    strict: false,
    off_switches: &[OffSwitch { path: &["hooksConfig", "enabled"], value: false }],
    timeout_unit: TimeoutUnit::Milliseconds,
    runs_in: RunsIn::PowerShell,
};

static FILES: &[&dyn ConfigFile] = &[&SETTINGS];

/// Gemini CLI's installer.
#[derive(Debug)]
pub struct GeminiInstall;

impl Installer for GeminiInstall {
    fn agent(&self) -> AgentKind {
        AgentKind::Gemini
    }

    fn home(&self) -> Home {
        Home { variable: "GEMINI_CLI_HOME", below: ".gemini", default: ".gemini" }
    }

    fn programs(&self) -> &'static [&'static str] {
        &["gemini"]
    }

    fn files(&self) -> &'static [&'static dyn ConfigFile] {
        FILES
    }
}
