//! What would change, shown before anything does, and carrying it out.

use std::path::{Path, PathBuf};

use similar::TextDiff;
use watchkeeper_agents::install::{ConfigFile, Edit, McpPlace, Original, decode, installer};
use watchkeeper_core::AgentKind;

use super::{
    context::{Context, ContextError},
    detect::{FoundAgent, find_agents},
    error::InstallError,
    receipt::{Receipt, Records},
    system,
    target::Snapshot,
    write::{self, Staged},
};

/// Lines shown around each change.
const DIFF_CONTEXT_LINES: usize = 3;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Install,
    Uninstall,
}

/// Everything one command would do. Nothing has been written yet.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) action: Action,
    pub(crate) agents: Vec<AgentPlan>,
    /// Agents that are not on this machine.
    pub(crate) absent: Vec<AgentKind>,
}

/// One agent's share.
#[derive(Debug)]
pub(crate) struct AgentPlan {
    pub(crate) agent: AgentKind,
    pub(crate) files: Vec<FilePlan>,
    /// What the person must know beyond the diff.
    pub(crate) notes: Vec<String>,
}

/// One file's share.
#[derive(Debug)]
pub(crate) struct FilePlan {
    /// Where the agent looks.
    pub(crate) path: PathBuf,
    /// What happens to it, or why it is left alone.
    pub(crate) outcome: Result<Change, InstallError>,
    before: Option<Snapshot>,
    receipt: Option<Receipt>,
}

/// What happens to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    Write(String),
    Delete,
}

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) done: Vec<Done>,
    pub(crate) failed: Vec<(AgentKind, InstallError)>,
    /// Files that already were as they should be.
    pub(crate) unchanged: Vec<PathBuf>,
}

/// One file that was changed.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) agent: AgentKind,
    pub(crate) path: PathBuf,
    pub(crate) removed: bool,
    /// The copy of what it was; none for a new file.
    pub(crate) backup: Option<PathBuf>,
}

impl Plan {
    /// Whether carrying it out would change any file.
    pub(crate) fn changes_anything(&self) -> bool {
        self.files().any(|(_, file)| matches!(file.outcome, Ok(Change::Write(_) | Change::Delete)))
    }

    /// Files that are left alone, and why.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (AgentKind, &InstallError)> {
        self.files().filter_map(|(agent, file)| Some((agent, file.outcome.as_ref().err()?)))
    }

    fn files(&self) -> impl Iterator<Item = (AgentKind, &FilePlan)> {
        self.agents.iter().flat_map(|agent| agent.files.iter().map(|file| (agent.agent, file)))
    }
}

impl FilePlan {
    /// A unified diff of the change, empty when there is none; control characters of the file are shown, not sent.
    pub(crate) fn diff(&self) -> String {
        let before = self.before.as_ref().and_then(|snapshot| snapshot.bytes.as_deref()).unwrap_or_default();
        let before = String::from_utf8_lossy(before);
        let after = match &self.outcome {
            Ok(Change::Write(text)) => text.as_str(),
            Ok(Change::Delete) => "",
            Ok(Change::None) | Err(_) => return String::new(),
        };
        let name = self.path.display().to_string();
        let there = self.before.as_ref().is_some_and(|snapshot| snapshot.bytes.is_some());
        let nowhere = "/dev/null".to_owned();
        let old_name = if there { &name } else { &nowhere };
        let new_name = if matches!(self.outcome, Ok(Change::Delete)) { &nowhere } else { &name };
        let diff = TextDiff::from_lines(&*before, after)
            .unified_diff()
            .context_radius(DIFF_CONTEXT_LINES)
            .header(old_name, new_name)
            .to_string();
        diff.chars().flat_map(shown).collect()
    }

    #[cfg(test)]
    pub(super) fn into_parts(self) -> (Snapshot, Receipt) {
        match (self.before, self.receipt) {
            (Some(before), Some(receipt)) => (before, receipt),
            (before, receipt) => panic!("{before:?}, {receipt:?}"),
        }
    }

    fn refused(path: &Path, error: InstallError) -> Self {
        Self { path: path.to_owned(), outcome: Err(error), before: None, receipt: None }
    }
}

/// A file's own control characters must not reach the terminal.
fn shown(c: char) -> impl Iterator<Item = char> {
    let plain = !c.is_control() || matches!(c, '\n' | '\t');
    let escaped = (!plain && c != '\r').then(|| c.escape_unicode());
    plain.then_some(c).into_iter().chain(escaped.into_iter().flatten())
}

