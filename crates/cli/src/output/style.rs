//! The few styles there are.

use anstyle::{AnsiColor, Style};
use watchkeeper_core::view::ShownState;

pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const ADDED: Style = AnsiColor::Green.on_default();
pub(crate) const REMOVED: Style = AnsiColor::Red.on_default();

/// The colour of a state: what wants the person stands out, what is over steps back.
pub(crate) const fn state(state: ShownState) -> Style {
    match state {
        ShownState::Waiting => AnsiColor::Yellow.on_default().bold(),
        ShownState::Working => AnsiColor::Green.on_default().bold(),
        ShownState::Background => AnsiColor::Cyan.on_default(),
        ShownState::Idle => Style::new(),
        ShownState::Ended => DIM,
    }
}
