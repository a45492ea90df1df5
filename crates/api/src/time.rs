//! Wall times on the wire: RFC 3339, UTC, milliseconds. Nothing here reads a clock.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};
use std::{fmt, str::FromStr};
use watchkeeper_core::Wall;

const MS_PER_DAY: i64 = 86_400_000;
/// The years that RFC 3339 can write; times beyond are clamped to them.
const FIRST_MS: i64 = -62_167_219_200_000;
const LAST_MS: i64 = 253_402_300_799_999;
/// Longest text looked at: a date, nine digits of fraction and an offset fit well.
const TEXT_MAX: usize = 40;

/// A wall time as it is written: `2026-11-30T09:55:01.250Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Wall);

/// A text that is no RFC 3339 time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is not a time like 2026-11-30T09:55:01Z")]
pub struct BadTime {
    /// What was given, cut to 40 characters.
    pub given: String,
}

impl From<Wall> for Time {
    fn from(wall: Wall) -> Self {
        Self(wall)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.0.clamp(FIRST_MS, LAST_MS);
        let (year, month, day) = civil_of_days(ms.div_euclid(MS_PER_DAY));
        let in_day = ms.rem_euclid(MS_PER_DAY);
        let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
        let (second, milli) = (in_day / 1000 % 60, in_day % 1000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

impl FromStr for Time {
    type Err = BadTime;

    /// Accepts any RFC 3339 time; digits below the millisecond are dropped, a leap second counts as the next second.
    fn from_str(text: &str) -> Result<Self, BadTime> {
        parse(text.as_bytes())
            .map(|ms| Self(Wall(ms)))
            .ok_or_else(|| BadTime { given: text.chars().take(TEXT_MAX).collect() })
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct TimeVisitor;
        impl<'de> Visitor<'de> for TimeVisitor {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<Time, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
                text.parse().map_err(D::Error::custom)
            }
        }
        // By its name the schema tells a time from other texts.
        d.deserialize_newtype_struct("Time", TimeVisitor)
    }
}

fn parse(text: &[u8]) -> Option<i64> {
    if text.len() > TEXT_MAX || text.len() < 20 {
        return None;
    }
    let punctuation = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    let separator = matches!(text[10], b'T' | b't' | b' ');
    if !separator || punctuation.iter().any(|(at, byte)| text[*at] != *byte) {
        return None;
    }
    let (year, month, day) = (digits(&text[0..4])?, digits(&text[5..7])?, digits(&text[8..10])?);
    let (hour, minute, second) = (digits(&text[11..13])?, digits(&text[14..16])?, digits(&text[17..19])?);
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (milli, zone) = fraction(&text[19..])?;
    let offset_minutes = offset(zone)?;
    let in_day = ((hour * 60 + minute - offset_minutes) * 60 + second) * 1000 + milli;
    Some(days_of_civil(year, month, day) * MS_PER_DAY + in_day)
}

/// Milliseconds of an optional fraction, and what follows it.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.', rest)) = text.split_first() else { return Some((0, text)) };
    let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let kept = &rest[..count.min(3)];
    let scale = [100, 10, 1][kept.len() - 1];
    Some((digits(kept)? * scale, &rest[count..]))
}

/// Minutes east of UTC.
fn offset(zone: &[u8]) -> Option<i64> {
    match zone {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
            (hours < 24 && minutes < 60)
                .then_some(if *sign == b'+' { 1 } else { -1 } * (hours * 60 + minutes))
        }
        _ => None,
    }
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |sum: i64, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar; years counted from March so that a leap day comes last.
fn days_of_civil(year: i64, month: i64, day: i64) -> i64 {
    let from_march = if month <= 2 { year - 1 } else { year };
    let era = from_march.div_euclid(400);
    let year_of_era = from_march.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse of [`days_of_civil`].
fn civil_of_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected_ms: Option<i64>) {
        assert_eq!(text.parse::<Time>().ok().map(|t| t.0.0), expected_ms, "{text}");
    }

    #[test]
    fn reads_what_rfc_3339_allows() {
        check("1970-01-01T00:00:00Z", Some(0));
        check("1970-01-01T00:00:00.001Z", Some(1));
        check("1970-01-01T00:00:00.1239Z", Some(123));
        check("2000-02-29T12:00:00+02:00", Some(951_818_400_000));
        check("1969-12-31T23:59:59.999z", Some(-1));
        check("2016-12-31 23:59:60Z", Some(1_483_228_800_000));
    }

    #[test]
    fn refuses_the_rest() {
        for text in [
            "",
            "now",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+2:00",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00Zx",
            "２０２６-01-01T00:00:00Z",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn writes_what_it_reads() {
        let mut ms = FIRST_MS;
        while ms < LAST_MS {
            check(&Time(Wall(ms)).to_string(), Some(ms));
            ms += 86_400_000 * 97 + 12_345_678;
        }
        assert_eq!(Time(Wall(i64::MAX)).to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Time(Wall(i64::MIN)).to_string(), "0000-01-01T00:00:00.000Z");
    }
}
