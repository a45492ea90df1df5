//! One line of a benchmark's table.

/// What a ratio should be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// Ours divided by theirs is at most this.
    AtMost(f64),
    /// Theirs divided by ours is at least this.
    AtLeast(f64),
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
            Goal::AtMost(_) => self.ours / self.theirs,
            Goal::AtLeast(_) => self.theirs / self.ours,
        }
    }

    fn meets(&self) -> bool {
        match self.goal {
            Goal::AtMost(most) => self.ratio() <= most,
            Goal::AtLeast(least) => self.ratio() >= least,
        }
    }

    /// Whether the goal is missed by more than a factor of two.
    pub(crate) fn fails(&self) -> bool {
        match self.goal {
            Goal::AtMost(most) => self.ratio() > 2.0 * most,
            Goal::AtLeast(least) => self.ratio() < least / 2.0,
        }
    }
}

pub(crate) fn print(rows: &[Row]) {
    println!(
        "| what | ours | floor or rival | theirs | ratio | goal | |\n| --- | ---: | --- | ---: | ---: | ---: | --- |"
    );
    for row in rows {
        let goal = match row.goal {
            Goal::AtMost(most) => format!("≤ {most}"),
            Goal::AtLeast(least) => format!("≥ {least}"),
        };
        println!(
            "| {} | {:.0} {unit} | {} | {:.0} {unit} | {:.2} | {goal} | {} |",
            row.what,
            row.ours,
            row.against,
            row.theirs,
            row.ratio(),
            if row.meets() { "met" } else { "missed" },
            unit = row.unit,
        );
    }
}
