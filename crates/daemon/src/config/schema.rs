//! The one table of settings: everything else (file, environment, `config schema`, documents) is read off it.

use std::time::Duration;
use watchkeeper_agents::nearest::nearest;
use watchkeeper_api::{
    duration,
    method::{CONFIG_SCHEMA_VERSION, ConfigSchema, SettingSchema},
};
use watchkeeper_core::{
    effect::SuspendMode,
    settings::{KeepAwake, RecordPrompts, Settings},
};

use super::error::{Problem, ProblemKind};

/// What stands before a setting's upper-case name in the environment.
pub(super) const ENVIRONMENT_PREFIX: &str = "WATCHKEEPER_";
/// How much of a bad value an error repeats.
const GIVEN_CHARS_MAX: usize = 64;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// One setting.
#[derive(Debug)]
pub struct Setting {
    pub key: &'static str,
    pub kind: Kind,
    /// One sentence for people.
    pub doc: &'static str,
    read: fn(&Settings) -> String,
    /// `None` when the text, which has the right form and lies in range, still means nothing.
    write: fn(&mut Settings, &str) -> Option<()>,
}

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bounds in seconds, both included.
    Duration {
        min_s: u64,
        max_s: u64,
        off: bool,
    },
    Bool,
    Choice(&'static [&'static str]),
    /// Free text of at most so many bytes, or `off`.
    Text {
        bytes_max: usize,
    },
}

macro_rules! duration_setting {
    ($field:ident, $min:expr, $max:expr, $doc:literal) => {
        Setting {
            key: stringify!($field),
            kind: Kind::Duration { min_s: $min, max_s: $max, off: false },
            doc: $doc,
            read: |settings| duration::format(settings.$field),
            write: |settings, text| duration::parse(text).ok().map(|length| settings.$field = length),
        }
    };
    ($field:ident, $min:expr, $max:expr, off, $doc:literal) => {
        Setting {
            key: stringify!($field),
            kind: Kind::Duration { min_s: $min, max_s: $max, off: true },
            doc: $doc,
            read: |settings| settings.$field.map_or_else(|| "off".into(), duration::format),
            write: |settings, text| {
                settings.$field = if text == "off" { None } else { Some(duration::parse(text).ok()?) };
                Some(())
            },
        }
    };
}

macro_rules! bool_setting {
    ($field:ident, $doc:literal) => {
        Setting {
            key: stringify!($field),
            kind: Kind::Bool,
            doc: $doc,
            read: |settings| settings.$field.to_string(),
            write: |settings, text| text.parse().ok().map(|on| settings.$field = on),
        }
    };
}

macro_rules! choice_setting {
    ($field:ident, $type:ident { $($word:literal = $variant:ident),* }, $doc:literal) => {
        Setting {
            key: stringify!($field),
            kind: Kind::Choice(&[$($word),*]),
            doc: $doc,
            read: |settings| match settings.$field { $($type::$variant => $word.into()),* },
            write: |settings, text| {
                settings.$field = match text { $($word => $type::$variant,)* _ => return None };
                Some(())
            },
        }
    };
}

/// Every setting, in the order in which documents list them.
pub const SETTINGS: &[Setting] = &[
    choice_setting!(
        keep_awake,
        KeepAwake { "off" = Off, "busy" = Busy, "on" = On },
        "When the machine is kept awake: never, while an agent works or a hold stands, or always."
    ),
    duration_setting!(
        inactivity_timeout,
        10,
        DAY,
        off,
        "After this long without any sign of work a session counts as waiting and stops keeping the machine awake."
    ),
    duration_setting!(
        work_max,
        MINUTE,
        7 * DAY,
        "Bound on all extensions of the inactivity timeout together, since the agent's own last signal."
    ),
    duration_setting!(
        background_quiet,
        10,
        DAY,
        "A background command that used no CPU and wrote nothing for this long stops keeping the machine awake."
    ),
    duration_setting!(
        wake_grace,
        0,
        10 * MINUTE,
        "How long after the end of background work the agent may start a turn by itself before its stop counts."
    ),
    duration_setting!(post_stop_delay, 0, HOUR, "Delay between the last stop and an owed suspend."),
    duration_setting!(
        waiting_delay,
        0,
        HOUR,
        "Delay before an owed suspend when every remaining session waits for a person."
    ),
    duration_setting!(
        cleanup_delay,
        0,
        DAY,
        off,
        "The daemon exits after this long with nothing to do; 'off' keeps it running."
    ),
    duration_setting!(lease_max, MINUTE, 7 * DAY, "Longest length of a hold; longer ones are cut to it."),
    choice_setting!(
        record_prompts,
        RecordPrompts { "off" = Off, "preview" = Preview, "full" = Full },
        "What is stored of prompts and of the commands of background work: nothing, their first 50 characters, or whole prompts."
    ),
    bool_setting!(watch_parent_process, "Find each agent's process and watch it for exit."),
    bool_setting!(
        suspend,
        "Put the machine to sleep after the last session has finished, when the lid is closed and nothing else wants it."
    ),
    choice_setting!(
        suspend_mode,
        SuspendMode { "sleep" = Sleep, "hibernate" = Hibernate },
        "How the machine is put to sleep."
    ),
    bool_setting!(
        ask_before_sleep,
        "Ask for a reply to a finished session before the machine goes to sleep."
    ),
    duration_setting!(ask_timeout, 10, HOUR, "How long such a question waits for its answer."),
    Setting {
        key: "sound",
        kind: Kind::Text { bytes_max: 1024 },
        doc: "Sound to play before the machine goes to sleep: a name or the path of a file.",
        read: |settings| settings.sound.clone().unwrap_or_else(|| "off".into()),
        write: |settings, text| {
            settings.sound = (text != "off").then(|| text.into());
            Some(())
        },
    },
    bool_setting!(webhooks, "Send the configured webhooks."),
];

