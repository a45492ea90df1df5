//! Which process is Codex: the native program below its node wrapper, or the app-server that runs the turns of many
//! conversations (shared).

use crate::ancestry::{AncestryRules, ProcessInfo};

pub(super) static RULES: AncestryRules<'static> = AncestryRules {
    stems: &["codex"],
    path_contains: &[],
    scripts: &[],
    // Neither runs turns: the updater of the shared server, and the sandboxed command's launcher.
    helpers: &["pid-update-loop", "sandbox"],
    shared: &["app-server"],
    wrapper_scripts: &["bin/codex", ".bin/codex", "@openai/codex/bin/codex.js"],
    // A subcommand tells.
    print_options: &[],
};

/// Whether a person can be asked: `exec` (and its alias) and `review` run unattended.
pub(super) fn can_ask(agent: &ProcessInfo) -> Option<bool> {
    let mut words = agent.argv.iter().skip(1).map(String::as_str).take_while(|a| *a != "--");
    if agent.argv.is_empty() {
        return None;
    }
    let first = words.find(|word| !word.starts_with('-') && !word.contains('='));
    Some(!matches!(first, Some("exec" | "e" | "review")))
}
