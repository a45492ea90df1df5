//! Which process is Qwen Code: the innermost of its three node processes (launcher, relauncher, worker).

use crate::ancestry::AncestryRules;

pub(super) static RULES: AncestryRules<'static> = AncestryRules {
    stems: &["qwen"],
    path_contains: &[],
    scripts: &[
        ("node", "@qwen-code/qwen-code/cli.js"),
        ("node", "@qwen-code/qwen-code/cli-entry.js"),
        ("node", "bin/qwen"),
        ("node", ".bin/qwen"),
        ("bun", "@qwen-code/qwen-code/cli.js"),
        ("bun", "bin/qwen"),
        ("bun", ".bin/qwen"),
    ],
    helpers: &[],
    shared: &[],
    wrapper_scripts: &[],
    print_options: &["-p", "--prompt"],
};
