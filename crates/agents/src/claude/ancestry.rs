//! Which process is Claude Code: the native program, or an interpreter running the package's script; never its
//! supervisor or terminal host, which outlive and serve many conversations.

use crate::ancestry::{AncestryRules, ProcessInfo, has_option};

pub(super) static RULES: AncestryRules<'static> = AncestryRules {
    stems: &["claude"],
    // The native installer keeps `…/claude/versions/2.1.332`, a file without the agent's name.
    path_contains: &["claude/versions"],
    scripts: &[
        ("node", "@anthropic-ai/claude-code/cli.js"),
        ("bun", "@anthropic-ai/claude-code/cli.js"),
        ("node", "bin/claude"),
        ("bun", "bin/claude"),
        ("node", ".bin/claude"),
        ("bun", ".bin/claude"),
    ],
    // A spare (`claude bg-spare`) is none of them: it runs no hook before it is claimed and becomes the worker.
    helpers: &["bg-pty-host", "daemon"],
    shared: &[],
    wrapper_scripts: &[],
    print_options: &["-p", "--print"],
};

/// Whether a person can be asked by the process with this command line: not in print mode. A permission tool in print
/// mode may be a person's or a program's.
pub(super) fn can_ask(agent: &ProcessInfo) -> Option<bool> {
    match RULES.can_ask(agent) {
        Some(false) if has_option(agent, "--permission-prompt-tool") => None,
        told => told,
    }
}

/// The entry point that print mode names in the registry and in transcripts.
pub(super) fn entry_point_can_ask(entry_point: Option<&str>) -> Option<bool> {
    (entry_point == Some("sdk-cli")).then_some(false)
}
