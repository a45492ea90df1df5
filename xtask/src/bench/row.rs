//! One line of a benchmark's table.

/// What a ratio should be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// Ours divided by theirs is at most this.
    AtMost(f64),
    /// Theirs divided by ours is at least this.
    AtLeast(f64),
    /// Ours is zero.
    Nothing,
    /// For comparison only.
    Shown,
}

/// Ours against a floor or a rival, both in the same unit.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) ours: f64,
    /// The floor or the rival.
    pub(crate) against: String,
    pub(crate) theirs: f64,
    pub(crate) unit: &'static str,
    pub(crate) goal: Goal,
}

impl Row {
    /// In the direction of the goal.
    pub(crate) fn ratio(&self) -> f64 {
        match self.goal {
            Goal::AtMost(_) | Goal::Nothing => self.ours / self.theirs,
            Goal::AtLeast(_) | Goal::Shown => self.theirs / self.ours,
        }
    }

    fn meets(&self) -> bool {
        match self.goal {
            Goal::AtMost(most) => self.ratio() <= most,
            Goal::AtLeast(least) => self.ratio() >= least,
            Goal::Nothing => self.ours == 0.0,
            Goal::Shown => true,
        }
    }

    /// Whether the goal is missed by more than a factor of two.
    pub(crate) fn fails(&self) -> bool {
        match self.goal {
            Goal::AtMost(most) => self.ratio() > 2.0 * most,
            Goal::AtLeast(least) => self.ratio() < least / 2.0,
            // Twice nothing is nothing.
            Goal::Nothing => !self.meets(),
            Goal::Shown => false,
        }
    }
}

pub(crate) fn print(rows: &[Row]) {
    println!(
        "| what | ours | floor or rival | theirs | ratio | goal | verdict |\n| --- | ---: | --- | ---: | ---: | ---: | --- |"
    );
    for row in rows {
        let goal = match row.goal {
            Goal::AtMost(most) => format!("≤ {most}"),
            Goal::AtLeast(least) => format!("≥ {least}"),
            Goal::Nothing => "0".into(),
            Goal::Shown => "–".into(),
        };
        let ratio = if row.theirs == 0.0 { "–".into() } else { format!("{:.2}", row.ratio()) };
        let verdict = match (row.goal, row.meets(), row.fails()) {
            (Goal::Shown, ..) => "–",
            (_, true, _) => "met",
            (_, false, false) => "within twice the goal",
            (_, false, true) => "FAILED",
        };
        println!(
            "| {} | {} | {} | {} | {ratio} | {goal} | {verdict} |",
            row.what,
            number(row.ours, row.unit),
            row.against,
            number(row.theirs, row.unit),
        );
    }
}

/// Small numbers keep a digit.
fn number(value: f64, unit: &str) -> String {
    let digits = usize::from(value != 0.0 && value < 100.0 && !unit.is_empty());
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}
