//! `status`: everything at one look, once or redrawn on every change.

use std::time::{Duration, Instant};

use clap::Args;
use watchkeeper_api::{
    ClientError, Status, Subscription,
    method::{GetStatus, Nothing, Pushed, SubscribeParams},
};

use crate::{
    app::{App, Outcome},
    complaint::Complaint,
    exit,
    output::{Age, age, clip, status_view},
};

const WHAT: &str = "cannot show the status";
/// A daemon that goes away is expected back within this time (it may be restarted); then the view ends.
const RECONNECT_WITHIN: Duration = Duration::from_secs(15);
const RECONNECT_EVERY: Duration = Duration::from_millis(250);
/// Ages are redrawn this often while one is shown in seconds, else so much less.
const REDRAW_SECONDS: Duration = Duration::from_secs(1);
const REDRAW_MINUTES: Duration = Duration::from_secs(20);
/// Pipes and programs get one picture for every change.
const NEVER: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Keep showing it, redrawn on every change, until Ctrl-C; with --json one document a line
    #[arg(long)]
    watch: bool,
}

pub(super) fn run(app: &App, args: &StatusArgs) -> Outcome {
    if args.watch {
        watch(app, &mut || false)?;
        return Ok(exit::SUCCESS);
    }
    once(app)
}

/// Shows it once.
pub(super) fn once(app: &App) -> Outcome {
    let status = app.ask::<GetStatus>(WHAT, &Nothing {})?;
    app.answer(&status, |app| status_view(&status, Age::now(), &app.terminal).join("\n") + "\n")?;
    Ok(exit::SUCCESS)
}

/// Shows it until `over`, which is asked every second; without it until the daemon stays away, or Ctrl-C.
pub(super) fn watch(app: &App, over: &mut dyn FnMut() -> bool) -> Result<(), Complaint> {
    let mut view = View { app, drawn: 0 };
    let mut subscription = Some(subscribe(app).map_err(|error| Complaint::client(WHAT, &error))?);
    loop {
        let pushes = match subscription.take() {
            Some(pushes) => pushes,
            None => resubscribe(app)?,
        };
        match follow(app, &mut view, pushes, over) {
            Ok(()) => return Ok(()),
            Err(Ended::Complaint(complaint)) => return Err(complaint),
            Err(Ended::Lost) if over() => return Ok(()),
            Err(Ended::Lost) => view.say("The daemon is gone; waiting for it to come back…")?,
        }
    }
}

enum Ended {
    Complaint(Complaint),
    /// The connection ended, as it does when a daemon is restarted.
    Lost,
}

/// Draws after every change, and when the ages are out of date, until `over` or the connection ends.
fn follow(
    app: &App,
    view: &mut View<'_>,
    mut pushes: Subscription,
    over: &mut dyn FnMut() -> bool,
) -> Result<(), Ended> {
    let mut status = ask(app)?;
    let mut redraw = Instant::now() + view.draw(&status).map_err(Ended::Complaint)?;
    while !over() {
        let wait = redraw.saturating_duration_since(Instant::now()).min(REDRAW_SECONDS);
        match pushes.next(Some(wait)) {
            Ok(Some(Pushed::Changed(changed))) if changed.revision != status.revision => status = ask(app)?,
            Ok(None) if Instant::now() >= redraw => {}
            // The revision on the screen, rows, what a later version pushes; a look at `over`.
            Ok(Some(Pushed::Changed(_) | Pushed::Event(_) | Pushed::Lagged(_) | Pushed::Other(_)) | None) => {
                continue;
            }
            Err(ClientError::Closed { .. } | ClientError::Broken { .. }) => return Err(Ended::Lost),
            Err(error) => return Err(Ended::Complaint(Complaint::client(WHAT, &error))),
        }
        redraw = Instant::now() + view.draw(&status).map_err(Ended::Complaint)?;
    }
    Ok(())
}

fn ask(app: &App) -> Result<Status, Ended> {
    let asked = app.dial().and_then(|mut client| client.call::<GetStatus>(&Nothing {}));
    asked.map_err(|error| match error {
        ClientError::Unreachable { .. } | ClientError::Closed { .. } | ClientError::Broken { .. } => {
            Ended::Lost
        }
        ClientError::Untrusted { .. }
        | ClientError::TimedOut { .. }
        | ClientError::Protocol { .. }
        | ClientError::Remote { .. } => Ended::Complaint(Complaint::client(WHAT, &error)),
    })
}

fn subscribe(app: &App) -> Result<Subscription, ClientError> {
    app.dial()?.subscribe(&SubscribeParams::default())
}

fn resubscribe(app: &App) -> Result<Subscription, Complaint> {
    let deadline = Instant::now() + RECONNECT_WITHIN;
    loop {
        match subscribe(app) {
            Ok(pushes) => return Ok(pushes),
            Err(error) if Instant::now() >= deadline => return Err(Complaint::client(WHAT, &error)),
            // Nobody tells when a daemon comes up that somebody else starts.
            Err(_) => std::thread::park_timeout(RECONNECT_EVERY),
        }
    }
}

/// What stands on the terminal.
struct View<'a> {
    app: &'a App,
    /// Lines that the next drawing replaces.
    drawn: usize,
}

impl View<'_> {
    /// Draws, and says after how long the ages are out of date.
    fn draw(&mut self, status: &Status) -> Result<Duration, Complaint> {
        let now = Age::now();
        let young = status.sessions.iter().any(|session| age(now, session.since).in_seconds());
        let reasons = status.machine.reasons.iter().any(|reason| age(now, reason.since).in_seconds());
        let redraw = if young || reasons { REDRAW_SECONDS } else { REDRAW_MINUTES };
        if self.app.json {
            let line =
                serde_json::to_string(status).map_err(|error| Complaint::new(WHAT).caused_by(&error))?;
            self.app.print_line(&line)?;
            return Ok(NEVER);
        }
        let lines = status_view(status, now, &self.app.terminal);
        if !self.app.terminal.interactive {
            self.app.print(&(lines.join("\n") + "\n\n"))?;
            return Ok(NEVER);
        }
        self.replace(&lines)?;
        Ok(redraw)
    }

    fn say(&mut self, line: &str) -> Result<(), Complaint> {
        if self.app.json {
            return Ok(());
        }
        self.replace(&[line.to_owned()])
    }

    /// Writes over the lines of the last drawing. More than the screen holds cannot be taken back, so it is cut.
    fn replace(&mut self, lines: &[String]) -> Result<(), Complaint> {
        if !self.app.terminal.interactive {
            return self.app.print(&(lines.join("\n") + "\n"));
        }
        let shown = &lines[..lines.len().min(self.app.terminal.rows.saturating_sub(1).max(1))];
        let up = if self.drawn > 0 { format!("\u{1b}[{}A", self.drawn) } else { String::new() };
        self.drawn = shown.len();
        let columns = self.app.terminal.columns.unwrap_or(usize::MAX);
        let fitting: Vec<String> = shown.iter().map(|line| clip(line, columns)).collect();
        self.app.print(&format!("{up}\r\u{1b}[J{}\n", fitting.join("\n")))
    }
}
