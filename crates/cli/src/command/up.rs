//! `up`: one command from nothing to a live view.

use clap::Args;

use crate::{
    app::{App, Outcome},
    demo::Demo,
    exit, launch,
};

use super::{install, status};

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Wire up the agents that are found without asking
    #[arg(long, short)]
    yes: bool,
    /// Leave the agents' files alone
    #[arg(long, conflicts_with = "yes")]
    no_hooks: bool,
    /// Play a recorded session through a daemon of its own; touches neither agents nor power
    #[arg(long)]
    demo: bool,
}

pub(super) fn run(app: &App, args: &UpArgs) -> Outcome {
    if args.demo {
        return demo(app);
    }
    let started = !app.instance.answers();
    if started {
        launch::launch(&app.instance).map_err(|error| error.complaint(&app.instance))?;
    }
    if !app.json {
        app.print_line(if started { "The daemon is started.\n" } else { "The daemon runs already.\n" })?;
        if !args.no_hooks
            && let Err(complaint) = install::offer(app, args.yes)
        {
            // Sessions can be reported by hand, so the view is of use without hooks.
            app.print_line(&complaint.text(&app.terminal))?;
        }
    }
    if !app.terminal.interactive || app.json {
        return status::once(app);
    }
    app.print_line("Ctrl-C ends this view; the daemon goes on.\n")?;
    status::watch(app, &mut || false)?;
    Ok(exit::SUCCESS)
}

fn demo(app: &App) -> Outcome {
    let mut demo = Demo::start(&app.instance)?;
    if !app.json {
        app.print_line(
            "A recorded session of Claude Code: a prompt, a command left in the background, its end, /exit.\n\
             A demo does not touch power: with a real session the machine would be kept awake exactly while it is\n\
             working or has background work.\n",
        )?;
    }
    let shown = App { instance: demo.instance.clone(), json: app.json, terminal: app.terminal };
    status::watch(&shown, &mut || demo.is_over())?;
    if !app.json {
        app.print_line("\nThat was all. `watchkeeper up` does it with your own agents.")?;
    }
    Ok(exit::SUCCESS)
}
