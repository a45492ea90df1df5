//! The known word that a mistyped one most likely meant.

use std::cmp::Reverse;

/// Longest word compared; a longer one is near nothing.
const WORD_BYTES_MAX: usize = 64;

/// The nearest of `known` by edit distance, if it is near enough (a third of the word's length, at least one edit);
/// case and `-` for `_` count as no difference. Of equally near ones the one that begins alike for longer.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.is_empty() || word.len() > WORD_BYTES_MAX {
        return None;
    }
    let word: Vec<char> = folded(word).collect();
    let limit = (word.len() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| {
            let letters: Vec<char> = folded(candidate).collect();
            let common = word.iter().zip(&letters).take_while(|(a, b)| a == b).count();
            (distance(&word, &letters), Reverse(common), candidate)
        })
        .filter(|(distance, _, _)| *distance <= limit)
        .min()
        .map(|(_, _, candidate)| candidate)
}

fn folded(word: &str) -> impl Iterator<Item = char> {
    word.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() })
}

/// Edits (insert, delete, replace, swap of neighbours) between two words.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expected: Option<&str>) {
        assert_eq!(
            nearest(word, ["keep_awake", "work_max", "suspend", "suspend_mode", "on", "off"]),
            expected
        );
    }

    #[test]
    fn finds_what_was_meant() {
        check("keep-awake", Some("keep_awake"));
        check("kep_awake", Some("keep_awake"));
        check("WORKMAX", Some("work_max"));
        check("suspned", Some("suspend"));
        check("suspend_mod", Some("suspend_mode"));
        check("of", Some("off"));
        check("telemetry", None);
        check("", None);
        check(&"x".repeat(100), None);
    }
}
