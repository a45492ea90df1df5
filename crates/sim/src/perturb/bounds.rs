//! What a disturbance may cost, and why.

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
