//! Which ancestor of a hook is the agent: rules declared by each adapter, applied to a chain read by the shell.

/// One process of a chain, nearest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessInfo {
    pub pid: u32,
    pub ppid: u32,
    /// Start identity, as in `ProcessRef::start`; zero when unknown.
    pub start: u64,
    /// Executable path, a trailing ` (deleted)` removed; empty when unreadable.
    pub exe: String,
    /// The kernel's short name; a last resort, since a process can set it.
    pub comm: String,
    pub argv: Vec<String>,
}

/// How an adapter recognises its agent. Never a substring anywhere in a command line.
#[derive(Debug)]
pub struct AncestryRules {
    /// File stems of the executable, ASCII case-insensitive (`claude`, `codex`).
    pub stems: &'static [&'static str],
    /// A path segment sequence that the executable's path must contain (versioned install folders), e.g.
    /// `claude-code/bin`.
    pub path_contains: &'static [&'static str],
    /// Interpreters (`node`, `bun`) with the script paths' tails that mark the agent.
    pub scripts: &'static [(&'static str, &'static str)],
    /// Argument words that make a match a helper to pass over (`bg-pty-host`, `bg-spare`).
    pub helpers: &'static [&'static str],
    /// Argument words that make a match a shared host (`app-server`).
    pub shared: &'static [&'static str],
    /// A matched interpreter is only used when no native child of it matched before it (Codex's node wrapper).
    pub wrapper_scripts: &'static [&'static str],
}

/// The longest walk up.
pub const MAX_HOPS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Index into the chain.
    Agent { index: usize, shared: bool },
    /// No ancestor matches; why the walk ended.
    None { why: &'static str },
}