/// What installing the hooks would change, for every agent that is here (or that was asked for by name).
///
/// # Errors
/// The hook program cannot be named in a configuration, or is not there.
pub(crate) fn plan(context: &Context) -> Result<Plan, ContextError> {
    let wiring = context.usable_wiring()?;
    let records = Records::of(context);
    let (found, absent): (Vec<_>, Vec<_>) =
        find_agents(context).into_iter().partition(|found| found.is_present() || context.only.is_some());
    let agents = found
        .iter()
        .map(|found| {
            let mut notes = Vec::new();
            let wanted =
                each_file(found).filter(|(file, _)| wiring.mcp.is_some() || file.mcp() != McpPlace::Only);
            let files = wanted.map(|(file, path)| {
                plan_install(&records, found, file, &path, &wiring, &mut notes)
                    .unwrap_or_else(|error| FilePlan::refused(&path, error))
            });
            let mut files: Vec<_> = files.collect();
            keep_together(&mut files);
            if files.iter().any(|file| matches!(file.outcome, Ok(Change::Write(_)))) {
                notes.extend(found.installer.notes.iter().map(|note| (*note).to_owned()));
            }
            if wiring.mcp.is_some() && found.installer.files.iter().all(|file| file.mcp() == McpPlace::No) {
                notes.push(
                    "The MCP server is not registered here; docs/mcp.md has the entry to add by hand."
                        .to_owned(),
                );
            }
            AgentPlan { agent: found.installer.agent, files, notes }
        })
        .collect();
    let absent = absent.iter().map(|found| found.installer.agent).collect();
    Ok(Plan { action: Action::Install, agents, absent })
}

/// What taking the hooks out would change: every file an agent reads here, and every file a receipt names.
pub(crate) fn plan_uninstall(context: &Context) -> Plan {
    let records = Records::of(context);
    let mut agents: Vec<AgentPlan> = find_agents(context)
        .iter()
        .map(|found| {
            let files = each_file(found)
                .map(|(file, path)| {
                    plan_removal(&records, file, &path)
                        .unwrap_or_else(|error| FilePlan::refused(&path, error))
                })
                .collect();
            AgentPlan { agent: found.installer.agent, files, notes: Vec::new() }
        })
        .collect();
    // Files at places that an agent's variable named when they were written.
    for receipt in records.all() {
        let Some(agent) = agents.iter_mut().find(|agent| agent.agent == receipt.agent) else { continue };
        let known = agent.files.iter().any(|file| file.path == receipt.path);
        let file = installer(receipt.agent)
            .and_then(|installer| installer.files.iter().find(|file| file.path() == receipt.file));
        if let (false, Some(file)) = (known, file) {
            let removal = plan_removal(&records, *file, &receipt.path);
            agent.files.push(removal.unwrap_or_else(|error| FilePlan::refused(&receipt.path, error)));
        }
    }
    Plan { action: Action::Uninstall, agents, absent: Vec::new() }
}

pub(super) fn each_file(found: &FoundAgent) -> impl Iterator<Item = (&'static dyn ConfigFile, PathBuf)> {
    let files = found.installer.files;
    files.iter().map(|file| {
        let (folder, below) = match (&found.user_home, file.default_path()) {
            (Some(home), Some(below)) => (home, below),
            (Some(_) | None, _) => (&found.home, file.path()),
        };
        (*file, below.split('/').fold(folder.clone(), |path, segment| path.join(segment)))
    })
}

fn plan_install(
    records: &Records,
    found: &FoundAgent,
    file: &dyn ConfigFile,
    path: &Path,
    wiring: &watchkeeper_agents::install::Wiring,
    notes: &mut Vec<String>,
) -> Result<FilePlan, InstallError> {
    let refused = |refusal| InstallError::Refused { path: path.to_owned(), refusal };
    let before = Snapshot::read(path)?;
    let text = before.bytes.as_deref().map(decode).transpose().map_err(refused)?;
    let change = change_of(file.install(text, wiring).map_err(refused)?);
    let inspection = file.inspect(text, wiring).map_err(refused)?;
    let receipt = match &change {
        Change::None | Change::Delete => None,
        Change::Write(written) => {
            write::check_writable(&before)?;
            let old = records.find(path);
            let original = match &old {
                Some(old) if text == Some(&old.written) => old.original.clone(),
                Some(_) | None => {
                    let known = old.as_ref().map(original_of);
                    match file.remove(text, known).map_err(refused)? {
                        Edit::Keep => text.map(str::to_owned),
                        Edit::Write(without_ours) => Some(without_ours),
                        Edit::Delete => None,
                    }
                }
            };
            let mut receipt =
                Receipt::new(found.installer.agent, file.path(), path, original, written.clone());
            receipt.created_folders = old.map(|old| old.created_folders).unwrap_or_default();
            Some(receipt)
        }
    };
    if matches!(change, Change::Write(_)) {
        if !inspection.outdated.is_empty() {
            notes.push(format!(
                "{} entries of another Watchkeeper version or instance in {} are replaced.",
                inspection.outdated.len(),
                path.display()
            ));
        }
        let further = std::fs::metadata(&before.target).map_or(0, |found| system::other_names(&found));
        if further > 0 {
            notes.push(format!(
                "{} has {further} more name(s) (hard links); those keep the old content.",
                before.target.display()
            ));
        }
    }
    // The switch that this very change turns on again is no obstacle.
    let after = match &change {
        Change::Write(written) => file.inspect(Some(written), wiring).map_err(refused)?,
        Change::None | Change::Delete => inspection,
    };
    if !after.switched_off.is_empty() {
        notes.push(format!(
            "{} switches off {}: the agent does not run these hooks until you change that.",
            path.display(),
            after.switched_off.join(", ")
        ));
    }
    notes.extend(after.disabled.iter().map(|why| {
        format!(
            "No hook runs from {} as it stands: {why}. Watchkeeper hears nothing until you change that.",
            path.display()
        )
    }));
    Ok(FilePlan { path: path.to_owned(), outcome: Ok(change), before: Some(before), receipt })
}

