//! What stands in the agents' files now, for `hooks status` and `doctor`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use watchkeeper_agents::install::{McpPlace, Trust, decode};
use watchkeeper_core::AgentKind;

use super::{
    context::{Context, ContextError},
    detect::find_agents,
    error::InstallError,
    plan::each_file,
    target::Snapshot,
};

/// One agent's hooks.
#[derive(Debug, Serialize)]
pub(crate) struct AgentStatus {
    pub(crate) agent: AgentKind,
    /// Its program on PATH.
    pub(crate) program: Option<PathBuf>,
    pub(crate) home: PathBuf,
    /// Whether it is on this machine at all.
    pub(crate) present: bool,
    pub(crate) hooks: HooksState,
    pub(crate) files: Vec<FileStatus>,
    /// Events whose hook the agent passes over until the person reviews it (Codex).
    pub(crate) untrusted: Vec<String>,
    /// Events whose hook was reviewed in another form, so that the agent asks again (Codex).
    pub(crate) changed_since_review: Vec<String>,
    /// Events whose hook the person switched off in the agent.
    pub(crate) switched_off: Vec<String>,
    /// The hook program that the entries name is not there.
    pub(crate) hook_program_missing: bool,
}

/// The worst of an agent's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HooksState {
    /// As `install` would write them.
    Current,
    /// Nothing of ours.
    Missing,
    /// Some are missing, old, or of another instance: `install` mends it.
    Outdated,
    /// A file cannot be read; `install` refuses it.
    Broken,
}

/// One file.
#[derive(Debug, Serialize)]
pub(crate) struct FileStatus {
    pub(crate) path: PathBuf,
    pub(crate) missing: Vec<String>,
    pub(crate) outdated: Vec<String>,
    /// What in it keeps hooks from running, each as a clause.
    pub(crate) disabled: Vec<String>,
    /// Why it cannot be read, and what to do.
    pub(crate) problem: Option<String>,
    pub(crate) advice: Option<String>,
}

impl AgentStatus {
    /// Whether the agent will run our hooks as far as its files tell.
    pub(crate) fn is_working(&self) -> bool {
        self.hooks == HooksState::Current
            && self.untrusted.is_empty()
            && self.changed_since_review.is_empty()
            && self.switched_off.is_empty()
            && !self.hook_program_missing
            && self.files.iter().all(|file| file.disabled.is_empty())
    }
}

/// Looks at every agent the context asks for. Reads a few small files; writes nothing.
///
/// # Errors
/// The hook program cannot be named in a configuration at all.
pub(crate) fn status(context: &Context) -> Result<Vec<AgentStatus>, ContextError> {
    let wiring = context.wiring()?;
    let agents = find_agents(context).into_iter().map(|found| {
        let mut files = Vec::new();
        let mut texts = Vec::new();
        let mut state = None;
        let mut hooks_path = None;
        let mut switched_off = Vec::new();
        for (file, path) in each_file(&found).filter(|(file, _)| file.mcp() != McpPlace::Only) {
            let read = Snapshot::read(&path).and_then(|snapshot| {
                let refused = |refusal| InstallError::Refused { path: path.clone(), refusal };
                let text = snapshot.bytes.as_deref().map(decode).transpose().map_err(refused)?;
                let inspection = file.inspect(text, &wiring).map_err(refused)?;
                Ok((text.map(str::to_owned), inspection))
            });
            hooks_path.get_or_insert_with(|| path.clone());
            let (status, file_state, text) = match read {
                Ok((text, inspection)) => {
                    switched_off.extend(inspection.switched_off.iter().cloned());
                    let file_state = if !inspection.is_current() && inspection.is_absent() {
                        HooksState::Missing
                    } else if inspection.is_current() {
                        HooksState::Current
                    } else {
                        HooksState::Outdated
                    };
                    let status = FileStatus {
                        path,
                        missing: inspection.missing,
                        outdated: inspection.outdated,
                        disabled: inspection.disabled,
                        problem: None,
                        advice: None,
                    };
                    (status, file_state, text)
                }
                Err(error) => {
                    let status = FileStatus {
                        path,
                        missing: Vec::new(),
                        outdated: Vec::new(),
                        disabled: Vec::new(),
                        problem: Some(error.to_string()),
                        advice: Some(error.advice()),
                    };
                    (status, HooksState::Broken, None)
                }
            };
            state = state.max(Some(file_state));
            files.push(status);
            texts.push(text);
        }
        let hooks = state.unwrap_or(HooksState::Missing);
        let texts: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
        let trust = hooks_path.and_then(|path| trust(found.installer, &path, &texts)).unwrap_or_default();
        switched_off.extend(trust.switched_off);
        AgentStatus {
            agent: found.installer.agent,
            present: found.is_present(),
            program: found.program,
            home: found.home,
            hooks,
            files,
            untrusted: trust.untrusted,
            changed_since_review: trust.changed,
            switched_off,
            hook_program_missing: hooks == HooksState::Current && !context.hook_program.is_file(),
        }
    });
    Ok(agents.collect())
}

/// An agent may spell its folder as it was given or with its links resolved; the spelling it trusts counts.
fn trust(
    installer: &watchkeeper_agents::install::Installer,
    hooks_path: &Path,
    texts: &[Option<&str>],
) -> Option<Trust> {
    let trust = installer.trust?;
    let as_given = trust(&hooks_path.to_string_lossy(), texts);
    if as_given.untrusted.is_empty() {
        return Some(as_given);
    }
    let resolved = hooks_path
        .parent()
        .and_then(|folder| std::fs::canonicalize(folder).ok())
        .zip(hooks_path.file_name())
        .map(|(folder, name)| folder.join(name));
    let resolved = resolved.map(|path| trust(&path.to_string_lossy(), texts));
    Some(match resolved {
        Some(resolved) if resolved.untrusted.len() < as_given.untrusted.len() => resolved,
        Some(_) | None => as_given,
    })
}
