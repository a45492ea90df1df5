//! Which transitions, rules and deadlines one input reached: names that the simulator counts, so that a rule nobody
//! exercises is seen. A bit each; costs nothing when nobody looks.

macro_rules! marks {
    ($($variant:ident = $name:literal,)*) => {
        /// One thing that an input can reach.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Mark { $($variant,)* }

        /// Every name, in the order of [`Mark`].
        pub const ALL_MARKS: &[&str] = &[$($name,)*];
    };
}

marks! {
    // Identity and order
    Minted = "minted",
    MintedAgain = "minted_again",
    MintedMidTurn = "minted_mid_turn",
    MintedEnded = "minted_ended",
    UnknownRecorded = "unknown_recorded",
    StaleIncarnation = "stale_incarnation",
    Duplicate = "duplicate",
    EarlierIgnored = "earlier_ignored",
    EarlierTurn = "earlier_turn",
    RemovedStays = "removed_stays",
    SubagentAdopted = "subagent_adopted",
    LimitReached = "limit_reached",
    EndedDropped = "ended_dropped",
    // Phases
    IdleToWorking = "idle_to_working",
    IdleToBackground = "idle_to_background",
    IdleToEnded = "idle_to_ended",
    WorkingToIdle = "working_to_idle",
    WorkingToBackground = "working_to_background",
    WorkingToEnded = "working_to_ended",
    BackgroundToWorking = "background_to_working",
    BackgroundToIdle = "background_to_idle",
    BackgroundToEnded = "background_to_ended",
    ReopenedBySameTurn = "reopened_by_same_turn",
    ReopenedByNewerTurn = "reopened_by_newer_turn",
    AbortedStaysShut = "aborted_stays_shut",
    LateSessionStart = "late_session_start",
    CompactionBetweenTurns = "compaction_between_turns",
    CompactionEnded = "compaction_ended",
    DisplayedOnly = "displayed_only",
    // Ends
    EndedReported = "ended_reported",
    EndedReplaced = "ended_replaced",
    EndedStopped = "ended_stopped",
    EndedProcessExited = "ended_process_exited",
    EndedOrphaned = "ended_orphaned",
    EndedRemoved = "ended_removed",
    EndDeferred = "end_deferred",
    OneProcessLess = "one_process_less",
    SecondEnd = "second_end",
    WorkBequeathed = "work_bequeathed",
    // Locks
    Locked = "locked",
    LockRefused = "lock_refused",
    LockClearedBySubject = "lock_cleared_by_subject",
    LockClearedByWork = "lock_cleared_by_work",
    LockClearedByState = "lock_cleared_by_state",
    LockClearedByPerson = "lock_cleared_by_person",
    LockClearedByProcess = "lock_cleared_by_process",
    LockClearedByHalt = "lock_cleared_by_halt",
    LockClearedByStart = "lock_cleared_by_start",
    LockKept = "lock_kept",
    // Work
    WorkStarted = "work_started",
    WorkStartBlocked = "work_start_blocked",
    WorkReopened = "work_reopened",
    WorkFinished = "work_finished",
    WorkReconciled = "work_reconciled",
    WorkQuiet = "work_quiet",
    WorkMoved = "work_moved",
    WorkAbandoned = "work_abandoned",
    ToolsToWork = "tools_to_work",
    StopDeferred = "stop_deferred",
    Drained = "drained",
    DrainedAtOnce = "drained_at_once",
    CarriedOut = "carried_out",
    // The agent's own state
    StatedBusy = "stated_busy",
    StatedIdle = "stated_idle",
    StatedShell = "stated_shell",
    StatedWaiting = "stated_waiting",
    StatedDialog = "stated_dialog",
    StatedGone = "stated_gone",
    StatedOlder = "stated_older",
    // Inactivity
    InactivityBaseline = "inactivity_baseline",
    InactivityAsked = "inactivity_asked",
    ExtendedByState = "extended_by_state",
    ExtendedByTool = "extended_by_tool",
    ExtendedByCpu = "extended_by_cpu",
    ExtendedByBackground = "extended_by_background",
    ExtendedUnknown = "extended_unknown",
    InactivityLocked = "inactivity_locked",
    WorkMaxReached = "work_max_reached",
    // Paths and suspend
    PathNormal = "path_normal",
    PathAbnormal = "path_abnormal",
    PathCancel = "path_cancel",
    PathContinuation = "path_continuation",
    PostSessionEndSent = "post_session_end_sent",
    HoldTaken = "hold_taken",
    HoldReleased = "hold_released",
    Owed = "owed",
    DebtForgiven = "debt_forgiven",
    SuspendPlanned = "suspend_planned",
    SuspendJoined = "suspend_joined",
    SuspendCancelled = "suspend_cancelled",
    SuspendAsked = "suspend_asked",
    SuspendWebhook = "suspend_webhook",
    SuspendSound = "suspend_sound",
    SuspendRequested = "suspend_requested",
    SuspendAccepted = "suspend_accepted",
    SuspendFailed = "suspend_failed",
    SuspendUnknown = "suspend_unknown",
    SleptElsewhere = "slept_elsewhere",
    HookHeld = "hook_held",
    HookAnswered = "hook_answered",
    HookGone = "hook_gone",
    LeaseTaken = "lease_taken",
    LeaseEnded = "lease_ended",
    ExitRuntime = "exit_runtime",
    RuntimeStarted = "runtime_started",
    // Deadlines reached while armed and due
    DueInactivity = "due_inactivity",
    DueWakeGrace = "due_wake_grace",
    DueWorkMax = "due_work_max",
    DueBackgroundQuiet = "due_background_quiet",
    DueCompaction = "due_compaction",
    DueHeldHook = "due_held_hook",
    DueLeaseExpiry = "due_lease_expiry",
    DueSuspendDelay = "due_suspend_delay",
    DueAskBeforeSleep = "due_ask_before_sleep",
    DueWebhook = "due_webhook",
    DueSound = "due_sound",
    DueSuspendRequest = "due_suspend_request",
    DueHoldVerify = "due_hold_verify",
    DueCleanup = "due_cleanup",
    NotDue = "not_due",
}

const _: () = assert!(ALL_MARKS.len() <= 128, "a mark is one bit of a u128");

/// The marks that one input reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks(u128);

impl Marks {
    pub(crate) fn set(&mut self, mark: Mark) {
        self.0 |= 1 << mark as u8;
    }

    /// Whether this one was reached.
    #[must_use]
    pub const fn has(self, mark: Mark) -> bool {
        self.0 & (1 << mark as u8) != 0
    }

    /// Everything reached by either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The names, in the order of [`ALL_MARKS`].
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        ALL_MARKS.iter().enumerate().filter(move |(bit, _)| self.0 & (1 << bit) != 0).map(|(_, name)| *name)
    }
}
