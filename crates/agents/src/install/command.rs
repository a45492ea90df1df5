//! The hook's command line: written so that a shell runs exactly it, and recognised again by its program's name.
//!
//! Not known here: files, agents' formats.

use watchkeeper_core::AgentKind;

/// The name of the hook program, without the folder and without `.exe`.
pub const HOOK_PROGRAM: &str = "watchkeeper-hook";

/// Longest command that is looked at; anything longer is somebody else's.
const RECOGNISED_MAX_BYTES: usize = 16 * 1024;

/// Which instance the hook talks to. The hook never reads the environment, so this stands on its command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Instance {
    /// The user's own instance at its default place.
    #[default]
    Default,
    /// A private instance below one folder: `--home DIR`.
    Home(String),
    /// The user's own instance at places moved by `XDG_*`: `--run DIR --state DIR`, and `--config DIR` for the daemon
    /// that the hook may have to start.
    Dirs { run: String, state: String, config: Option<String> },
}

/// How the agent's shell reads a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shell {
    /// `sh`, `bash`, `zsh`, Git Bash.
    #[default]
    Posix,
    /// PowerShell, which needs `&` before a quoted program.
    PowerShell,
}

/// Longest waits of the hooks that may be held, in seconds, written as their `timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Stop: delay after the stop + wait for a reply + 300 s extension + 60 s to post and settle.
    pub stop_s: u32,
    /// Permission requests: the wait for a remote answer + 30 s.
    pub permission_s: u32,
    /// Everything else: the hook leaves by its own deadline long before this.
    pub other_s: u32,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { stop_s: 550, permission_s: 150, other_s: 10 }
    }
}

/// Everything an installer must know to write the hooks of one machine's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wiring {
    /// Absolute path of `watchkeeper-hook`.
    pub program: String,
    pub instance: Instance,
    /// The instance's state folder, which nobody else may look into.
    pub state: String,
    pub timeouts: Timeouts,
    /// The shell of agents that run hooks with this system's own, or let the hook choose; the others run a POSIX one
    /// everywhere (each says which in its `HooksFile`).
    pub shell: Shell,
    /// The MCP server to register; `None`: whatever is registered stays as it is.
    pub mcp: Option<super::McpCommand>,
}

impl Wiring {
    /// The command line for one event, ready for `shell`.
    #[must_use]
    pub fn command(&self, agent: AgentKind, event: &str, shell: Shell) -> String {
        let (program, options) = (quote(&self.program, shell), self.instance.options());
        let words = options.iter().map(|word| match word {
            Word::Plain(word) => (*word).to_owned(),
            Word::Path(word) => quote(word, shell),
        });
        let words: Vec<String> = std::iter::once(program).chain(words).collect();
        let line = format!("{} {} {event}", words.join(" "), agent.name());
        match shell {
            Shell::Posix => line,
            Shell::PowerShell => format!("& {line}"),
        }
    }

    /// The program and its arguments up to the agent, for a caller that needs no shell; the event follows.
    #[must_use]
    pub fn words<'a>(&'a self, agent: &'a AgentKind) -> Vec<&'a str> {
        let options = self.instance.options().into_iter().map(|word| match word {
            Word::Plain(word) | Word::Path(word) => word,
        });
        std::iter::once(self.program.as_str()).chain(options).chain([agent.name()]).collect()
    }
}

/// A word of the hook's options.
enum Word<'a> {
    Plain(&'static str),
    /// Needs quotes before a shell.
    Path(&'a str),
}

impl Instance {
    /// The words that name this instance to `watchkeeper` and its hook.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let words = self.options().into_iter().map(|word| match word {
            Word::Plain(word) | Word::Path(word) => word.to_owned(),
        });
        words.collect()
    }

    fn options(&self) -> Vec<Word<'_>> {
        let named: Vec<(&'static str, Option<&String>)> = match self {
            Self::Default => Vec::new(),
            Self::Home(home) => vec![("--home", Some(home))],
            Self::Dirs { run, state, config } => {
                vec![("--run", Some(run)), ("--state", Some(state)), ("--config", config.as_ref())]
            }
        };
        named
            .into_iter()
            .filter_map(|(option, path)| Some((option, path?.as_str())))
            .flat_map(|(option, path)| [Word::Plain(option), Word::Path(path)])
            .collect()
    }
}

/// One word in quotes, always, so that the form does not depend on the path.
fn quote(word: &str, shell: Shell) -> String {
    match shell {
        Shell::Posix => {
            let mut out = String::with_capacity(word.len() + 2);
            out.push('"');
            for c in word.chars() {
                if matches!(c, '"' | '\\' | '$' | '`') {
                    out.push('\\');
                }
                out.push(c);
            }
            out.push('"');
            out
        }
        Shell::PowerShell => format!("'{}'", word.replace('\'', "''")),
    }
}

