//! The command line's grammar. Each command's own arguments stand in its file.

use std::path::PathBuf;

use clap::{
    Args, Parser, Subcommand,
    builder::{Styles, styling::AnsiColor},
};

use crate::command::{
    completions::CompletionsArgs,
    config::ConfigArgs,
    daemon::DaemonArgs,
    events::EventsArgs,
    explain::ExplainArgs,
    hold::{HoldArgs, ReleaseArgs},
    install::{InstallArgs, UninstallArgs},
    mcp::McpArgs,
    session::{ActivityArgs, SelectArgs, SoftlockArgs, StartArgs, StopArgs},
    status::StatusArgs,
    up::UpArgs,
    wait::WaitArgs,
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Knows which coding agents work, wait or idle, and keeps the machine awake exactly while they work.
#[derive(Debug, Parser)]
#[command(
    name = "watchkeeper",
    version,
    styles = STYLES,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "Begin with `watchkeeper up`. SESSION is an id, an unambiguous beginning of one, or AGENT:ID.\n\
                  Exit codes: 0 done, 1 failed, 2 usage, 3 no daemon answers, 4 not known (why), 5 timed out (wait)."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// A private instance: configuration, state and runtime files below DIR [env: WATCHKEEPER_HOME]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Print JSON, with a version field and documented in docs/cli.md
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Runtime folder of the user's own instance
    #[arg(long, global = true, hide = true, value_name = "DIR", conflicts_with = "home")]
    pub(crate) run: Option<PathBuf>,
    /// State folder of the user's own instance
    #[arg(long, global = true, hide = true, value_name = "DIR", conflicts_with = "home")]
    pub(crate) state: Option<PathBuf>,
    /// Configuration folder of the user's own instance
    #[arg(long, global = true, hide = true, value_name = "DIR", conflicts_with = "home")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the daemon, wire up the agents, and show what they do until Ctrl-C
    Up(UpArgs),
    /// Show the sessions, and whether the machine is kept awake
    Status(StatusArgs),
    /// Say in one line why the machine is kept awake, or why not
    Why,
    /// Show the evidence behind a session's state
    Explain(ExplainArgs),
    /// Print the journal as JSON lines
    Events(EventsArgs),
    /// Wait until a session is in a state
    Wait(WaitArgs),
    /// Begin a turn of a session, of any agent
    Start(StartArgs),
    /// End the turn of a session
    Stop(StopArgs),
    /// Say that a session works
    Activity(ActivityArgs),
    /// Say that a session waits for a person
    Softlock(SoftlockArgs),
    /// Say that a session does not wait any more
    ClearSoftlock(SelectArgs),
    /// Forget a session
    Remove(SelectArgs),
    /// Keep the machine awake for a while, or list who does
    Hold(HoldArgs),
    /// Let go of a hold
    Release(ReleaseArgs),
    /// Wire up the agents: shows the changes and asks first
    Install(InstallArgs),
    /// Take the wiring out of the agents again
    Uninstall(UninstallArgs),
    /// Show whether the agents are wired up
    #[command(subcommand)]
    Hooks(HooksCommand),
    /// Check everything that must work, one line each
    Doctor,
    /// Read and change settings
    #[command(subcommand)]
    Config(ConfigArgs),
    /// Run, stop, restart or describe the daemon
    #[command(subcommand)]
    Daemon(DaemonArgs),
    /// Serve MCP on standard input and output, for an agent
    Mcp(McpArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Describe the local interface
    #[command(subcommand)]
    Api(ApiCommand),
    /// The recorded agent of `up --demo`
    #[command(hide = true)]
    DemoAgent { hook: PathBuf },
}

#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// What stands in each agent's files
    Status,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApiCommand {
    /// Print the schema of every method as JSON
    Schema,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_sound() {
        Cli::command().debug_assert();
    }
}
