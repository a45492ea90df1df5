//! `install` and `uninstall`: shows what would change, asks once, does it, says what it did.

use std::{
    env,
    fmt::Write as _,
    io::{self, IsTerminal},
};

use clap::Args;
use serde_json::json;
use watchkeeper_agents::install::{HOOK_PROGRAM, McpCommand, Timeouts};
use watchkeeper_core::AgentKind;
use watchkeeper_frame::place::user_home;

use crate::{
    app::{App, Outcome},
    complaint::Complaint,
    exit,
    install::{
        Action, CapabilityPlan, Change, Context, FoundAgent, InstallError, Plan, Report, apply, find_agents,
        plan, plan_uninstall,
    },
    instance::InstanceKind,
    output::{Terminal, style},
};

/// Longest answer read from a person.
const ANSWER_BYTES_MAX: u64 = 64;

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Only these; every agent that is found when left out
    agents: Vec<AgentKind>,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    /// Register the MCP server, too, for agents that have a place for it (claude, codex)
    #[arg(long)]
    mcp: bool,
    /// Let the MCP server change sessions and some settings
    #[arg(long, requires = "mcp")]
    allow_write: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// Only these; all when left out
    agents: Vec<AgentKind>,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
}

/// How far a plan is to be carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Consent {
    Given,
    Ask,
    /// Nothing is to be changed.
    Withheld,
}

pub(super) fn install(app: &App, args: &InstallArgs) -> Outcome {
    let mut context = context(app, &args.agents)?;
    let capability = if args.mcp {
        let capability = CapabilityPlan::install(&context.state, args.allow_write)
            .map_err(|error| Complaint::new("nothing was changed").caused_by(&error))?;
        context.mcp = Some(server(&context, &capability, args.allow_write)?);
        capability
    } else {
        CapabilityPlan::not_asked(&context.state)
    };
    let plan = planned(&context)?;
    carry_out(app, &context, plan, &capability, consent(args.yes, args.dry_run))
}

/// The command line of the MCP server of this instance.
fn server(
    context: &Context,
    capability: &CapabilityPlan,
    allow_write: bool,
) -> Result<McpCommand, Complaint> {
    let what = "cannot register the MCP server";
    let program = env::current_exe().map_err(|error| Complaint::new(what).caused_by(&error))?;
    let text = |path: &std::path::Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| {
            Complaint::new(what).because(format!(
                "the path {} is not UTF-8, so it cannot stand in an agent's configuration",
                path.display()
            ))
        })
    };
    let mut arguments = context.instance.words();
    arguments.extend(["mcp".to_owned(), "--capability".to_owned(), text(capability.path())?]);
    if allow_write {
        arguments.push("--allow-write".to_owned());
    }
    Ok(McpCommand { program: text(&program)?, arguments })
}

pub(super) fn uninstall(app: &App, args: &UninstallArgs) -> Outcome {
    let context = context(app, &args.agents)?;
    let plan = plan_uninstall(&context);
    // Agents that stay wired up may still show it.
    let capability = if args.agents.is_empty() {
        CapabilityPlan::uninstall(&context.state)
    } else {
        CapabilityPlan::not_asked(&context.state)
    };
    carry_out(app, &context, plan, &capability, consent(args.yes, args.dry_run))
}

/// For `up`: offers the hooks that are missing; what cannot be done is said and is no failure of `up`.
pub(super) fn offer(app: &App, yes: bool) -> Result<(), Complaint> {
    let context = context(app, &[])?;
    if !find_agents(&context).iter().any(FoundAgent::is_present) {
        return app.print_line(
            "No coding agent found that Watchkeeper knows; `watchkeeper install` looks again.\n",
        );
    }
    let plan = planned(&context)?;
    if !plan.changes_anything() && plan.refusals().next().is_none() {
        return Ok(());
    }
    if !yes && !can_ask() {
        let found: Vec<&str> = plan.agents.iter().map(|agent| agent.agent.name()).collect();
        let line = format!(
            "Not wired up yet: {}. Run `watchkeeper install` to see the changes and agree to them.\n",
            found.join(", ")
        );
        return app.print_line(&line);
    }
    let capability = CapabilityPlan::not_asked(&context.state);
    carry_out(app, &context, plan, &capability, if yes { Consent::Given } else { Consent::Ask })?;
    app.print_line("")
}

const fn consent(yes: bool, dry_run: bool) -> Consent {
    match (yes, dry_run) {
        (_, true) => Consent::Withheld,
        (true, false) => Consent::Given,
        (false, false) => Consent::Ask,
    }
}

