//! What a statement says about the state of its session: where several tell the same, losing one must cost nothing.

use watchkeeper_core::{
    signal::{Activity, AgentState, SignalBody, Thread},
    view::ShownState,
};

use crate::recordings::Told;

/// Whether this tells that the session came into the state `is`, to somebody who takes it for being in `shown`.
pub(super) fn tells(told: &Told, is: ShownState, shown: Option<ShownState>) -> bool {
    match shown {
        None | Some(ShownState::Ended) if is != ShownState::Ended => told.begins,
        None | Some(_) => speaks_for(told, is) && !is_half(told, is, shown),
    }
}

/// The end of work does not end a turn, and the end of a turn no work.
fn is_half(told: &Told, is: ShownState, shown: Option<ShownState>) -> bool {
    let of_work = matches!(
        told.body,
        SignalBody::WorkStarted { .. } | SignalBody::WorkFinished { .. } | SignalBody::WorkLevel { .. }
    );
    let lists_work = matches!(&told.body, SignalBody::Stopped { live: Some(_), .. });
    match (shown, is) {
        (Some(ShownState::Working | ShownState::Waiting), ShownState::Idle | ShownState::Background) => {
            of_work
        }
        (Some(ShownState::Background), ShownState::Idle)
        | (Some(ShownState::Idle), ShownState::Background) => {
            let by_itself = matches!(told.body, SignalBody::AgentStated { .. });
            !(of_work || lists_work || by_itself)
        }
        (_, _) => false,
    }
}

fn speaks_for(told: &Told, state: ShownState) -> bool {
    let main = told.thread == Thread::Main;
    match &told.body {
        SignalBody::Started { .. }
        | SignalBody::ToolStarted { .. }
        | SignalBody::ToolFinished { .. }
        | SignalBody::LockResolved { .. }
        | SignalBody::SoftLockCleared
        | SignalBody::Activity { what: Activity::ModelOutput } => main && state == ShownState::Working,
        SignalBody::Activity { what: Activity::CompactionStarted } => state == ShownState::Working,
        SignalBody::Activity { what: Activity::CompactionFinished } => state == ShownState::Idle,
        SignalBody::SoftLocked { .. } => state == ShownState::Waiting,
        SignalBody::WorkStarted { .. } => state == ShownState::Background,
        SignalBody::WorkFinished { .. } => state == ShownState::Idle,
        SignalBody::WorkLevel { .. } => matches!(state, ShownState::Background | ShownState::Idle),
        SignalBody::Stopped { .. }
        | SignalBody::Aborted { .. }
        | SignalBody::Failed { .. }
        | SignalBody::IdleNoticed => main && matches!(state, ShownState::Idle | ShownState::Background),
        SignalBody::SessionEnded { .. }
        | SignalBody::ProcessExited { .. }
        | SignalBody::Orphaned
        | SignalBody::Removed => state == ShownState::Ended,
        SignalBody::AgentStated { state: stated, .. } => match stated {
            AgentState::Busy => state == ShownState::Working,
            AgentState::Idle => state == ShownState::Idle,
            AgentState::Shell => state == ShownState::Background,
            AgentState::Waiting => state == ShownState::Waiting,
            AgentState::Dialog | AgentState::Gone => false,
        },
        SignalBody::SessionStarted { .. }
        | SignalBody::Activity { what: Activity::Progress | Activity::Manual }
        | SignalBody::Displayed { .. }
        | SignalBody::Unknown { .. } => false,
    }
}
