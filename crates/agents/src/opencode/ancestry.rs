//! Which process is OpenCode: one native program, terminal interface and turns in the same process; `serve` and `web` run
//! the conversations of many clients.

use crate::ancestry::{AncestryRules, ProcessInfo, subcommand};

pub(super) static RULES: AncestryRules<'static> = AncestryRules {
    stems: &["opencode"],
    path_contains: &[],
    scripts: &[],
    helpers: &[],
    shared: &["serve", "web"],
    wrapper_scripts: &["bin/opencode", ".bin/opencode", "opencode-ai/bin/opencode"],
    // A subcommand tells.
    print_options: &[],
};

/// Whether a person can be asked: `run` rejects what it would have to ask.
pub(super) fn can_ask(agent: &ProcessInfo) -> Option<bool> {
    let arguments = agent.argv.get(1..)?;
    let behind_script = match arguments.split_first() {
        Some((script, rest)) if script.contains(['/', '\\']) => rest,
        Some(_) | None => arguments,
    };
    Some(subcommand(agent, behind_script) != Some("run"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(argv: &[&str], expected: Option<bool>) {
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(can_ask(&ProcessInfo { argv, ..ProcessInfo::default() }), expected);
    }

    #[test]
    fn only_run_is_alone() {
        check(&["opencode"], Some(true));
        check(&["opencode", "/a/project"], Some(true));
        check(&["/usr/bin/opencode", "run", "do it"], Some(false));
        check(&["opencode", "--model=x", "run"], Some(false));
        check(&["opencode", "--model", "x", "run"], Some(false));
        // What stands right behind an option may be its value.
        check(&["opencode", "--prompt", "run"], Some(true));
        check(&["node", "/x/node_modules/.bin/opencode", "run", "x"], Some(false));
        check(&["opencode", "serve"], Some(true));
        check(&[], None);
    }
}
