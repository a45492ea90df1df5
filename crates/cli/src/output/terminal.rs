//! What the output goes to.

use std::{
    env,
    ffi::OsString,
    io::{self, IsTerminal},
};

use anstyle::Style;

/// Columns where the system names none.
const COLUMNS_DEFAULT: usize = 100;
const ROWS_DEFAULT: usize = 40;

/// One output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// A person looks at it and it can be redrawn.
    pub(crate) interactive: bool,
    pub(crate) colour: bool,
    /// Lines are cut to it; `None` when piped: nothing is cut.
    pub(crate) columns: Option<usize>,
    pub(crate) rows: usize,
}

impl Terminal {
    /// Neither colour nor width: files, pipes, tests.
    pub(crate) const PLAIN: Self =
        Self { interactive: false, colour: false, columns: None, rows: ROWS_DEFAULT };

    pub(crate) fn stdout() -> Self {
        Self::of(io::stdout().is_terminal(), size())
    }

    pub(crate) fn stderr() -> Self {
        Self::of(io::stderr().is_terminal(), size())
    }

    fn of(is_terminal: bool, (columns, rows): (usize, usize)) -> Self {
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        // no-color.org: set and not empty, whatever the value.
        let forbidden = env::var_os("NO_COLOR").is_some_and(|value| value != OsString::new());
        Self {
            interactive: is_terminal && !dumb,
            colour: is_terminal && !dumb && !forbidden,
            columns: is_terminal.then_some(columns),
            rows,
        }
    }

    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.into() }
    }
}

/// Columns and rows.
#[cfg(unix)]
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (COLUMNS_DEFAULT, ROWS_DEFAULT),
    }
}

#[cfg(not(unix))]
fn size() -> (usize, usize) {
    let number = |name| env::var(name).ok().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
    (number("COLUMNS").unwrap_or(COLUMNS_DEFAULT), number("LINES").unwrap_or(ROWS_DEFAULT))
}
