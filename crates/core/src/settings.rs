//! The person's choices, as the core needs them. Ranges are checked by whoever reads the configuration.

use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::effect::SuspendMode;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub keep_awake: KeepAwake,
    /// `None`: off.
    pub inactivity_timeout: Option<Duration>,
    /// All inactivity extensions together, since the last signal of the agent itself.
    pub work_max: Duration,
    pub background_quiet: Duration,
    /// How long after the last deferred work a turn may still begin before the stop is carried out.
    pub wake_grace: Duration,
    pub post_stop_delay: Duration,
    pub waiting_delay: Duration,
    /// `None`: never exit.
    pub cleanup_delay: Option<Duration>,
    pub lease_max: Duration,
    pub record_prompts: RecordPrompts,
    pub watch_parent_process: bool,
    /// Put the machine to sleep when a sleep is owed.
    pub suspend: bool,
    pub suspend_mode: SuspendMode,
    pub ask_before_sleep: bool,
    pub ask_timeout: Duration,
    pub sound: Option<String>,
    pub webhooks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeepAwake {
    Off,
    Busy,
    On,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordPrompts {
    Off,
    Preview,
    Full,
}

impl Default for Settings {
    fn default() -> Self {
        const MINUTE: Duration = Duration::from_secs(60);
        const HOUR: Duration = Duration::from_secs(3600);
        Self {
            keep_awake: KeepAwake::Busy,
            inactivity_timeout: Some(12 * MINUTE),
            work_max: 6 * HOUR,
            background_quiet: 30 * MINUTE,
            wake_grace: Duration::from_secs(10),
            post_stop_delay: Duration::from_secs(10),
            waiting_delay: MINUTE,
            cleanup_delay: Some(10 * MINUTE),
            lease_max: 12 * HOUR,
            record_prompts: RecordPrompts::Preview,
            watch_parent_process: true,
            suspend: false,
            suspend_mode: SuspendMode::Sleep,
            ask_before_sleep: false,
            ask_timeout: 5 * MINUTE,
            sound: None,
            webhooks: false,
        }
    }
}
