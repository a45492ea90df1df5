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
pub struct AncestryRules<'a> {
    /// File stems of the executable, ASCII case-insensitive (`claude`, `codex`).
    pub stems: &'a [&'a str],
    /// A path segment sequence that the executable's path must contain (versioned install folders), e.g.
    /// `claude-code/bin`.
    pub path_contains: &'a [&'a str],
    /// Interpreters (`node`, `bun`) with the script paths' tails that mark the agent.
    pub scripts: &'a [(&'a str, &'a str)],
    /// Argument words that make a match a helper to pass over (`bg-pty-host`, `bg-spare`).
    pub helpers: &'a [&'a str],
    /// Argument words that make a match a shared host (`app-server`).
    pub shared: &'a [&'a str],
    /// A matched interpreter is only used when no native child of it matched before it (Codex's node wrapper).
    pub wrapper_scripts: &'a [&'a str],
    /// Options of print mode, where nobody can be asked.
    pub print_options: &'a [&'a str],
}

impl AncestryRules<'static> {
    /// Matches no process.
    pub const NOBODY: Self = Self {
        stems: &[],
        path_contains: &[],
        scripts: &[],
        helpers: &[],
        shared: &[],
        wrapper_scripts: &[],
        print_options: &[],
    };
}

impl AncestryRules<'_> {
    /// Whether a person can be asked, by the options on the command line; `None` for an agent without such options, and
    /// for a process whose command line cannot be read.
    #[must_use]
    pub fn can_ask(&self, agent: &ProcessInfo) -> Option<bool> {
        if self.print_options.is_empty() || agent.argv.is_empty() {
            return None;
        }
        Some(!self.print_options.iter().any(|option| has_option(agent, option)))
    }
}

/// The longest walk up.
pub const MAX_HOPS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Index into the chain.
    Agent { index: usize, shared: bool },
    /// No ancestor matches; why the walk ended.
    None { why: &'static str },
    /// Nobody can say.
    Unknown { why: &'static str },
}

/// What one process is by the rules, with its arguments behind the program or script that matched.
enum Match<'a> {
    No,
    Agent(&'a [String]),
    /// A launcher whose native child is the agent itself.
    Wrapper,
}

/// Walks up a chain (nearest first) to the agent: at most [`MAX_HOPS`] processes, never past pid 1, a cycle, a missing
/// link, or a parent that started after its child (its pid was reused).
#[must_use]
pub fn find(rules: &AncestryRules<'_>, chain: &[ProcessInfo]) -> Found {
    let mut seen: Vec<u32> = Vec::new();
    let mut passed_native = false;
    for (index, process) in chain.iter().enumerate() {
        if index >= MAX_HOPS {
            return Found::None { why: "more than 32 ancestors" };
        }
        if process.pid <= 1 {
            return Found::None { why: "reached the first process" };
        }
        if seen.contains(&process.pid) {
            return Found::None { why: "the chain runs in a circle" };
        }
        seen.push(process.pid);
        if let Some(child) = index.checked_sub(1).and_then(|i| chain.get(i)) {
            if child.ppid != process.pid {
                return Found::None { why: "a parent is missing" };
            }
            if child.start != 0 && process.start > child.start {
                return Found::None { why: "a parent is younger than its child" };
            }
        }
        match classify(rules, process) {
            Match::No => {}
            Match::Agent(arguments) => {
                let word = subcommand(process, arguments);
                let is_one_of = |words: &[&str]| word.is_some_and(|w| words.contains(&w));
                if !is_one_of(rules.helpers) {
                    return Found::Agent { index, shared: is_one_of(rules.shared) };
                }
                passed_native = true;
            }
            Match::Wrapper if passed_native => {}
            Match::Wrapper => return Found::Agent { index, shared: false },
        }
    }
    Found::None { why: "no ancestor is this agent" }
}

fn classify<'a>(rules: &AncestryRules<'_>, process: &'a ProcessInfo) -> Match<'a> {
    let stem = stem(&process.exe);
    let by_stem = |name: &str| rules.stems.iter().any(|s| s.eq_ignore_ascii_case(name));
    // The kernel's name counts only where the executable cannot be read.
    let by_comm =
        process.exe.is_empty() && by_stem(process.comm.strip_suffix(".exe").unwrap_or(&process.comm));
    if by_stem(stem)
        || by_comm
        || rules.path_contains.iter().any(|part| contains_segments(&process.exe, part))
    {
        return Match::Agent(process.argv.get(1..).unwrap_or_default());
    }
    // An interpreter's script is its first argument that is no option.
    let script = process.argv.iter().enumerate().skip(1).find(|(_, a)| !a.starts_with('-'));
    let Some((position, script)) = script else { return Match::No };
    let interpreter = if process.exe.is_empty() { process.comm.as_str() } else { stem };
    let matches =
        |(name, tail): &(&str, &str)| interpreter.eq_ignore_ascii_case(name) && ends_with(script, tail);
    if rules.scripts.iter().any(matches) {
        return Match::Agent(process.argv.get(position + 1..).unwrap_or_default());
    }
    let launches = ["node", "bun", "deno"].iter().any(|name| interpreter.eq_ignore_ascii_case(name));
    if launches && rules.wrapper_scripts.iter().any(|tail| ends_with(script, tail)) {
        return Match::Wrapper;
    }
    Match::No
}

/// The file name without its directory and without `.exe`.
fn stem(path: &str) -> &str {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && extension.eq_ignore_ascii_case("exe") => stem,
        _ => name,
    }
}

/// Whether whole path segments of `path` are those of `part`, in sequence.
fn contains_segments(path: &str, part: &str) -> bool {
    let wanted: Vec<&str> = part.split('/').collect();
    let segments: Vec<&str> = path.split(['/', '\\']).collect();
    segments.windows(wanted.len()).any(|w| w.iter().zip(&wanted).all(|(a, b)| a.eq_ignore_ascii_case(b)))
}

/// Whether the last segments of `path` are those of `tail`.
fn ends_with(path: &str, tail: &str) -> bool {
    let mut segments = path.rsplit(['/', '\\']);
    tail.rsplit('/').all(|wanted| segments.next() == Some(wanted))
}

/// The word that selects what a program does: the rest of a title (`claude bg-spare`), or the first argument that is
/// neither an option nor directly behind one, where it could be that option's value. A prompt behind an option is
/// therefore never taken for it.
pub(crate) fn subcommand<'a>(process: &'a ProcessInfo, arguments: &'a [String]) -> Option<&'a str> {
    let title = process.argv.first().map_or("", String::as_str);
    if let Some((program, rest)) = title.split_once(' ')
        && !program.contains(['/', '\\'])
    {
        return rest.split_whitespace().next();
    }
    let mut after_option = false;
    for argument in arguments {
        if argument.starts_with('-') {
            after_option = !argument.contains('=');
        } else if after_option {
            after_option = false;
        } else {
            return Some(argument);
        }
    }
    None
}

/// Whether an option stands on the command line, before a `--`.
pub(crate) fn has_option(process: &ProcessInfo, option: &str) -> bool {
    let mut options = process.argv.iter().skip(1).map(String::as_str).take_while(|a| *a != "--");
    options.any(|a| a == option || a.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')))
}

#[cfg(test)]
mod tests;
