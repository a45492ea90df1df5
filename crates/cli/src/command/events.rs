//! `events`: the journal as JSON lines.

use std::{str::FromStr, time::Duration};

use clap::Args;
use watchkeeper_api::{
    Client, ClientError, Time, duration,
    method::{EVENTS_LIMIT_MAX, EventRow, EventsParams, GetEvents, Pushed, SubscribeParams},
};
use watchkeeper_core::Wall;

use crate::{
    app::{App, Outcome},
    complaint::Complaint,
    exit,
    output::Age,
};

const WHAT: &str = "cannot show the events";

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Go on with every new row, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Rows after this sequence number, since this time (2026-11-30T09:00:00Z), or of the last 10m
    #[arg(long, value_name = "SEQ|TIME|LENGTH")]
    since: Option<Since>,
    /// Only rows of this session
    #[arg(long)]
    session: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    Seq(u64),
    Time(Time),
    Last(Duration),
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(seq) = text.parse() {
            return Ok(Self::Seq(seq));
        }
        let time = text.parse().map(Self::Time);
        time.or_else(|_| duration::parse(text).map(Self::Last)).map_err(|_| {
            "write a sequence number, a time like 2026-11-30T09:00:00Z, or a length like 10m".into()
        })
    }
}

pub(super) fn run(app: &App, args: &EventsArgs) -> Outcome {
    let (after_seq, since) = match args.since {
        None => (None, None),
        Some(Since::Seq(seq)) => (Some(seq), None),
        Some(Since::Time(time)) => (None, Some(time)),
        Some(Since::Last(length)) => {
            let ms = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
            (None, Some(Time(Wall(Age::now().0.0.saturating_sub(ms)))))
        }
    };
    let mut params =
        EventsParams { after_seq, since, session: args.session.clone(), limit: Some(EVENTS_LIMIT_MAX) };
    let refused = |error: &ClientError| Complaint::client(WHAT, error);
    let mut client = app.connect(WHAT)?;
    page(app, &mut client, &mut params)?;
    if !args.follow {
        return Ok(exit::SUCCESS);
    }
    let mut printed = params.after_seq.unwrap_or(0);
    let subscribe = SubscribeParams { from: params.after_seq, session: args.session.clone() };
    let mut pushes = app.connect(WHAT)?.subscribe(&subscribe).map_err(|error| refused(&error))?;
    loop {
        match pushes.next(None).map_err(|error| refused(&error))? {
            Some(Pushed::Event(row)) if row.seq > printed => {
                print(app, &row)?;
                printed = row.seq;
            }
            Some(Pushed::Lagged(lagged)) => {
                params.after_seq = Some(lagged.from.max(printed));
                page(app, &mut client, &mut params)?;
                printed = printed.max(params.after_seq.unwrap_or(0));
            }
            // Rows that a page already brought; what says nothing about rows.
            Some(Pushed::Event(_) | Pushed::Changed(_) | Pushed::Other(_)) | None => {}
        }
    }
}

/// Prints everything there is after `params`, which stand behind it afterwards.
fn page(app: &App, client: &mut Client, params: &mut EventsParams) -> Result<(), Complaint> {
    loop {
        let page = client.call::<GetEvents>(params).map_err(|error| Complaint::client(WHAT, &error))?;
        page.rows.iter().try_for_each(|row| print(app, row))?;
        let stuck = params.after_seq == Some(page.next);
        params.after_seq = Some(page.next);
        if !page.more || stuck {
            return Ok(());
        }
    }
}

fn print(app: &App, row: &EventRow) -> Result<(), Complaint> {
    let line = serde_json::to_string(row).map_err(|error| Complaint::new(WHAT).caused_by(&error))?;
    app.print_line(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<Since>) {
        assert_eq!(text.parse::<Since>().ok(), expected);
    }

    #[test]
    fn since_is_a_number_a_time_or_a_length() {
        check("17", Some(Since::Seq(17)));
        check("10m", Some(Since::Last(Duration::from_secs(600))));
        check("1970-01-01T00:00:01Z", Some(Since::Time(Time(Wall(1000)))));
        check("yesterday", None);
    }
}
