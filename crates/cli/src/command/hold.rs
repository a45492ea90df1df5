//! `hold` and `release`: manual leases.

use std::time::Duration;

use clap::Args;
use watchkeeper_api::{
    duration,
    method::{Hold, HoldList, HoldRelease, HoldReleaseParams, HoldTake, HoldTakeParams, Nothing},
};

use crate::{
    app::{App, Outcome},
    exit,
    output::{Age, age, plain, rows, style},
};

#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// How long, e.g. 30m or 2h; at most the setting lease_max, which also counts when left out
    #[arg(long = "for", value_name = "LENGTH", value_parser = duration::parse)]
    length: Option<Duration>,
    /// What for; shown by `status`
    #[arg(long, default_value = "asked for on the command line")]
    reason: String,
    /// Who; the user's name when left out
    #[arg(long)]
    owner: Option<String>,
    /// Renew the hold of this id
    #[arg(long)]
    id: Option<String>,
    /// List the holds instead of taking one
    #[arg(long, conflicts_with_all = ["length", "owner", "id"])]
    list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The id, or an unambiguous beginning; may be left out when there is only one hold
    id: Option<String>,
    /// Let go of every hold
    #[arg(long, conflicts_with = "id")]
    all: bool,
}

pub(super) fn hold(app: &App, args: HoldArgs) -> Outcome {
    if args.list {
        return list(app);
    }
    let user = || std::env::var("USER").or_else(|_| std::env::var("USERNAME"));
    let params = HoldTakeParams {
        id: args.id,
        owner: args.owner.or_else(|| user().ok()).unwrap_or_else(|| "unnamed".into()),
        reason: args.reason,
        length_s: args.length.map(|length| length.as_secs()),
    };
    let hold = app.ask::<HoldTake>("cannot take a hold", &params)?;
    app.answer(&hold, |_| {
        let length = duration::format(Duration::from_secs(hold.length_s));
        format!(
            "held for {length}, until {}; `watchkeeper release {}` lets go\n",
            hold.expires_at,
            plain(&hold.id)
        )
    })?;
    Ok(exit::SUCCESS)
}

pub(super) fn release(app: &App, args: ReleaseArgs) -> Outcome {
    let what = "cannot release a hold";
    let released = app.ask::<HoldRelease>(what, &HoldReleaseParams { id: args.id, all: args.all })?;
    app.answer(&released, |_| match released.ids.as_slice() {
        [] => "there is no hold\n".into(),
        ids => format!("released {}\n", plain(&ids.join(", "))),
    })?;
    Ok(exit::SUCCESS)
}

fn list(app: &App) -> Outcome {
    let holds = app.ask::<HoldList>("cannot list the holds", &Nothing {})?;
    app.answer(&holds, |app| {
        if holds.holds.is_empty() {
            return "there is no hold\n".into();
        }
        let now = Age::now();
        let header = ["HOLD", "FOR", "LEFT", "OWNER", "REASON"].map(String::from).to_vec();
        let cells: Vec<Vec<String>> = std::iter::once(header)
            .chain(holds.holds.iter().map(|hold: &Hold| {
                let (for_, left) = (age(now, hold.since), age(hold.expires_at, now));
                vec![
                    plain(&hold.id),
                    for_.to_string(),
                    left.to_string(),
                    plain(&hold.owner),
                    plain(&hold.reason),
                ]
            }))
            .collect();
        let lines = rows(&cells, |row, _, cell| match row {
            0 => app.terminal.paint(style::DIM, cell),
            _ => cell.into(),
        });
        lines.join("\n") + "\n"
    })?;
    Ok(exit::SUCCESS)
}
