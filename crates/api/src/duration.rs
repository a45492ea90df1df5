//! Lengths of time as people write them: `90s`, `12m`, `1h30m`, `2d`. One grammar for settings and arguments.

use std::{fmt::Write, time::Duration};

/// Unit letters, largest first, with their seconds.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];
/// Longest text looked at.
const TEXT_BYTES_MAX: usize = 32;

/// A text that is no length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadDuration {
    #[error("it has no unit; write 12s, 12m or 12h")]
    NoUnit,
    #[error("write it as 90s, 12m, 1h30m or 2d")]
    NotOne,
    #[error("it is too long")]
    TooLong,
}

/// Reads a length: whole numbers with units, each unit at most once, largest first; spaces between parts are allowed,
/// `min` stands for `m`, and zero needs no unit.
///
/// # Errors
/// [`BadDuration`].
pub fn parse(text: &str) -> Result<Duration, BadDuration> {
    let text = text.trim();
    if text.is_empty() || text.len() > TEXT_BYTES_MAX {
        return Err(BadDuration::NotOne);
    }
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut seconds: u64 = 0;
    let mut next_unit = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(BadDuration::NotOne);
        }
        let number: u64 = rest[..digits].parse().map_err(|_| BadDuration::TooLong)?;
        rest = &rest[digits..];
        let Some(letter) = rest.chars().next() else {
            return Err(if next_unit == 0 { BadDuration::NoUnit } else { BadDuration::NotOne });
        };
        let found = UNITS.iter().skip(next_unit).position(|(unit, _)| *unit == letter.to_ascii_lowercase());
        let at = next_unit + found.ok_or(BadDuration::NotOne)?;
        next_unit = at + 1;
        let part = number.checked_mul(UNITS[at].1).ok_or(BadDuration::TooLong)?;
        seconds = seconds.checked_add(part).ok_or(BadDuration::TooLong)?;
        rest = &rest[1..];
        rest = rest.strip_prefix("in").unwrap_or(rest).trim_start();
    }
    Ok(Duration::from_secs(seconds))
}

/// Writes a length so that [`parse`] reads it back; parts of a second are dropped.
#[must_use]
pub fn format(length: Duration) -> String {
    let mut seconds = length.as_secs();
    let mut text = String::new();
    for (letter, size) in UNITS {
        let count = seconds / size;
        if count > 0 {
            // Writing to a string cannot fail.
            _ = write!(text, "{count}{letter}");
            seconds %= size;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<u64, BadDuration>) {
        assert_eq!(parse(text), expected.map(Duration::from_secs), "{text}");
    }

    #[test]
    fn reads_lengths() {
        check("90s", Ok(90));
        check(" 12m ", Ok(720));
        check("12min", Ok(720));
        check("1h30m", Ok(5400));
        check("1h 30m 5s", Ok(5405));
        check("2D", Ok(172_800));
        check("0", Ok(0));
        check("0s", Ok(0));
        check("12", Err(BadDuration::NoUnit));
        check("30m1h", Err(BadDuration::NotOne));
        check("1m1m", Err(BadDuration::NotOne));
        check("1h30", Err(BadDuration::NotOne));
        check("-1s", Err(BadDuration::NotOne));
        check("1.5h", Err(BadDuration::NotOne));
        check("", Err(BadDuration::NotOne));
        check("soon", Err(BadDuration::NotOne));
        check("1ü", Err(BadDuration::NotOne));
        check("99999999999999999999s", Err(BadDuration::TooLong));
        check("999999999999999999d", Err(BadDuration::TooLong));
    }

    #[test]
    fn writes_what_it_reads() {
        for seconds in [0, 1, 59, 60, 61, 3600, 5400, 86_399, 90_061, u64::MAX / 1000] {
            check(&format(Duration::from_secs(seconds)), Ok(seconds));
        }
        assert_eq!(format(Duration::from_secs(5400)), "1h30m");
    }
}