/// What the installers are told about this machine and instance.
pub(super) fn context(app: &App, only: &[AgentKind]) -> Result<Context, Complaint> {
    let what = "cannot look at the agents' hooks";
    let text = |path: &std::path::Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| {
            Complaint::new(what).because(format!(
                "the path {} is not UTF-8, so it cannot stand in an agent's configuration",
                path.display()
            ))
        })
    };
    let place = &app.instance.place;
    let instance = match &app.instance.kind {
        InstanceKind::Default => watchkeeper_agents::install::Instance::Default,
        InstanceKind::Private(home) => watchkeeper_agents::install::Instance::Home(text(home)?),
        InstanceKind::Moved => watchkeeper_agents::install::Instance::Dirs {
            run: text(&place.run)?,
            state: text(&place.state)?,
            config: Some(text(&place.config)?),
        },
    };
    // The agents find their files by the environment's home, whatever the user database says.
    let home =
        env::var_os(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).filter(|home| !home.is_empty());
    let home = match home {
        Some(home) => home.into(),
        None => user_home().map_err(|error| Complaint::new(what).caused_by(&error))?,
    };
    let program = env::current_exe().map_err(|error| Complaint::new(what).caused_by(&error))?;
    let hook = program.with_file_name(format!("{HOOK_PROGRAM}{}", env::consts::EXE_SUFFIX));
    Ok(Context {
        home,
        path: env::var_os("PATH"),
        variables: Context::agent_variables(),
        state: place.state.clone(),
        hook_program: hook,
        instance,
        timeouts: Timeouts::default(),
        mcp: None,
        only: (!only.is_empty()).then(|| only.to_vec()),
    })
}

fn planned(context: &Context) -> Result<Plan, Complaint> {
    plan(context).map_err(|error| {
        Complaint::new("cannot wire up the agents")
            .caused_by(&error)
            .todo("Build both programs (`cargo build --release -p watchkeeper -p watchkeeper-hook`), or install both.")
    })
}

fn carry_out(
    app: &App,
    context: &Context,
    plan: Plan,
    capability: &CapabilityPlan,
    consent: Consent,
) -> Outcome {
    if !app.json {
        app.print(&shown(&plan, &app.terminal))?;
        if let Some(line) = capability.shown() {
            app.print_line(&line)?;
        }
    }
    let changes = plan.changes_anything() || capability.changes();
    let agreed = match consent {
        Consent::Given => changes,
        Consent::Withheld => false,
        Consent::Ask if !changes => false,
        Consent::Ask if can_ask() && !app.json => ask(app, &plan)?,
        Consent::Ask => {
            return Err(Complaint::new("nothing was changed")
                .because("there is no terminal to ask on")
                .todo("Run it again with `--yes`, or with `--dry-run` to see the changes only.")
                .exit(exit::USAGE));
        }
    };
    let refused = plan.refusals().next().is_some();
    if !agreed && (consent == Consent::Withheld || !changes || refused) {
        if app.json {
            app.print_json(&planned_json(&plan, capability))?;
        }
        return Ok(if refused { exit::FAILED } else { exit::SUCCESS });
    }
    if !agreed {
        app.print_line("Nothing was changed.")?;
        return Ok(exit::SUCCESS);
    }
    let action = plan.action;
    let unusable = |error: InstallError| {
        Complaint::new("the capability of the MCP server could not be put right")
            .caused_by(&error)
            .todo(error.advice())
    };
    // Before the agents are told of it, and gone only after they are told no more.
    if action == Action::Install {
        capability.carry_out().map_err(unusable)?;
    }
    let report = apply(context, plan).map_err(|error| {
        Complaint::new(match action == Action::Install && capability.changes() {
            true => "no agent's file was changed, only the capability of the MCP server",
            false => "nothing was changed",
        })
        .caused_by(&error)
    })?;
    let carried_out = action == Action::Install || report.failed.is_empty();
    if action == Action::Uninstall && carried_out {
        capability.carry_out().map_err(unusable)?;
    }
    if app.json {
        app.print_json(&report_json(&report, capability, carried_out))?;
    } else {
        app.print(&report_text(&report, action, &app.terminal))?;
    }
    Ok(if report.failed.is_empty() { exit::SUCCESS } else { exit::FAILED })
}

/// The changes as a diff, what is left alone, what the person must know.
fn shown(plan: &Plan, terminal: &Terminal) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut line = |line: &str| _ = writeln!(text, "{line}");
    for agent in &plan.agents {
        let name = terminal.paint(style::STRONG, agent.agent.name());
        let unchanged = agent.files.iter().all(|file| matches!(file.outcome, Ok(Change::None)));
        if unchanged {
            line(&match plan.action {
                Action::Install => format!("{name}: wired up already"),
                Action::Uninstall => format!("{name}: nothing of Watchkeeper's there"),
            });
            agent.notes.iter().for_each(|note| line(&format!("  note: {note}")));
            continue;
        }
        line(&format!("{name}:"));
        for file in &agent.files {
            match &file.outcome {
                Ok(Change::None) => {}
                Ok(Change::Write(_) | Change::Delete) => {
                    file.diff().lines().for_each(|diff| line(&format!("  {}", painted(diff, terminal))));
                }
                Err(error) => {
                    line(&format!("  {} {error}", terminal.paint(style::BAD, "left alone:")));
                    line(&format!("  do: {}", error.advice()));
                }
            }
        }
        agent.notes.iter().for_each(|note| line(&format!("  note: {note}")));
    }
    if plan.agents.is_empty() {
        line("No coding agent found that Watchkeeper knows.");
    }
    text
}

