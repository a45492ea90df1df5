//! How things look: on a terminal with colour, plain when piped. Knows no command and no daemon.

mod ago;
mod session_table;
pub(crate) mod style;
mod terminal;
mod text;

pub(crate) use ago::{Age, age};
pub(crate) use session_table::status_view;
pub(crate) use terminal::Terminal;
pub(crate) use text::{clip, cut, harmless, plain, rows};
