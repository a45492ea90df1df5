//! `hooks status`: what stands in each agent's files.

use serde_json::json;

use crate::{
    app::{App, Outcome},
    complaint::Complaint,
    exit,
    install::{AgentStatus, HooksState, status as look},
    output::{plain, style},
};

pub(super) fn status(app: &App) -> Outcome {
    let agents = agents(app)?;
    app.answer(&json!({"agents": agents}), |app| {
        let mut text = String::new();
        for agent in &agents {
            let (word, colour) = match (agent.is_working(), agent.present) {
                (true, _) => ("wired up", style::GOOD),
                (false, true) => (words(agent.hooks), style::WARN),
                (false, false) => ("not on this machine", style::DIM),
            };
            text.push_str(&format!("{:<9} {}\n", agent.agent.name(), app.terminal.paint(colour, word)));
            for line in details(agent) {
                text.push_str(&format!("          {}\n", plain(&line)));
            }
        }
        text
    })?;
    Ok(exit::SUCCESS)
}

/// What is there, for `doctor` too.
pub(super) fn agents(app: &App) -> Result<Vec<AgentStatus>, Complaint> {
    let context = super::install::context(app, &[])?;
    look(&context).map_err(|error| Complaint::new("cannot look at the agents' hooks").caused_by(&error))
}

const fn words(state: HooksState) -> &'static str {
    match state {
        HooksState::Current => "wired up, but the agent does not run it",
        HooksState::Missing => "not wired up",
        HooksState::Outdated => "wired up by another version or instance",
        HooksState::Broken => "its file cannot be read",
    }
}

/// What is wrong and what to do, for an agent that is here.
pub(super) fn details(agent: &AgentStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if !agent.present {
        return lines;
    }
    for file in &agent.files {
        let path = file.path.display();
        let list = |events: &[String]| events.join(", ");
        if let Some(problem) = &file.problem {
            lines.push(format!("{path}: {problem}"));
            lines.extend(file.advice.iter().map(|advice| format!("do: {advice}")));
        }
        if agent.hooks == HooksState::Outdated && !file.missing.is_empty() {
            lines.push(format!("{path}: missing {}", list(&file.missing)));
        }
        if !file.outdated.is_empty() {
            lines.push(format!("{path}: out of date {}", list(&file.outdated)));
        }
        if !file.disabled.is_empty() {
            lines.push(format!("{path}: no hook runs from it: {}", list(&file.disabled)));
        }
    }
    if !agent.untrusted.is_empty() {
        lines.push(format!(
            "the agent waits for your review of {}: start it and look at its hooks",
            agent.untrusted.join(", ")
        ));
    }
    if !agent.changed_since_review.is_empty() {
        lines.push(format!(
            "changed since your review, so the agent asks again: {}",
            agent.changed_since_review.join(", ")
        ));
    }
    if !agent.switched_off.is_empty() {
        lines.push(format!("you switched off {} in the agent", agent.switched_off.join(", ")));
    }
    if agent.hook_program_missing {
        lines.push("the hook program that its files name is not there".into());
    }
    if matches!(agent.hooks, HooksState::Missing | HooksState::Outdated) || agent.hook_program_missing {
        lines.push("do: `watchkeeper install`".into());
    }
    lines
}
