//! Codex's hooks: `hooks.json` in Claude's shape, the `hooks` feature in `config.toml` only where it is switched off,
//! and the trust that Codex asks the person for before it runs a new or changed hook.

use watchkeeper_core::AgentKind;

use crate::install::{
    CLOSING_S, FeatureSwitch, Home, HookEvent, HooksFile, Installer, KeyedState, Nesting, RunsIn,
    SwitchAndServers, TimeoutUnit, Trust, Wait, hex_digest, states,
};

/// All events Codex has for command hooks.
const EVENTS: &[HookEvent] = &[
    HookEvent::new("SessionStart"),
    HookEvent::new("UserPromptSubmit"),
    HookEvent::new("PreToolUse"),
    HookEvent::waiting("PermissionRequest", Wait::Permission),
    HookEvent::new("PostToolUse"),
    HookEvent::waiting("Stop", Wait::Stop),
    HookEvent::waiting("Interrupt", Wait::Closing),
    HookEvent::new("SubagentStart"),
    HookEvent::new("SubagentStop"),
    HookEvent::new("PreCompact"),
    HookEvent::new("PostCompact"),
    HookEvent::waiting("SessionEnd", Wait::Closing),
];

static HOOKS: HooksFile = HooksFile {
    path: "hooks.json",
    agent: AgentKind::Codex,
    nesting: Nesting::Groups,
    events: EVENTS,
    preamble: &[],
    own: false,
    strict: true,
    off_switches: &[],
    off_list: &[],
    timeout_unit: TimeoutUnit::Seconds,
    runs_in: RunsIn::Posix,
};

static CONFIG: SwitchAndServers = SwitchAndServers {
    switch: FeatureSwitch { path: "config.toml", table: "features", keys: &["hooks", "codex_hooks"] },
};

/// Codex's installer.
pub static INSTALLER: Installer = Installer {
    agent: AgentKind::Codex,
    home: Home { variable: "CODEX_HOME", below: "", default: ".codex" },
    programs: &["codex"],
    files: &[&HOOKS, &CONFIG],
    notes: &[
        "Codex runs a new or changed hook only after you reviewed it. Start `codex` once: it says that hooks are \
         new or changed; look at them and choose \"Trust all and continue\". `codex exec` never asks and passes \
         over hooks that were not trusted before, without a word.",
    ],
    trust: Some(trust),
};

fn trust(hooks_path: &str, texts: &[Option<&str>]) -> Trust {
    let hooks = texts.first().copied().flatten().unwrap_or_default();
    let config = texts.get(1).copied().flatten().unwrap_or_default();
    // A config.toml that Codex cannot read either trusts nothing.
    let states = states(config, &["hooks", "state"], "trusted_hash", "enabled").unwrap_or_default();
    let mut trust = Trust::default();
    for position in HOOKS.positions(hooks) {
        let event = snake_case(&position.event);
        let key = format!("{hooks_path}:{event}:{}:{}", position.element, position.within);
        let hash = position.says.map(|(command, timeout)| trusted_hash(&event, &command, &timeout));
        let list = match states.iter().find(|state| state.key == key) {
            Some(KeyedState { flag: Some(false), .. }) => &mut trust.switched_off,
            Some(KeyedState { text: Some(recorded), .. }) => {
                // What is more than Codex's checksum covers here is taken as reviewed.
                let same = hash.as_ref().is_none_or(|hash| hash == recorded);
                if same { &mut trust.trusted } else { &mut trust.changed }
            }
            Some(KeyedState { text: None, .. }) | None => &mut trust.untrusted,
        };
        list.push(position.event);
    }
    trust
}

/// Codex's checksum of a hook (0.171.0): SHA-256 of its compact JSON with sorted keys, with the defaults filled in and
/// the timeout as Codex applies it.
fn trusted_hash(event: &str, command: &str, timeout: &str) -> String {
    let timeout = match (event, timeout.parse::<u64>()) {
        ("interrupt" | "session_end", Ok(seconds)) => seconds.min(u64::from(CLOSING_S)).to_string(),
        _ => timeout.to_owned(),
    };
    let hook =
        format!("{{\"async\":false,\"command\":{command},\"timeout\":{timeout},\"type\":\"command\"}}");
    let identity = format!("{{\"event_name\":\"{event}\",\"hooks\":[{hook}]}}");
    format!("sha256:{}", hex_digest(identity.as_bytes()))
}

/// `SessionStart` as `session_start`, the spelling of Codex's trust keys.
fn snake_case(event: &str) -> String {
    let mut out = String::with_capacity(event.len() + 4);
    for c in event.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
