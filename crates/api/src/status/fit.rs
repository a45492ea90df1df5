//! A status in one frame: with very many sessions it cannot say everything, and says so.

use serde::Serialize;
use watchkeeper_core::view::ShownState;

use super::{Session, Status};

/// JSON of the sessions, in bytes. With everything else an answer stays below a frame of the interface
/// ([`FRAME_BYTES_MAX`](crate::rpc::FRAME_BYTES_MAX)).
pub(super) const SESSIONS_BYTES_MAX: usize = 640 << 10;
/// JSON of the reasons to keep the machine awake, in bytes.
pub(super) const REASONS_BYTES_MAX: usize = 160 << 10;
/// When not all sessions fit as they are, their paths and titles are cut to so many characters,
const TEXT_CHARS: usize = 160;
/// and their background work to so many.
const WORK_MAX: usize = 16;

impl Status {
    /// Cuts long texts and leaves sessions and reasons out, the most urgent stay, until all of it fits a frame; a notice
    /// says what is missing.
    pub fn fit(&mut self) {
        if fitting(&self.sessions, SESSIONS_BYTES_MAX) < self.sessions.len() {
            self.sessions.iter_mut().for_each(Session::shorten);
            self.notices.push("there are very many sessions; their long texts are cut".to_owned());
            let left_out = self.sessions.split_off(fitting(&self.sessions, SESSIONS_BYTES_MAX));
            self.notices.extend(left_out_notice(&left_out));
        }
        let reasons = &mut self.machine.reasons;
        let left_out = reasons.split_off(fitting(reasons, REASONS_BYTES_MAX)).len();
        if left_out > 0 {
            self.notices.push(format!("{left_out} reasons to keep the machine awake are left out"));
        }
    }
}

/// How many of the first `items` take at most so many bytes together, as JSON.
fn fitting<T: Serialize>(items: &[T], bytes: usize) -> usize {
    let mut room = bytes;
    let fits = |item: &&T| {
        // With the comma behind it. What cannot be written has no place in an answer.
        let needed = serde_json::to_vec(item).map_or(usize::MAX, |json| json.len() + 1);
        room.checked_sub(needed).map(|left| room = left).is_some()
    };
    items.iter().take_while(fits).count()
}

fn left_out_notice(left_out: &[Session]) -> Option<String> {
    let ended = left_out.iter().filter(|session| session.state == ShownState::Ended).count();
    match (left_out.len() - ended, ended) {
        (0, 0) => None,
        (0, ended) => Some(format!("{ended} ended sessions are left out")),
        (live, 0) => Some(format!("{live} sessions are left out")),
        (live, ended) => Some(format!("{live} sessions and {ended} ended ones are left out")),
    }
}

impl Session {
    fn shorten(&mut self) {
        for path in [&mut self.cwd, &mut self.transcript].into_iter().flatten() {
            keep_end(path);
        }
        for text in [&mut self.title, &mut self.prompt_preview, &mut self.agent_version].into_iter().flatten()
        {
            keep_beginning(text);
        }
        self.background.truncate(WORK_MAX);
        for label in self.background.iter_mut().filter_map(|work| work.label.as_mut()) {
            keep_beginning(label);
        }
    }
}

fn keep_beginning(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(TEXT_CHARS) {
        text.truncate(at);
        text.push('…');
    }
}

/// Of a path its end says more.
fn keep_end(path: &mut String) {
    if let Some((at, _)) = path.char_indices().rev().nth(TEXT_CHARS - 1).filter(|(at, _)| *at > 0) {
        path.replace_range(..at, "…");
    }
}