/// What the core decides by these is recorded, and nobody carries it out yet.
const DECIDED_ONLY: [&str; 8] = [
    "post_stop_delay",
    "waiting_delay",
    "suspend",
    "suspend_mode",
    "ask_before_sleep",
    "ask_timeout",
    "sound",
    "webhooks",
];

/// The setting of this key, exactly as spelled.
#[must_use]
pub fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// The setting of this key.
///
/// # Errors
/// The problem, which names the nearest key.
pub fn find_or_suggest(key: &str) -> Result<&'static Setting, Problem> {
    find(key).ok_or_else(|| Problem {
        key: key.chars().take(GIVEN_CHARS_MAX).collect(),
        line: None,
        kind: ProblemKind::Unknown { nearest: nearest(key, SETTINGS.iter().map(|setting| setting.key)) },
    })
}

/// Everything about every setting, for `config schema`, documents and checks.
#[must_use]
pub fn schema() -> ConfigSchema {
    let defaults = Settings::default();
    let settings = SETTINGS.iter().map(|setting| SettingSchema {
        key: setting.key.into(),
        kind: setting.kind.name().into(),
        range: setting.kind.range(),
        choices: match setting.kind {
            Kind::Choice(words) => words.iter().map(|word| (*word).into()).collect(),
            Kind::Duration { .. } | Kind::Bool | Kind::Text { .. } => Vec::new(),
        },
        default: setting.value(&defaults),
        environment: setting.environment(),
        doc: setting.description(),
    });
    ConfigSchema { version: CONFIG_SCHEMA_VERSION, settings: settings.collect() }
}

impl Setting {
    /// The value in `settings` as text that [`Setting::apply`] reads back.
    #[must_use]
    pub fn value(&self, settings: &Settings) -> String {
        (self.read)(settings)
    }

    /// What it means, and how far this version goes.
    #[must_use]
    pub fn description(&self) -> String {
        let limit = if self.is_carried_out() {
            ""
        } else {
            " This version records the decision and does not act on it."
        };
        format!("{}{limit}", self.doc)
    }

    /// Whether this version acts on it.
    #[must_use]
    pub fn is_carried_out(&self) -> bool {
        !DECIDED_ONLY.contains(&self.key)
    }

    /// The environment variable that overrides the file.
    #[must_use]
    pub fn environment(&self) -> String {
        format!("{ENVIRONMENT_PREFIX}{}", self.key.to_ascii_uppercase())
    }

    /// Checks `text` against type and range and puts it into `settings`, which are untouched otherwise.
    ///
    /// # Errors
    /// What it takes instead, with the nearest choice where there is one.
    pub fn apply(&self, settings: &mut Settings, text: &str) -> Result<(), Problem> {
        let text = text.trim();
        let folded = text.to_ascii_lowercase();
        let (text, note) = match self.kind {
            Kind::Text { bytes_max } => {
                let fits = !text.is_empty() && text.len() <= bytes_max && !text.contains('\0');
                (text, if fits { None } else { Some(format!("{} bytes", text.len())) })
            }
            Kind::Choice(words) if words.contains(&folded.as_str()) => (folded.as_str(), None),
            Kind::Choice(words) => {
                let meant = nearest(&folded, words.iter().copied());
                (text, Some(meant.map_or_else(String::new, |word| format!("did you mean '{word}'?"))))
            }
            Kind::Bool => (folded.as_str(), bool_note(&folded)),
            Kind::Duration { off: true, .. } if folded == "off" => ("off", None),
            Kind::Duration { min_s, max_s, .. } => (text, duration_note(text, min_s, max_s)),
        };
        if note.is_none() && (self.write)(settings, text).is_some() {
            return Ok(());
        }
        Err(self.bad_value(text, note.filter(|note| !note.is_empty())))
    }

    pub(super) fn bad_value(&self, given: &str, note: Option<String>) -> Problem {
        Problem {
            key: self.key.into(),
            line: None,
            kind: ProblemKind::BadValue {
                given: given.chars().take(GIVEN_CHARS_MAX).collect(),
                expected: self.kind.range(),
                note,
            },
        }
    }
}

fn bool_note(text: &str) -> Option<String> {
    match text {
        "true" | "false" => None,
        "on" | "yes" | "1" => Some("did you mean 'true'?".into()),
        "off" | "no" | "0" => Some("did you mean 'false'?".into()),
        _ => Some(String::new()),
    }
}

fn duration_note(text: &str, min_s: u64, max_s: u64) -> Option<String> {
    match duration::parse(text) {
        Ok(length) if length < Duration::from_secs(min_s) => Some("that is too short".into()),
        Ok(length) if length > Duration::from_secs(max_s) => Some("that is too long".into()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

impl Kind {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duration { .. } => "duration",
            Self::Bool => "bool",
            Self::Choice(_) => "choice",
            Self::Text { .. } => "text",
        }
    }

    /// What it takes, in words.
    #[must_use]
    pub fn range(self) -> String {
        let seconds = |s| duration::format(Duration::from_secs(s));
        match self {
            Self::Duration { min_s, max_s, off } => {
                let or_off = if off { ", or off" } else { "" };
                format!("a duration from {} to {}{or_off}", seconds(min_s), seconds(max_s))
            }
            Self::Bool => "true or false".into(),
            Self::Choice(words) => match words {
                [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
                _ => words.join(""),
            },
            Self::Text { bytes_max } => format!("a text of at most {bytes_max} bytes, or off"),
        }
    }
}
