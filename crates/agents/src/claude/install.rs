//! Claude Code's hooks: `settings.json`, one group an event, an explicit timeout on each (a SessionEnd hook without
//! one is killed after about 1.5 s).

use watchkeeper_core::AgentKind;

use crate::install::{Home, HookEvent, HooksFile, Installer, JsonServers, Wait};

/// Every event that tells something about a session. Not MessageDisplay and PostToolBatch (one more process each, for what the
/// transcript or the tool's own event tells), not the Worktree events (a hook there replaces git's worktree), and nothing that
/// tells of files, models or settings only.
const EVENTS: &[HookEvent] = &[
    HookEvent::new("SessionStart"),
    HookEvent::new("UserPromptSubmit"),
    HookEvent::new("PreToolUse"),
    HookEvent::waiting("PermissionRequest", Wait::Permission),
    HookEvent::new("PermissionDenied"),
    HookEvent::new("PostToolUse"),
    HookEvent::new("PostToolUseFailure"),
    HookEvent::new("Notification"),
    HookEvent::new("Elicitation"),
    HookEvent::new("ElicitationResult"),
    HookEvent::waiting("Stop", Wait::Stop),
    HookEvent::new("StopFailure"),
    HookEvent::new("SubagentStart"),
    HookEvent::new("SubagentStop"),
    HookEvent::new("TaskCreated"),
    HookEvent::new("TaskCompleted"),
    HookEvent::new("PreCompact"),
    HookEvent::new("PostCompact"),
    HookEvent::new("SessionEnd"),
];

static SETTINGS: HooksFile = HooksFile::settings(AgentKind::Claude, EVENTS);

/// Where Claude Code keeps the servers of its user scope, beside much else.
static SERVERS: JsonServers =
    JsonServers { path: ".claude.json", default_path: ".claude.json", member: "mcpServers" };

/// Claude Code's installer.
pub static INSTALLER: Installer = Installer {
    agent: AgentKind::Claude,
    home: Home { variable: "CLAUDE_CONFIG_DIR", below: "", default: ".claude" },
    programs: &["claude"],
    files: &[&SETTINGS, &SERVERS],
    notes: &[],
    trust: None,
};
