//! `/proc/PID/stat` as text → fields. Pure; tested with recorded lines.
//!
//! The second field is the name that the process gives itself, so it may hold spaces, parentheses and newlines:
//! the fields are counted from the last `)`.

use super::RunState;

/// The fields used here, in the kernel's units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcStat {
    pub(crate) pid: u32,
    pub(crate) comm: String,
    pub(crate) state: RunState,
    pub(crate) ppid: u32,
    /// Clock ticks of this process and of its children that were waited for.
    pub(crate) cpu_ticks: u64,
    /// Clock ticks between boot and this process's start (field 22).
    pub(crate) start_ticks: u64,
}

/// Reads one line; `None` for anything that is not one.
pub(crate) fn parse(line: &[u8]) -> Option<ProcStat> {
    let open = line.iter().position(|b| *b == b'(')?;
    let close = line.iter().rposition(|b| *b == b')')?;
    let pid = text(line.get(..open)?)?.trim().parse().ok()?;
    let comm = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let mut fields = text(line.get(close + 1..)?)?.split_ascii_whitespace();
    let state = run_state(fields.next()?);
    // Fields 4 to 13 are ppid, pgrp, session, tty_nr, tpgid, flags, minflt, cminflt, majflt, cmajflt.
    let ppid = fields.next()?.parse().ok()?;
    let mut fields = fields.skip(9);
    let mut cpu_ticks = 0_u64;
    for _ in 0..4 {
        // utime, stime, cutime, cstime; the last two are signed in the kernel.
        let ticks: i64 = fields.next()?.parse().ok()?;
        cpu_ticks = cpu_ticks.saturating_add(u64::try_from(ticks).unwrap_or(0));
    }
    // priority, nice, num_threads, itrealvalue, then starttime.
    let start_ticks = fields.nth(4)?.parse().ok()?;
    Some(ProcStat { pid, comm, state, ppid, cpu_ticks, start_ticks })
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Letters of `fs/proc/array.c`; kernels before 4.14 had more of them, all kinds of waiting.
fn run_state(letter: &str) -> RunState {
    match letter {
        "R" => RunState::Running,
        "S" | "I" => RunState::Sleeping,
        "D" => RunState::DiskWait,
        "T" => RunState::Stopped,
        "t" => RunState::Traced,
        "Z" | "X" | "x" => RunState::Exited,
        _ => RunState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &[u8], expected: Option<(u32, &str, RunState, u32, u64, u64)>) {
        let got = parse(line).map(|s| (s.pid, s.comm, s.state, s.ppid, s.cpu_ticks, s.start_ticks));
        let expected = expected.map(|(a, comm, c, d, e, f)| (a, comm.to_owned(), c, d, e, f));
        assert_eq!(got, expected, "{:?}", String::from_utf8_lossy(line));
    }

    const TAIL: &str =
        "0 -1 4194560 1245 8093 0 11 7 3 20 5 20 0 1 0 4711 2543616 241 18446744073709551615 0 0\n";

    #[test]
    fn a_line_of_the_kernel_is_read() {
        check(
            format!("1234 (bash) S 1200 1234 1234 {TAIL}").as_bytes(),
            Some((1234, "bash", RunState::Sleeping, 1200, 35, 4711)),
        );
    }

    #[test]
    fn a_name_may_hold_what_separates_fields() {
        check(
            format!("7 (a) R 1 (b\n) T 2 7 7 {TAIL}").as_bytes(),
            Some((7, "a) R 1 (b\n", RunState::Stopped, 2, 35, 4711)),
        );
        let mut line = b"7 (\xff\xfe) Z 2 7 7 ".to_vec();
        line.extend_from_slice(TAIL.as_bytes());
        check(&line, Some((7, "\u{fffd}\u{fffd}", RunState::Exited, 2, 35, 4711)));
    }

    #[test]
    fn anything_else_is_refused() {
        for line in [
            "",
            "7",
            "7 (x",
            "7 )x(",
            "7 (x) S",
            "7 (x) S 1 2 3",
            "x (x) S 1 2 3 0 -1 0 0 0 0 0 1 1 1 1 1 1 1 1 1",
        ] {
            check(line.as_bytes(), None);
        }
        check(b"7 (x) S 1 2 3 0 -1 0 0 0 0 0 1 1 1 1 1 1 1 1 -9", None);
        check(b"4294967296 (x) S 1 2 3 0 -1 0 0 0 0 0 1 1 1 1 1 1 1 1 9", None);
    }

    #[test]
    fn no_prefix_of_a_line_panics() {
        let line = format!("7 (a) R 1 (b) T 2 7 7 {TAIL}");
        for end in 0..line.len() {
            drop(parse(&line.as_bytes()[..end]));
        }
    }
}
