//! `watchkeeper`: the command line. Reads arguments, asks the daemon, shows what it says; decides nothing about sessions.

mod app;
mod args;
mod command;
mod complaint;
mod demo;
mod exit;
mod install;
mod instance;
mod launch;
mod mcp;
mod output;

use std::{io::Write, process::ExitCode};

use clap::Parser;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    let json = cli.global.json;
    match command::run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(complaint) => {
            let text = if json { complaint.json() } else { complaint.text(&output::Terminal::stderr()) };
            // There is nobody left to tell.
            _ = std::io::stderr().write_all(text.as_bytes());
            ExitCode::from(complaint.exit)
        }
    }
}
