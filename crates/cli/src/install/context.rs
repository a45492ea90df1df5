//! What the installer is told about the machine, so that it never reads the environment itself.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use watchkeeper_agents::install::{ALL, Installer, Instance, McpCommand, Shell, Timeouts, Wiring};
use watchkeeper_core::AgentKind;

/// Where everything is.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The user's home folder.
    pub(crate) home: PathBuf,
    /// The value of `PATH`.
    pub(crate) path: Option<OsString>,
    /// Variables that move an agent's configuration (`CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `XDG_CONFIG_HOME`, …).
    pub(crate) variables: BTreeMap<&'static str, OsString>,
    /// The instance's state folder; receipts and backups live below it in `install/`.
    pub(crate) state: PathBuf,
    /// The hook program that is written into the agents' files.
    pub(crate) hook_program: PathBuf,
    /// What the hook is told about its instance.
    pub(crate) instance: Instance,
    pub(crate) timeouts: Timeouts,
    /// Only these agents; `None` for every agent that is found.
    pub(crate) only: Option<Vec<AgentKind>>,
    /// The MCP server to register; `None`: whatever is registered stays as it is.
    pub(crate) mcp: Option<McpCommand>,
}

/// Why nothing can be installed at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContextError {
    #[error("the hook program {path} is not there; build or install it (it belongs beside watchkeeper)")]
    NoHookProgram { path: PathBuf },
    #[error("the hook program's path {path} is not absolute; an agent could not find it")]
    Relative { path: PathBuf },
    #[error("the path {path} is not UTF-8, so it cannot stand in an agent's configuration; move it")]
    NotUtf8 { path: PathBuf },
}

impl Context {
    /// The variables of this process that matter; the rest is the caller's.
    pub(crate) fn agent_variables() -> BTreeMap<&'static str, OsString> {
        let named = ALL.iter().map(|installer| installer.home.variable);
        named
            .filter_map(|name| Some((name, std::env::var_os(name).filter(|value| !value.is_empty())?)))
            .collect()
    }

    /// The configuration folder of an agent here.
    pub(crate) fn agent_home(&self, installer: &Installer) -> PathBuf {
        let home = installer.home;
        home.resolve(&self.home, self.variables.get(home.variable).map(OsString::as_os_str))
    }

    /// Whether a variable moves an agent's configuration.
    pub(crate) fn moves(&self, installer: &Installer) -> bool {
        self.variables.contains_key(installer.home.variable)
    }

    pub(crate) fn wants(&self, agent: AgentKind) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&agent))
    }

    /// The folder of receipts and backups.
    pub(crate) fn records(&self) -> PathBuf {
        self.state.join("install")
    }

    /// What the hook's command line is made of, whether or not the program is there.
    pub(crate) fn wiring(&self) -> Result<Wiring, ContextError> {
        if !self.hook_program.is_absolute() {
            return Err(ContextError::Relative { path: self.hook_program.clone() });
        }
        Ok(Wiring {
            program: shell_path(&self.hook_program)?,
            instance: self.instance.clone(),
            state: shell_path(&self.state)?,
            timeouts: self.timeouts,
            shell: if cfg!(windows) { Shell::PowerShell } else { Shell::Posix },
            mcp: self.mcp.clone(),
        })
    }

    /// As [`Self::wiring`], for writing it.
    pub(crate) fn usable_wiring(&self) -> Result<Wiring, ContextError> {
        if !self.hook_program.is_file() {
            return Err(ContextError::NoHookProgram { path: self.hook_program.clone() });
        }
        self.wiring()
    }
}

/// A path as every shell reads it. On Windows with forward slashes: a POSIX shell there takes a backslash for an escape.
fn shell_path(path: &Path) -> Result<String, ContextError> {
    let text = path.to_str().ok_or_else(|| ContextError::NotUtf8 { path: path.to_owned() })?;
    Ok(if cfg!(windows) { text.replace('\\', "/") } else { text.to_owned() })
}
