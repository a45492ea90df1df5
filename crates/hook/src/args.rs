//! The command line. Never fails: what is wrong is sent along, and the daemon counts it.

/// Which instance is meant. Nothing given means the user's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Instance<'a> {
    /// A private instance: everything below this directory. Outranks the others.
    pub(crate) home: Option<&'a [u8]>,
    pub(crate) run: Option<&'a [u8]>,
    pub(crate) state: Option<&'a [u8]>,
    /// Only handed on to a daemon that is started.
    pub(crate) config: Option<&'a [u8]>,
}

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Call<'a, I> {
    pub(crate) instance: Instance<'a>,
    /// Empty when none was given.
    pub(crate) agent: &'a [u8],
    /// Empty when none was given.
    pub(crate) event: &'a [u8],
    /// What follows.
    pub(crate) rest: I,
    /// `--version` alone: say which hook this is.
    pub(crate) asks_version: bool,
    /// `--receipt`: say on standard error what came of the event, for measurements and crash tests.
    pub(crate) asks_receipt: bool,
}

/// Reads the arguments after the program's name. Options stand before the agent; an unknown one is taken for the agent.
pub(crate) fn parse<'a, I: Iterator<Item = &'a [u8]>>(mut arguments: I) -> Call<'a, I> {
    let mut instance = Instance::default();
    let mut asks_receipt = false;
    let agent = loop {
        let Some(argument) = arguments.next() else { break &b""[..] };
        if argument == b"--" {
            break arguments.next().unwrap_or_default();
        }
        let (name, value) = match argument.iter().position(|b| *b == b'=') {
            Some(at) => argument.split_at(at),
            None => (argument, &b""[..]),
        };
        let target = match name {
            b"--home" => &mut instance.home,
            b"--run" => &mut instance.run,
            b"--state" => &mut instance.state,
            b"--config" => &mut instance.config,
            b"--receipt" => {
                asks_receipt = true;
                continue;
            }
            _ => break argument,
        };
        let value = match value.split_first() {
            Some((_, value)) => Some(value),
            None => arguments.next(),
        };
        *target = value.filter(|directory| !directory.is_empty());
    };
    let asks_version = agent == b"--version";
    let event = arguments.next().unwrap_or_default();
    Call { instance, agent, event, rest: arguments, asks_version, asks_receipt }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, instance: Instance<'_>, agent: &str, event: &str, rest: &[&str]) {
        let call = parse(line.split_whitespace().map(str::as_bytes));
        assert_eq!(call.instance, instance, "{line}");
        assert_eq!((call.agent, call.event), (agent.as_bytes(), event.as_bytes()), "{line}");
        assert_eq!(
            call.rest.collect::<Vec<_>>(),
            rest.iter().map(|a| a.as_bytes()).collect::<Vec<_>>(),
            "{line}"
        );
    }

    #[test]
    fn options_come_first() {
        let own = Instance::default();
        check("", own, "", "", &[]);
        check("claude", own, "claude", "", &[]);
        check("codex notify {} --home /x", own, "codex", "notify", &["{}", "--home", "/x"]);
        check("-- --home e", own, "--home", "e", &[]);
        check("--frob claude", own, "--frob", "claude", &[]);
        check("--receipt claude Stop", own, "claude", "Stop", &[]);
        let home = Instance { home: Some(b"/h"), ..own };
        check("--home /h claude Stop", home, "claude", "Stop", &[]);
        check("--home=/h claude Stop", home, "claude", "Stop", &[]);
        check("--home", own, "", "", &[]);
        check("--home= claude", own, "claude", "", &[]);
        let explicit = Instance { run: Some(b"/r"), state: Some(b"/s"), config: Some(b"/c=d"), ..own };
        check("--run /r --state /s --config /c=d claude Stop", explicit, "claude", "Stop", &[]);
    }
}
