//! Foreign texts made fit for one line of a terminal, and columns.

/// Others' text without anything that moves a cursor or turns the direction of writing, in one line.
pub(crate) fn plain(text: &str) -> String {
    harmless(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As [`plain`], but with its lines and their indents.
pub(crate) fn harmless(text: &str) -> String {
    let spaced = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c });
    spaced
        .filter(|c| !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
        .collect()
}

/// At most so many characters, with `…` where something is left out.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.into();
    }
    let kept: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// What fits into so many columns of a terminal; colours are kept and closed. A line that wraps could not be redrawn.
pub(crate) fn clip(line: &str, columns: usize) -> String {
    let mut room = columns;
    let mut clipped = String::new();
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        clipped.push(c);
        if c == '\u{1b}' {
            // Only our own colours are here: they end with `m`.
            clipped.extend(rest.by_ref().take_while(|c| *c != 'm'));
            clipped.push('m');
            continue;
        }
        let width = width(c);
        if width > room {
            clipped.pop();
            clipped.push_str("\u{1b}[0m");
            break;
        }
        room -= width;
    }
    clipped
}

/// Columns of a character: the wide East Asian blocks and emoji take two.
const fn width(c: char) -> usize {
    match c {
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// Rows with their columns in line. Cells are plain; `paint` gets row, column and the padded cell.
pub(crate) fn rows(
    cells: &[Vec<String>],
    mut paint: impl FnMut(usize, usize, &str) -> String,
) -> Vec<String> {
    let columns = cells.iter().map(Vec::len).max().unwrap_or(0);
    let width_of =
        |column: usize| cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width_of(column).unwrap_or(0)).collect();
    let one = |(at, row): (usize, &Vec<String>)| {
        let painted: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| {
                // Nothing stands behind the last cell.
                let width = if column + 1 == row.len() { 0 } else { widths[column] };
                paint(at, column, &format!("{cell:<width$}"))
            })
            .collect();
        painted.join("  ").trim_end().to_owned()
    };
    cells.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_on_its_line() {
        assert_eq!(plain("a\u{1b}[2Jb\r\n\tc\u{202e}d"), "a [2Jb cd");
        assert_eq!(cut("fix the tests", 8), "fix the…");
        assert_eq!(cut("fix", 3), "fix");
    }

    #[test]
    fn a_clipped_line_does_not_wrap() {
        assert_eq!(clip("\u{1b}[1mab\u{1b}[0mcd", 3), "\u{1b}[1mab\u{1b}[0mc\u{1b}[0m");
        assert_eq!(clip("abc", 3), "abc");
        assert_eq!(clip("a漢字", 4), "a漢\u{1b}[0m");
        assert_eq!(clip("\u{1b}", 4), "\u{1b}m");
    }

    #[test]
    fn columns_stand_in_line() {
        let cells = [vec!["a".into(), "bb".into()], vec!["ccc".into(), "d".into()]];
        assert_eq!(rows(&cells, |_, _, cell| cell.into()), ["a    bb", "ccc  d"]);
    }
}
