//! `completions SHELL`.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{app::Outcome, args::Cli, complaint::Complaint, exit};

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> Outcome {
    // Written to memory first: the generator panics when its output goes away.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "watchkeeper", &mut script);
    io::stdout().write_all(&script).map_err(|error| Complaint::output(&error))?;
    Ok(exit::SUCCESS)
}
