//! Questions that the shell asks about processes and work, answered from the indexes without building views.

use crate::{
    core::Core,
    identity::{Incarnation, ProcessRef, SessionKey},
    time::Boot,
};

impl Core {
    /// The sessions that this process belongs to, with their present incarnation.
    #[must_use]
    pub fn incarnations_of(&self, process: &ProcessRef) -> Vec<(SessionKey, Incarnation)> {
        let sids = self.index.by_process.get(process).into_iter().flatten();
        sids.filter_map(|sid| self.state.sessions.get(*sid)).map(|s| (s.key.clone(), s.incarnation)).collect()
    }

    /// Whether any session works or works in the background.
    #[must_use]
    pub fn is_any_active(&self) -> bool {
        !self.index.active.is_empty()
    }

    /// When the soft-lock of a session happened, for probes that look for younger children.
    #[must_use]
    pub fn locked_since(&self, key: &SessionKey) -> Option<Boot> {
        self.find(key)?.lock.as_ref()?.when.boot_at(&self.state.last)
    }
}