/// Whether a command line found in an agent's configuration starts our hook program. Only the program's own file
/// name counts: `my-watchkeeper-hook`, `echo watchkeeper-hook` and `watchkeeper-hook-old` are somebody else's.
#[must_use]
pub fn is_ours(command: &str) -> bool {
    if command.len() > RECOGNISED_MAX_BYTES {
        return false;
    }
    let rest = command.trim_start();
    let word = match rest.strip_prefix('&') {
        Some(after) => first_powershell_word(after.trim_start()),
        None => first_posix_word(rest),
    };
    let Some(word) = word else { return false };
    let name = word.rsplit(['/', '\\']).next().unwrap_or(&word);
    if name.eq_ignore_ascii_case("watchkeeper-hook.exe") {
        return true;
    }
    name == HOOK_PROGRAM
}

/// The first word as POSIX `sh` splits it; `None` when it is empty, its quotes do not close, or it is no plain
/// word (an expansion, a redirection, a subshell), since then nobody knows what would run.
fn first_posix_word(text: &str) -> Option<String> {
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' | ';' | '|' | '&' => break,
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    inner => word.push(inner),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break,
                    '$' | '`' => return None,
                    '\\' => match chars.next()? {
                        escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                        '\n' => {}
                        other => {
                            word.push('\\');
                            word.push(other);
                        }
                    },
                    inner => word.push(inner),
                }
            },
            // A bare backslash escapes in sh, but stands for itself in a Windows path; both readings give the same
            // last path segment for our program's name.
            '\\' => {
                word.push('\\');
                word.push(chars.next()?);
            }
            '$' | '`' | '(' | ')' | '<' | '>' => return None,
            plain => word.push(plain),
        }
    }
    (!word.is_empty()).then_some(word)
}

fn first_powershell_word(text: &str) -> Option<String> {
    let mut chars = text.chars().peekable();
    if let Some(quote @ ('\'' | '"')) = chars.peek().copied() {
        chars.next();
        let mut word = String::new();
        while let Some(c) = chars.next() {
            if c != quote {
                word.push(c);
            } else if chars.peek() == Some(&quote) {
                word.push(quote);
                chars.next();
            } else {
                return (!word.is_empty()).then_some(word);
            }
        }
        return None;
    }
    let word: String = chars.take_while(|c| !c.is_whitespace() && *c != ';').collect();
    (!word.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wiring(program: &str, instance: Instance) -> Wiring {
        let (program, state) = (program.to_owned(), "/state".to_owned());
        let (timeouts, shell) = (Timeouts::default(), Shell::Posix);
        Wiring { program, instance, state, timeouts, shell, mcp: None }
    }

    #[test]
    fn the_command_names_its_instance() {
        let check = |instance: Instance, expected: &str| {
            let command = wiring("/opt/w k/watchkeeper-hook", instance).command(
                AgentKind::Claude,
                "Stop",
                Shell::Posix,
            );
            assert_eq!(command, expected);
            assert!(is_ours(&command), "{command}");
        };
        check(Instance::Default, r#""/opt/w k/watchkeeper-hook" claude Stop"#);
        check(
            Instance::Home("/tmp/a b".into()),
            r#""/opt/w k/watchkeeper-hook" --home "/tmp/a b" claude Stop"#,
        );
        check(
            Instance::Dirs { run: "/r".into(), state: "/s".into(), config: None },
            r#""/opt/w k/watchkeeper-hook" --run "/r" --state "/s" claude Stop"#,
        );
        check(
            Instance::Dirs { run: "/r".into(), state: "/s".into(), config: Some("/c".into()) },
            r#""/opt/w k/watchkeeper-hook" --run "/r" --state "/s" --config "/c" claude Stop"#,
        );
    }

    #[test]
    fn every_path_survives_quoting() {
        for shell in [Shell::Posix, Shell::PowerShell] {
            for folder in
                ["/a", "/a b", "/a'b", "/a\"b", "/a$HOME", "/a`id`", "/a\\b", "/ünï", "/a;b", "/a&b", "/\n"]
            {
                let program = format!("{folder}/watchkeeper-hook");
                let command = wiring(&program, Instance::Default).command(AgentKind::Codex, "Stop", shell);
                assert!(is_ours(&command), "{command}");
            }
        }
    }

    #[test]
    fn only_the_exact_program_is_ours() {
        let check = |command: &str, expected: bool| assert_eq!(is_ours(command), expected, "{command}");
        check("watchkeeper-hook claude Stop", true);
        check("/usr/bin/watchkeeper-hook", true);
        check("  '/usr/bin/watchkeeper-hook' --home /x codex", true);
        check(r"/a\ b/watchkeeper-hook copilot Stop || true", true);
        check(r#""C:\Program Files\watchkeeper-hook.exe" claude Stop"#, true);
        check(r"C:\w\WATCHKEEPER-HOOK.EXE claude Stop", true);
        check("& 'C:/w/watchkeeper-hook.exe' copilot Stop", true);
        check("my-watchkeeper-hook claude Stop", false);
        check("/x/watchkeeper-hook-old claude", false);
        check("/x/watchkeeper-hook.sh claude", false);
        check("/watchkeeper-hook/other claude", false);
        check("echo watchkeeper-hook", false);
        check("timeout 5 /x/watchkeeper-hook claude", false);
        check("\"/x/watchkeeper-hook", false);
        check("$(which watchkeeper-hook) claude", false);
        check("", false);
        check(&format!("{}watchkeeper-hook", "/".repeat(RECOGNISED_MAX_BYTES)), false);
    }
}