fn painted(diff: &str, terminal: &Terminal) -> String {
    match diff.as_bytes().first() {
        Some(b'+') => terminal.paint(style::ADDED, diff),
        Some(b'-') => terminal.paint(style::REMOVED, diff),
        Some(b'@') => terminal.paint(style::DIM, diff),
        _ => diff.into(),
    }
}

fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

fn ask(app: &App, plan: &Plan) -> Result<bool, Complaint> {
    let question = match plan.action {
        Action::Install => "Make these changes? Each file is backed up first. [y/N] ",
        Action::Uninstall => "Take these out? Each file is backed up first. [y/N] ",
    };
    app.print(question)?;
    let mut answer = String::new();
    let read = io::BufRead::read_line(&mut io::Read::take(io::stdin().lock(), ANSWER_BYTES_MAX), &mut answer);
    read.map_err(|error| Complaint::new("cannot read the answer").caused_by(&error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn report_text(report: &Report, action: Action, terminal: &Terminal) -> String {
    let mut text = String::new();
    for done in &report.done {
        let what = if done.removed { "removed" } else { "wrote" };
        let backup = done.backup.as_ref().map(|backup| format!(" (before: {})", backup.display()));
        // Writing to a string cannot fail, here and below.
        _ = writeln!(text, "{what} {}{}", done.path.display(), backup.unwrap_or_default());
    }
    for (agent, error) in &report.failed {
        _ = writeln!(text, "{} {agent}: {error}", terminal.paint(style::BAD, "failed:"));
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            _ = writeln!(text, "  why: {cause}");
            source = cause.source();
        }
        _ = writeln!(text, "  do:  {}", error.advice());
    }
    if report.failed.is_empty() && action == Action::Install {
        text.push_str("Sessions that run already take no notice until they are started again.\n");
    }
    text
}

fn planned_json(plan: &Plan, capability: &CapabilityPlan) -> serde_json::Value {
    let files = plan.agents.iter().flat_map(|agent| {
        agent.files.iter().map(|file| match &file.outcome {
            Ok(change) => json!({
                "agent": agent.agent.name(), "path": file.path, "diff": file.diff(),
                "change": match change { Change::None => "none", Change::Write(_) => "write", Change::Delete => "delete" },
            }),
            Err(error) => json!({
                "agent": agent.agent.name(), "path": file.path, "change": "refused",
                "why": error.to_string(), "do": error.advice(),
            }),
        })
    });
    json!({
        "planned": files.collect::<Vec<_>>(), "absent": plan.absent,
        "capability": capability.change().map(|change| json!({"path": capability.path(), "change": change})),
    })
}

/// `carried_out`: whether the capability's share was done, too.
fn report_json(report: &Report, capability: &CapabilityPlan, carried_out: bool) -> serde_json::Value {
    let done = report.done.iter().map(|done| {
        json!({"agent": done.agent.name(), "path": done.path, "removed": done.removed, "backup": done.backup})
    });
    let failed = report
        .failed
        .iter()
        .map(|(agent, error)| json!({"agent": agent.name(), "why": error.to_string(), "do": error.advice()}));
    json!({
        "changed": done.collect::<Vec<_>>(), "unchanged": report.unchanged, "failed": failed.collect::<Vec<_>>(),
        "capability": capability.change().map(|change| {
            json!({"path": capability.path(), "change": if carried_out { change } else { "none" }})
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan { action: Action::Install, agents: Vec::new(), absent: Vec::new() }
    }

    /// What both documents say of the capability.
    #[track_caller]
    fn check(capability: &CapabilityPlan, planned: &serde_json::Value, reported: &serde_json::Value) {
        assert_eq!(&planned_json(&plan(), capability)["capability"], planned);
        assert_eq!(&report_json(&Report::default(), capability, true)["capability"], reported);
    }

    #[test]
    fn the_capability_s_file_is_listed_with_what_becomes_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        let path = state.join(watchkeeper_api::mcp::CAPABILITY_FILE);
        let listed = |change: &str| json!({"path": path, "change": change});
        check(&CapabilityPlan::not_asked(state), &json!(null), &json!(null));
        check(&CapabilityPlan::uninstall(state), &listed("none"), &listed("none"));
        let written = CapabilityPlan::install(state, false).unwrap();
        check(&written, &listed("write"), &listed("write"));
        written.carry_out().unwrap();
        check(&CapabilityPlan::install(state, false).unwrap(), &listed("none"), &listed("none"));
        check(&CapabilityPlan::install(state, true).unwrap(), &listed("write"), &listed("write"));
        let removed = CapabilityPlan::uninstall(state);
        check(&removed, &listed("delete"), &listed("delete"));
        // An agent could not be taken out: what it still shows stays.
        let left = report_json(&Report::default(), &removed, false);
        assert_eq!(left["capability"], listed("none"));
    }
}
