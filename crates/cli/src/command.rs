//! One module a command.

mod api;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod daemon;
mod doctor;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod hold;
mod hooks;
pub(crate) mod install;
pub(crate) mod mcp;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod up;
pub(crate) mod wait;
mod why;

use crate::{
    app::{App, Outcome},
    args::{ApiCommand, Cli, Command, HooksCommand},
    demo, exit,
};

pub(crate) fn run(cli: Cli) -> Outcome {
    let Cli { global, command } = cli;
    // What needs no instance must work where there is none.
    let app = || App::new(&global);
    match command {
        Command::Up(args) => up::run(&app()?, &args),
        Command::Status(args) => status::run(&app()?, &args),
        Command::Why => why::run(&app()?),
        Command::Explain(args) => explain::run(&app()?, &args),
        Command::Events(args) => events::run(&app()?, &args),
        Command::Wait(args) => wait::run(&app()?, &args),
        Command::Start(args) => session::start(&app()?, args),
        Command::Stop(args) => session::stop(&app()?, args),
        Command::Activity(args) => session::activity(&app()?, args),
        Command::Softlock(args) => session::softlock(&app()?, args),
        Command::ClearSoftlock(args) => session::clear_softlock(&app()?, args),
        Command::Remove(args) => session::remove(&app()?, args),
        Command::Hold(args) => hold::hold(&app()?, args),
        Command::Release(args) => hold::release(&app()?, args),
        Command::Install(args) => install::install(&app()?, &args),
        Command::Uninstall(args) => install::uninstall(&app()?, &args),
        Command::Hooks(HooksCommand::Status) => hooks::status(&app()?),
        Command::Doctor => doctor::run(&app()?),
        Command::Config(args) => config::run(&app()?, &args),
        Command::Daemon(args) => daemon::run(&global, &args),
        Command::Mcp(args) => mcp::run(&app()?, args),
        Command::Completions(args) => completions::run(&args),
        Command::Api(ApiCommand::Schema) => api::schema(),
        Command::DemoAgent { hook } => demo::play(&app()?.instance, &hook).map(|()| exit::SUCCESS),
    }
}