fn plan_removal(records: &Records, file: &dyn ConfigFile, path: &Path) -> Result<FilePlan, InstallError> {
    let refused = |refusal| InstallError::Refused { path: path.to_owned(), refusal };
    let before = Snapshot::read(path)?;
    let text = before.bytes.as_deref().map(decode).transpose();
    let receipt = records.find(path);
    let change = match (text, &receipt) {
        // Nobody wrote since: the very bytes come back.
        (Ok(Some(text)), Some(receipt)) if text == receipt.written => match &receipt.original {
            Some(original) if original == text => Change::None,
            Some(original) => Change::Write(original.clone()),
            None => Change::Delete,
        },
        (Ok(text), receipt) => {
            change_of(file.remove(text, receipt.as_ref().map(original_of)).map_err(refused)?)
        }
        // We never wrote into such a file.
        (Err(_), None) => Change::None,
        (Err(refusal), Some(_)) => return Err(refused(refusal)),
    };
    if change != Change::None {
        write::check_writable(&before)?;
    }
    Ok(FilePlan { path: path.to_owned(), outcome: Ok(change), before: Some(before), receipt })
}

fn original_of(receipt: &Receipt) -> Original<'_> {
    receipt.original.as_deref().map_or(Original::Absent, Original::Text)
}

fn change_of(edit: Edit) -> Change {
    match edit {
        Edit::Keep => Change::None,
        Edit::Write(text) => Change::Write(text),
        Edit::Delete => Change::Delete,
    }
}

/// An agent is wired up as a whole or not at all.
fn keep_together(files: &mut [FilePlan]) {
    if files.iter().all(|file| file.outcome.is_ok()) {
        return;
    }
    for file in files {
        if matches!(file.outcome, Ok(Change::Write(_) | Change::Delete)) {
            file.outcome = Err(InstallError::WithOther { path: file.path.clone() });
        }
    }
}

/// Carries a plan out: for each file a backup, a receipt, the new text by rename, a look at the result. A file that
/// fails is reported and does not keep the others from being done.
///
/// # Errors
/// Nothing was done because another installation is at work or the records cannot be kept.
pub(crate) fn apply(context: &Context, plan: Plan) -> Result<Report, InstallError> {
    let records = Records::of(context);
    let mut report = Report::default();
    if plan.action == Action::Install && !plan.changes_anything() {
        // Nothing to keep a record of.
        settle(plan, None, &mut report);
        return Ok(report);
    }
    let lock = records.lock()?;
    settle(plan, Some(&records), &mut report);
    drop(lock);
    Ok(report)
}

fn settle(plan: Plan, records: Option<&Records>, report: &mut Report) {
    let action = plan.action;
    for agent in plan.agents {
        for file in agent.files {
            let path = file.path.clone();
            match carry_out(action, agent.agent, file, records) {
                Ok(Some(done)) => report.done.push(done),
                Ok(None) => report.unchanged.push(path),
                Err(error) => report.failed.push((agent.agent, error)),
            }
        }
    }
}

fn carry_out(
    action: Action,
    agent: AgentKind,
    file: FilePlan,
    records: Option<&Records>,
) -> Result<Option<Done>, InstallError> {
    let FilePlan { path, outcome, before, receipt } = file;
    let change = outcome?;
    let (Some(records), Some(before)) = (records, before) else { return Ok(None) };
    let removed = change == Change::Delete;
    if change == Change::None {
        if action == Action::Uninstall && receipt.is_some() {
            records.forget(&path)?;
        }
        return Ok(None);
    }
    let backup = records.back_up(agent, &before)?;
    let mut created = Vec::new();
    if action == Action::Install
        && let Some(mut receipt) = receipt.clone()
    {
        created = write::create_folders(&before.target)?;
        receipt.created_folders.extend(created.iter().cloned());
        records.put(&receipt)?;
    }
    let written = match &change {
        Change::Write(text) => Staged::new(&before, text.as_bytes()).and_then(Staged::commit),
        Change::Delete | Change::None => write::delete(&before),
    };
    if let Err(error) = written {
        remove_empty(&created);
        return Err(error);
    }
    if action == Action::Uninstall {
        records.forget(&path)?;
        if let (true, Some(receipt)) = (removed, &receipt) {
            remove_empty(&receipt.created_folders);
        }
    }
    Ok(Some(Done { agent, path, removed, backup }))
}

/// Folders that were created for a file go with it, unless somebody put something into them.
fn remove_empty(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        if std::fs::remove_dir(folder).is_err() {
            break;
        }
    }
}
