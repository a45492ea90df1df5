//! Which process is Copilot CLI: the native program below its node loader (its short name is `MainThread`), or the
//! GitHub CLI running it.

use crate::ancestry::AncestryRules;

pub(super) static RULES: AncestryRules<'static> = AncestryRules {
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
    print_options: &["-p", "--prompt"],
};
