//! `daemon run|status|stop|restart`.

use std::{
    env,
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::{Args, Subcommand};
use serde_json::Value;
use watchkeeper_api::{
    ClientError,
    method::{DaemonStatus, DaemonStop, GetDaemonStatus, Left, Nothing, SubscribeParams},
};
use watchkeeper_daemon::Origin;

use crate::{
    app::{App, Outcome},
    args::Global,
    complaint::Complaint,
    exit,
    instance::Instance,
    launch::{self, Replaced},
    output::{Age, age, plain, style},
};

/// How long a stop may take: it is bounded in the daemon, too.
const STOP_WITHIN: Duration = Duration::from_secs(20);
const CANNOT_STOP: &str = "cannot stop the daemon";

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonArgs {
    /// Be the daemon, in the foreground, until told to stop
    Run(RunArgs),
    /// Describe the daemon: place, journal, watches, counters
    Status,
    /// Stop it in order; says what it leaves
    Stop,
    /// Stop it and start it again
    Restart,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Leave the terminal and its session
    #[arg(long, hide = true)]
    detached: bool,
    /// Locks that a predecessor left open
    #[arg(long, hide = true)]
    handed: Option<String>,
    /// Who else waits until it is ready
    #[arg(long, hide = true)]
    notify: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: &DaemonArgs) -> Outcome {
    match args {
        DaemonArgs::Run(args) => serve(global, args),
        DaemonArgs::Status => status(&App::new(global)?),
        DaemonArgs::Stop => {
            let app = App::new(global)?;
            let left = stop(&app)?;
            app.answer(
                &left.as_ref().map_or_else(|| Left { left: Vec::new() }, Clone::clone),
                |_| match &left {
                    None => "no daemon runs\n".into(),
                    Some(Left { left }) => {
                        let lines: String =
                            left.iter().map(|line| format!("  left: {}\n", plain(line))).collect();
                        format!("stopped\n{lines}")
                    }
                },
            )?;
            Ok(exit::SUCCESS)
        }
        DaemonArgs::Restart => restart(&App::new(global)?),
    }
}

fn serve(global: &Global, args: &RunArgs) -> Outcome {
    let instance = Instance::of(global)?;
    let failed =
        |error: &(dyn std::error::Error + 'static)| Complaint::new("the daemon cannot run").caused_by(error);
    if args.detached {
        launch::detach().map_err(|error| failed(&error))?;
    }
    let origin = Origin {
        owns_process: true,
        successor_program: env::current_exe().ok(),
        successor_arguments: launch::arguments(&instance, args.detached),
        handed: args.handed.clone(),
        notify: args.notify.clone(),
        failed_restarts: 0,
    };
    match watchkeeper_daemon::run(instance.place.clone(), instance.is_private(), origin) {
        Ok(()) => Ok(exit::SUCCESS),
        // Whoever started this one wanted a daemon, and there is one.
        Err(error) if error.is_already_running() => Ok(exit::SUCCESS),
        Err(error) => Err(failed(&error)),
    }
}

fn status(app: &App) -> Outcome {
    let status = app.ask::<GetDaemonStatus>("cannot describe the daemon", &Nothing {})?;
    app.answer(&document(&status), |app| {
        let mut lines = description(&status);
        if let Some(error) = &status.config_error {
            lines.push(format!("{} {}", app.terminal.paint(style::BAD, "config  "), plain(error)));
        }
        lines.join("\n") + "\n"
    })?;
    Ok(exit::SUCCESS)
}

/// As JSON; `version` is the document's own everywhere, so the daemon's goes by another name.
fn document(status: &DaemonStatus) -> Value {
    let mut document = serde_json::to_value(status).unwrap_or_default();
    if let Value::Object(fields) = &mut document
        && let Some(version) = fields.remove("version")
    {
        fields.insert("daemon_version".into(), version);
    }
    document
}

fn description(status: &DaemonStatus) -> Vec<String> {
    let mut lines = vec![
        format!(
            "daemon   version {}, pid {}, up for {}",
            status.version,
            status.pid,
            age(Age::now(), status.started_at)
        ),
        format!(
            "place    {}",
            if status.place.private { "a private instance" } else { "the user's own instance" }
        ),
        format!("config   {}", plain(&status.place.config)),
        format!("state    {}", plain(&status.place.state)),
        format!("run      {}", plain(&status.place.run)),
        format!("journal  {} rows, {} KiB", status.journal.seq, status.journal.size_bytes / 1024),
        format!("watches  {} of {} live sessions", status.watch.watched, status.watch.live),
    ];
    let tables = [
        ("counter", &status.counters),
        ("unknown", &status.unknown_events),
        ("malformed", &status.malformed),
    ];
    for (name, table) in tables {
        lines.extend(table.iter().map(|(key, count)| format!("{name:<9}{} {count}", plain(key))));
    }
    lines
}

/// Stops it and waits until it is gone; `None`: there was none.
fn stop(app: &App) -> Result<Option<Left>, Complaint> {
    let refused = |error: &ClientError| Complaint::client(CANNOT_STOP, error);
    let mut client = match app.dial() {
        Ok(client) => client,
        Err(error) if error.is_unreachable() => return Ok(None),
        Err(error) => return Err(refused(&error)),
    };
    // The end of this connection is the daemon's last word.
    let watch = app.dial().and_then(|client| client.subscribe(&SubscribeParams::default()));
    let mut watch = watch.map_err(|error| refused(&error))?;
    let left = client.call::<DaemonStop>(&Nothing {}).map_err(|error| refused(&error))?;
    let deadline = Instant::now() + STOP_WITHIN;
    loop {
        let time = deadline.saturating_duration_since(Instant::now());
        match watch.next(Some(time)) {
            Ok(Some(_)) => {}
            Ok(None) => {
                return Err(Complaint::new(CANNOT_STOP)
                    .because(format!("it is still there after {} s", STOP_WITHIN.as_secs()))
                    .todo("Look at its log in the state folder (`watchkeeper daemon status` names it)."));
            }
            Err(_) => return Ok(Some(left)),
        }
    }
}

/// Replaces it in place, so that the machine is kept awake all the while; stops and starts it where that cannot be.
fn restart(app: &App) -> Outcome {
    let replaced = match app.dial() {
        Ok(client) => {
            let replaced = launch::replace(client, &app.instance);
            replaced.map_err(|error| Complaint::new("cannot restart the daemon").caused_by(&error))?
        }
        Err(error) if error.is_unreachable() => Replaced::Impossible,
        Err(error) => return Err(Complaint::client("cannot restart the daemon", &error)),
    };
    match replaced {
        Replaced::Ready => {}
        Replaced::Impossible => {
            stop(app)?;
            launch::launch(&app.instance).map_err(|error| error.complaint(&app.instance))?;
        }
        // Started anew it says why, if it cannot come up.
        Replaced::Ended => {
            launch::launch(&app.instance).map_err(|error| error.complaint(&app.instance))?;
        }
        Replaced::NotReady => {
            return Err(Complaint::new("the daemon does not come up again")
                .because(format!("it does not listen after {} s", launch::READY_WITHIN.as_secs()))
                .todo(format!("Look at its log in {}.", app.instance.place.state.display())));
        }
    }
    let status = app.ask::<GetDaemonStatus>("cannot describe the daemon", &Nothing {})?;
    let failed = status.counters.contains_key("restart.failed");
    app.answer(&document(&status), |_| {
        let note = if failed {
            "; its successor could not be started, so it went on as the program that it was: see its log"
        } else {
            ""
        };
        format!("the daemon runs (pid {}{note})\n", status.pid)
    })?;
    Ok(exit::SUCCESS)
}
