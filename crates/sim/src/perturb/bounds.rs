//! What a disturbance may cost, and why.

use std::{collections::BTreeMap, path::Path};

use super::{Kind, Outcome, Verdict};

/// How long silence may last before it is believed, in seconds: `inactivity_timeout`'s default of 12 min. What a lost hook may cost
/// where nothing else tells what it told, since nothing else tells a silent machine from a thinking one.
pub(super) const INACTIVITY_S: f64 = 12.0 * 60.0;
/// A command that may run behind its turn counts for so long although nothing is seen of it, in seconds: `background_quiet`'s
/// default of 30 min. Takes the place of the former where the lost hook would have told that no such command runs.
pub(super) const BACKGROUND_QUIET_S: f64 = 30.0 * 60.0;
/// A tool call that was not told to have ended counts while its agent lives, since a remote one uses no processor here, in seconds:
/// `work_max`'s default of 6 h. Takes the place of the former where the lost hook would have told that the call waits for a person.
pub(super) const WORK_MAX_S: f64 = 6.0 * 3600.0;
/// A restart forgets the figure of CPU time that the look at a silent session compares with: the first look behind it takes the
/// figure, the next one, a timeout later, decides.
pub(super) const LOOKS_AFTER_RESTART: f64 = 2.0;
/// For deadlines to be reached and answered behind all of it, in seconds.
pub(super) const MARGIN_S: f64 = 15.0;

/// The rules by which a machine is let go that nobody needs, in the order of their times.
pub(super) const RULES: [(f64, &str); 3] = [
    (INACTIVITY_S, "the inactivity rule"),
    (BACKGROUND_QUIET_S, "background_quiet, as a command may run behind the turn"),
    (WORK_MAX_S, "work_max, as a tool is in flight"),
];

/// How many runs of the project's own recordings may cost more than seconds: states untold, the machine let go too early, the
/// inactivity rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cost {
    kind: Kind,
    folder: &'static str,
    untold: usize,
    unheld: usize,
    inactivity: usize,
}

const fn dropped(folder: &'static str, untold: usize, unheld: usize, inactivity: usize) -> Cost {
    Cost { kind: Kind::Dropped, folder, untold, unheld, inactivity }
}

/// As measured. What stands in no line costs nothing; a recording that is added raises its line on purpose.
const COSTS: [Cost; 9] = [
    // Untold: a SessionStart before the first prompt, a last SessionEnd, a Stop in front of background work. 12 min: two Stops
    // without live state or `turn_duration` in the recording; 6 h: a PermissionRequest.
    dropped("acp", 5, 0, 3),
    // Untold: a SessionStart, one SessionEnd, one Stop. Unheld: a prompt that is in the transcript with the answer only. 6 h: two
    // PermissionRequests without live state in the recording.
    dropped("claude", 25, 1, 2),
    // Untold: a SessionEnd, a SessionStart that replaces, a `notify` without hooks. 6 h and 30 min: three PermissionRequests.
    dropped("codex", 4, 0, 3),
    // Untold: a SessionEnd below a server that lives on. 6 h: a PermissionRequest.
    dropped("codex-daemon", 10, 0, 1),
    // Untold: a Stop in front of background work, a SessionEnd. Unheld: as of Claude Code. 12 min: a Stop, an answer is no end.
    dropped("copilot", 5, 1, 9),
    // Untold: a SessionStart, one AfterAgent. 12 min: two AfterAgents, a last SessionEnd with a command behind it.
    dropped("gemini", 7, 0, 3),
    // 6 h: a `permission.asked`.
    dropped("opencode", 0, 0, 1),
    // Untold: a SessionStart before the first prompt.
    dropped("qwen", 10, 0, 0),
    // 12 min: an agent that lived for a second, whose first telling hook came after its exit.
    Cost { kind: Kind::Delayed, folder: "qwen", untold: 0, unheld: 0, inactivity: 1 },
];

/// Where the project's own recordings cost more than they are known to; a line each. Others are judged by each run's outcome alone.
#[must_use]
pub fn beyond(verdicts: &[Verdict]) -> Vec<String> {
    let mut counts: BTreeMap<(Kind, &str, Outcome), usize> = BTreeMap::new();
    for verdict in verdicts {
        *counts.entry((verdict.kind, &verdict.folder, verdict.outcome)).or_default() += 1;
    }
    let known = |kind, folder: &str, outcome| {
        let cost = COSTS.iter().find(|cost| cost.kind == kind && cost.folder == folder);
        cost.map_or(0, |cost| match outcome {
            Outcome::Untold => cost.untold,
            Outcome::Unheld => cost.unheld,
            Outcome::Inactivity => cost.inactivity,
            Outcome::Right | Outcome::Converged | Outcome::Wrong => 0,
        })
    };
    let costs = |outcome| matches!(outcome, Outcome::Untold | Outcome::Unheld | Outcome::Inactivity);
    counts
        .into_iter()
        .filter(|((_, _, outcome), _)| costs(*outcome))
        .map(|((kind, folder, outcome), count)| (kind, folder, outcome, count, known(kind, folder, outcome)))
        .filter(|(_, _, _, count, known)| count > known)
        .map(|(kind, folder, outcome, count, known)| {
            let kind = kind.name();
            format!("{count} runs of {kind} {folder} are {outcome:?}, at most {known} are known to be")
        })
        .collect()
}

/// Whether these are the project's own recordings, or some of them.
pub(super) fn is_own(dir: &Path) -> bool {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings");
    matches!((dir.canonicalize(), own.canonicalize()), (Ok(dir), Ok(own)) if dir.starts_with(&own))
}
