//! `wait SESSION --until STATE`: for scripts and orchestrators.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;
use watchkeeper_api::{
    Client, ClientError, Failure, Status, Subscription, duration,
    method::{GetStatus, Nothing, Pushed, SubscribeParams},
    select::select,
};
use watchkeeper_core::{SessionKey, view::ShownState};

use crate::{
    app::{App, Outcome},
    complaint::Complaint,
    exit,
    output::{plain, style},
};

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// An id, an unambiguous beginning of one, or AGENT:ID
    session: String,
    /// Any of these; several separated by commas
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    until: Vec<Until>,
    /// Give up after this long, e.g. 10m, with exit code 5
    #[arg(long, value_name = "LENGTH", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Until {
    Working,
    Background,
    Waiting,
    Idle,
    Ended,
}

impl Until {
    const fn state(self) -> ShownState {
        match self {
            Self::Working => ShownState::Working,
            Self::Background => ShownState::Background,
            Self::Waiting => ShownState::Waiting,
            Self::Idle => ShownState::Idle,
            Self::Ended => ShownState::Ended,
        }
    }
}

#[derive(Debug, Serialize)]
struct Waited {
    session: String,
    state: ShownState,
    reached: bool,
}

pub(super) fn run(app: &App, args: &WaitArgs) -> Outcome {
    let what = format!("cannot wait for '{}'", args.session);
    let refused = |error: &ClientError| Complaint::client(&what, error);
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    // First the name, then the subscription, then the state: no change falls between.
    let mut client = app.connect(&what)?;
    let status = client.call::<GetStatus>(&Nothing {}).map_err(|error| refused(&error))?;
    let keys: Vec<SessionKey> = status.sessions.iter().map(|session| session.session_key()).collect();
    let key = select(&args.session, &keys)
        .map_err(|error| refused(&ClientError::Remote { method: "status", failure: Failure::from(error) }))?;
    let key = key.to_string();
    let subscription = subscribe(app, &key).map_err(|error| refused(&error))?;
    let mut waiting =
        Waiting { client, subscription, key, wanted: args.until.iter().map(|u| u.state()).collect() };
    let (state, reached) = waiting.until(deadline).map_err(|error| refused(&error))?;
    let waited = Waited { session: waiting.key, state, reached };
    app.answer(&waited, |app| {
        let state = app.terminal.paint(style::state(state), state.name());
        let late = if reached { "" } else { " (timed out)" };
        format!("{} is {state}{late}\n", plain(&waited.session))
    })?;
    Ok(if reached { exit::SUCCESS } else { exit::TIMED_OUT })
}

/// Rows from the newest on: a state that lasts shorter than a question and its answer is seen too.
fn subscribe(app: &App, key: &str) -> Result<Subscription, ClientError> {
    let probe = SubscribeParams { from: None, session: Some(key.into()) };
    let newest = app.dial()?.subscribe(&probe)?.start.seq;
    app.dial()?.subscribe(&SubscribeParams { from: Some(newest), session: Some(key.into()) })
}

struct Waiting {
    client: Client,
    subscription: Subscription,
    key: String,
    wanted: Vec<ShownState>,
}

impl Waiting {
    /// The state that ended the wait, and whether it is a wanted one.
    fn until(&mut self, deadline: Option<Instant>) -> Result<(ShownState, bool), ClientError> {
        let mut state = self.look()?;
        while !self.wanted.contains(&state) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match self.subscription.next(left)? {
                None => return Ok((state, false)),
                Some(Pushed::Event(row)) => {
                    let own = row.transitions.iter().filter(|transition| transition.session == self.key);
                    let passed = own.map(|transition| transition.to);
                    for to in passed {
                        state = to;
                        if self.wanted.contains(&to) {
                            return Ok((to, true));
                        }
                    }
                }
                Some(Pushed::Changed(_) | Pushed::Lagged(_)) => state = self.look()?,
                Some(Pushed::Other(_)) => {}
            }
        }
        Ok((state, true))
    }

    /// The state now. A session that is not remembered any more has ended.
    fn look(&mut self) -> Result<ShownState, ClientError> {
        let status: Status = self.client.call::<GetStatus>(&Nothing {})?;
        let found = status.sessions.iter().find(|session| session.key == self.key);
        Ok(found.map_or(ShownState::Ended, |session| session.state))
    }
}
