//! Which process is Gemini CLI: the node process that its node launcher started again with more memory; both run the
//! package's script, and the nearer one is the agent.

use crate::ancestry::AncestryRules;

pub(super) static RULES: AncestryRules<'static> = AncestryRules {
    stems: &["gemini"],
    path_contains: &[],
    scripts: &[
        ("node", "@google/gemini-cli/bundle/gemini.js"),
        ("node", "@google/gemini-cli/dist/index.js"),
        ("node", "bin/gemini"),
        ("node", ".bin/gemini"),
        ("bun", "@google/gemini-cli/bundle/gemini.js"),
        ("bun", "bin/gemini"),
        ("bun", ".bin/gemini"),
    ],
    helpers: &[],
    shared: &[],
    wrapper_scripts: &[],
    print_options: &["-p", "--prompt"],
};
