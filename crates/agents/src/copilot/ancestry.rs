//! Which process is Copilot CLI: the native program below its node loader (its short name is `MainThread`), or the
//! GitHub CLI running it.

use crate::ancestry::{AncestryRules, ProcessInfo, has_option};

pub(super) static RULES: AncestryRules = AncestryRules {
    stems: &["copilot"],
    path_contains: &[],
    scripts: &[("gh", "copilot")],
    helpers: &[],
    shared: &[],
    wrapper_scripts: &[
        "bin/copilot",
        ".bin/copilot",
        "@github/copilot/index.js",
        "@github/copilot/npm-loader.js",
    ],
};

/// Whether a person can be asked: not in print mode.
pub(super) fn can_ask(agent: &ProcessInfo) -> Option<bool> {
    if agent.argv.is_empty() {
        return None;
    }
    Some(!(has_option(agent, "-p") || has_option(agent, "--prompt")))
}
