//! `why`: the verdict in one line.

use watchkeeper_api::method::{GetWhy, Nothing, Why};

use crate::{
    app::{App, Outcome},
    complaint::Complaint,
    exit,
};

const WHAT: &str = "cannot say why";

pub(super) fn run(app: &App) -> Outcome {
    let why = match app.dial() {
        Ok(mut client) => {
            client.call::<GetWhy>(&Nothing {}).map_err(|error| Complaint::client(WHAT, &error))?
        }
        // Nobody is there who could keep it awake: that is an answer.
        Err(error) if error.is_unreachable() => {
            Why { awake: Some(false), why: format!("not kept awake: {error}"), code: "no_daemon".into() }
        }
        Err(error) => return Err(Complaint::client(WHAT, &error)),
    };
    app.answer(&why, |_| format!("{}\n", why.why))?;
    Ok(match why.awake {
        Some(true) => exit::SUCCESS,
        Some(false) => exit::FAILED,
        None => exit::UNKNOWN,
    })
}
