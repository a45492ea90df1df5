//! Shown states that are true of no label near them. Labels that are shorter than the time in which a transition may lag cannot be
//! held against what is shown at one instant; but what is shown must have been true within that time.

use super::{Interval, TOLERANCE_S, Wrong};
use crate::recordings::load::{Label, Recording};

/// The pieces of labelled time, beside those in which one label alone decides, at which a state was shown that was not true at any
/// instant of the last `tolerance_s` seconds, nor is within the next second.
pub(super) fn stale(recording: &Recording, intervals: &[Interval], tolerance_s: f64) -> Vec<Wrong> {
    intervals.iter().flat_map(|interval| stale_part(&recording.labels, interval, tolerance_s)).collect()
}

fn stale_part(labels: &[Label], interval: &Interval, tolerance_s: f64) -> Vec<Wrong> {
    let mut own: Vec<&Label> = labels.iter().filter(|label| label.session == interval.session).collect();
    own.sort_by(|a, b| a.from.total_cmp(&b.from));
    let (Some(first), Some(last)) = (own.first(), own.iter().map(|label| label.to).reduce(f64::max)) else {
        return Vec::new();
    };
    let mut left =
        vec![(interval.from.max(first.from + tolerance_s), interval.to.unwrap_or(f64::INFINITY).min(last))];
    for label in &own {
        cut(&mut left, label.from + tolerance_s, label.to);
        if label.state == interval.state {
            cut(&mut left, label.from - TOLERANCE_S, label.to + tolerance_s);
        }
    }
    // Whatever is true where no label is, it may lag as well.
    for (before, after) in own.iter().zip(own.iter().skip(1)).filter(|(before, after)| before.to < after.from)
    {
        cut(&mut left, before.to, after.from + tolerance_s);
    }
    let pieces = left.into_iter().filter(|(from, to)| from < to);
    let wrong = pieces.filter_map(|(from, to)| {
        let label = own.iter().rev().find(|label| label.from <= from)?;
        Some(Wrong {
            session: interval.session.clone(),
            from,
            to,
            is: label.state,
            shown: Some(interval.state),
            since: label.from,
        })
    });
    wrong.collect()
}

/// Takes the time between `from` and `to` out of the pieces.
fn cut(pieces: &mut Vec<(f64, f64)>, from: f64, to: f64) {
    if from >= to {
        return;
    }
    let left = pieces.iter().flat_map(|(a, b)| [(*a, b.min(from)), (a.max(to), *b)]);
    *pieces = left.filter(|(a, b)| a < b).collect();
}
