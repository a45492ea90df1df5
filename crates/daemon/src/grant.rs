//! What one connection of the local interface may do and see: derived from where the caller runs, widened only by the
//! capability that the person's `install` wrote, bound to one namespace for an MCP provider.
//!
//! A guard rail between agents, not a boundary against one's own processes.

use std::path::{Path, PathBuf};

use watchkeeper_api::{
    Call, ErrorCode, Failure, Scope,
    mcp::{CAPABILITY_BYTES_MAX, CAPABILITY_FILE, Capability, SETTABLE},
};
use watchkeeper_core::{AgentKind, SessionKey};
use watchkeeper_os::private_file::{PrivateFileError, read_private};

/// What `initialize` granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Grant {
    /// By the caller's ancestry alone.
    Scope(Scope),
    /// The MCP control server: all reads; with `write` the four writes of [`SETTABLE`] settings and sessions.
    Control { write: bool },
    /// An MCP provider: its own sessions and holds.
    Provider { namespace: String },
}

/// Which sessions a caller sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum View {
    All,
    /// The session of the agent that the caller runs in, if that has one.
    Own(Option<SessionKey>),
    /// The sessions of one MCP provider.
    Namespace(String),
}

/// Why a capability counts for nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CapabilityProblem {
    #[error("there is none that counts at {}: {why}", path.display())]
    None { path: PathBuf, why: String },
    #[error("{} can be read or written by others than its owner", path.display())]
    Exposed { path: PathBuf },
    #[error("it is not the one that stands in {}", path.display())]
    Other { path: PathBuf },
}

impl Grant {
    /// What the caller is told.
    pub(crate) const fn scope(&self) -> Scope {
        match self {
            Self::Scope(scope) => *scope,
            Self::Control { .. } => Scope::Machine,
            Self::Provider { .. } => Scope::Session,
        }
    }

    /// Whether its statements are an MCP server's, not a person's.
    pub(crate) const fn is_mcp(&self) -> bool {
        match self {
            Self::Scope(_) => false,
            Self::Control { .. } | Self::Provider { .. } => true,
        }
    }

    /// The provider's namespace, if it is one.
    pub(crate) fn namespace(&self) -> Option<&str> {
        match self {
            Self::Provider { namespace } => Some(namespace),
            Self::Scope(_) | Self::Control { .. } => None,
        }
    }

    /// Whether this call may be made at all. What it then sees is the [`View`]'s matter.
    ///
    /// # Errors
    /// `Forbidden`, with what would be allowed.
    pub(crate) fn check(&self, call: &Call) -> Result<(), Failure> {
        match self {
            Self::Scope(scope) if call.scope() > *scope => Err(forbidden(
                format!(
                    "'{}' is not allowed from inside an agent's session, nor where that cannot be told",
                    call.name()
                ),
                "Run it from a terminal of your own.",
            )),
            Self::Scope(_) => Ok(()),
            Self::Control { write } => check_control(*write, call),
            Self::Provider { .. } if is_a_providers(call) => Ok(()),
            Self::Provider { .. } => Err(forbidden(
                format!("'{}' is not a provider's to call", call.name()),
                "A provider starts, stops and soft-locks its own sessions, and takes holds.",
            )),
        }
    }
}

fn forbidden(message: String, hint: &str) -> Failure {
    Failure::new(ErrorCode::Forbidden, message).with_hint(hint)
}

/// Whether a call only reads.
pub(crate) const fn is_a_read(call: &Call) -> bool {
    match call {
        Call::Initialize(_)
        | Call::GetStatus(_)
        | Call::GetWhy(_)
        | Call::Explain(_)
        | Call::GetEvents(_)
        | Call::Subscribe(_)
        | Call::HoldList(_)
        | Call::ConfigGet(_)
        | Call::GetConfigPath(_)
        | Call::GetConfigSchema(_)
        | Call::GetDaemonStatus(_)
        | Call::GetDoctor(_) => true,
        Call::SessionStart(_)
        | Call::SessionStop(_)
        | Call::SessionActivity(_)
        | Call::SessionSoftlock(_)
        | Call::SessionClearSoftlock(_)
        | Call::SessionRemove(_)
        | Call::HoldTake(_)
        | Call::HoldRelease(_)
        | Call::ConfigSet(_)
        | Call::ConfigUnset(_)
        | Call::DaemonStop(_)
        | Call::DaemonRestart(_) => false,
    }
}

fn check_control(write: bool, call: &Call) -> Result<(), Failure> {
    if is_a_read(call) {
        return Ok(());
    }
    let setting = if let Call::ConfigSet(params) = call {
        Some(params.key.as_str())
    } else if let Call::ConfigUnset(params) = call {
        Some(params.key.as_str())
    } else {
        None
    };
    let of_sessions =
        matches!(call, Call::SessionSoftlock(_) | Call::SessionClearSoftlock(_) | Call::SessionRemove(_));
    if setting.is_none() && !of_sessions {
        return Err(forbidden(
            format!("'{}' is not the MCP server's to call", call.name()),
            "Run it from a terminal of your own.",
        ));
    }
    if !write {
        return Err(forbidden(
            format!("'{}' changes something, and this capability only reads", call.name()),
            "Run `watchkeeper install --mcp --allow-write` if agents may do it.",
        ));
    }
    match setting {
        Some(key) if !SETTABLE.contains(&key) => Err(forbidden(
            format!(
                "'{}' is not a setting that an MCP client may change",
                key.chars().take(64).collect::<String>()
            ),
            "Change it yourself with `watchkeeper config set`.",
        )),
        Some(_) | None => Ok(()),
    }
}

const fn is_a_providers(call: &Call) -> bool {
    matches!(
        call,
        Call::Initialize(_)
            | Call::GetStatus(_)
            | Call::GetWhy(_)
            | Call::Explain(_)
            | Call::SessionStart(_)
            | Call::SessionStop(_)
            | Call::SessionActivity(_)
            | Call::SessionSoftlock(_)
            | Call::SessionClearSoftlock(_)
            | Call::HoldTake(_)
            | Call::HoldRelease(_)
            | Call::HoldList(_)
    )
}

impl View {
    pub(crate) fn sees(&self, key: &SessionKey) -> bool {
        match self {
            Self::All => true,
            Self::Own(own) => own.as_ref() == Some(key),
            Self::Namespace(namespace) => {
                key.agent == AgentKind::Mcp && key.namespace.as_deref() == Some(namespace)
            }
        }
    }

    pub(crate) const fn is_restricted(&self) -> bool {
        match self {
            Self::All => false,
            Self::Own(_) | Self::Namespace(_) => true,
        }
    }
}

/// The owner that every hold of a provider has, so that it reaches no other.
pub(crate) fn hold_owner(namespace: &str) -> String {
    format!("{}/{namespace}", AgentKind::Mcp)
}

/// Whether a hold's owner is a provider, as [`hold_owner`] names it.
pub(crate) fn is_a_provider(owner: &str) -> bool {
    owner.starts_with(&hold_owner(""))
}

/// What the capability that a caller shows is worth. Reads one small file of this instance's state.
///
/// # Errors
/// [`CapabilityProblem`].
pub(crate) fn control(state: &Path, shown: &str) -> Result<Grant, CapabilityProblem> {
    let path = state.join(CAPABILITY_FILE);
    let none = |why: String| CapabilityProblem::None { path: path.clone(), why };
    let bytes = read_private(&path, CAPABILITY_BYTES_MAX).map_err(|error| match error {
        PrivateFileError::Exposed => CapabilityProblem::Exposed { path: path.clone() },
        PrivateFileError::Io(_) | PrivateFileError::NotAFile | PrivateFileError::TooLong { .. } => {
            none(error.to_string())
        }
    })?;
    let capability = Capability::parse(&bytes).map_err(|error| none(error.to_string()))?;
    if !capability.is_shown_by(shown) {
        return Err(CapabilityProblem::Other { path });
    }
    Ok(Grant::Control { write: capability.write })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const READ: Grant = Grant::Control { write: false };
    const WRITE: Grant = Grant::Control { write: true };

    fn provider() -> Grant {
        Grant::Provider { namespace: "one".to_owned() }
    }

    fn check(grant: &Grant, method: &str, params: serde_json::Value, allowed: bool) {
        let call = Call::parse(method, params).unwrap();
        assert_eq!(grant.check(&call).is_ok(), allowed, "{grant:?} {method}");
    }

    #[test]
    fn each_grant_reaches_its_own_methods_only() {
        for (method, read, write, of_provider) in [
            ("status", true, true, true),
            ("events", true, true, false),
            ("subscribe", true, true, false),
            ("hold.list", true, true, true),
            ("config.get", true, true, false),
            ("doctor", true, true, false),
            ("daemon.stop", false, false, false),
            ("daemon.restart", false, false, false),
        ] {
            check(&READ, method, json!({}), read);
            check(&WRITE, method, json!({}), write);
            check(&provider(), method, json!({}), of_provider);
        }
        let session = json!({"session": "x", "reason": "y"});
        for (method, write, of_provider) in [
            ("session.softlock", true, true),
            ("session.clear_softlock", true, true),
            ("session.remove", true, false),
            ("session.stop", false, true),
            ("session.activity", false, true),
        ] {
            check(&READ, method, session.clone(), false);
            check(&WRITE, method, session.clone(), write);
            check(&provider(), method, session.clone(), of_provider);
        }
        let hold = json!({"owner": "o", "reason": "r"});
        check(&WRITE, "hold.take", hold.clone(), false);
        check(&provider(), "hold.take", hold.clone(), true);
        check(&Grant::Scope(Scope::Session), "hold.take", hold.clone(), false);
        check(&Grant::Scope(Scope::Machine), "hold.take", hold, true);
    }

    #[test]
    fn only_listed_settings_may_be_changed() {
        for key in SETTABLE {
            check(&WRITE, "config.set", json!({"key": key, "value": "1"}), true);
            check(&READ, "config.set", json!({"key": key, "value": "1"}), false);
            check(&provider(), "config.set", json!({"key": key, "value": "1"}), false);
            assert!(crate::config::SETTINGS.iter().any(|setting| setting.key == key), "{key}");
        }
        for key in ["suspend", "sound", "record_prompts", "webhook_url", "remote_permission", ""] {
            check(&WRITE, "config.set", json!({"key": key, "value": "1"}), false);
            check(&WRITE, "config.unset", json!({"key": key}), false);
        }
    }

    #[test]
    fn only_the_owner_s_file_with_the_very_secret_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CAPABILITY_FILE);
        let secret = Capability::new(9, true);
        let shown = secret.secret.as_str();
        assert!(matches!(control(folder.path(), shown), Err(CapabilityProblem::None { .. })));
        std::fs::create_dir_all(&path).unwrap();
        assert!(matches!(control(folder.path(), shown), Err(CapabilityProblem::None { .. })));
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, secret.to_text()).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            mode(0o640);
            assert!(matches!(control(folder.path(), shown), Err(CapabilityProblem::Exposed { .. })));
            mode(0o600);
        }
        assert_eq!(control(folder.path(), shown).unwrap(), WRITE);
        assert!(matches!(control(folder.path(), ""), Err(CapabilityProblem::Other { .. })));
        std::fs::write(&path, "{}").unwrap();
        assert!(matches!(control(folder.path(), ""), Err(CapabilityProblem::None { .. })));
        #[cfg(unix)]
        {
            let elsewhere = folder.path().join("elsewhere.json");
            std::fs::rename(&path, &elsewhere).unwrap();
            std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
            assert!(matches!(control(folder.path(), shown), Err(CapabilityProblem::None { .. })), "a link");
            std::fs::remove_file(&path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            assert!(matches!(control(folder.path(), shown), Err(CapabilityProblem::None { .. })), "a pipe");
        }
    }

    #[test]
    fn a_provider_sees_its_namespace() {
        let view = View::Namespace("one".to_owned());
        let key = |text: &str| watchkeeper_api::select::spelled_out(text).unwrap();
        assert!(view.sees(&key("mcp/one:x")));
        for other in ["mcp/two:x", "acp/one:x", "claude:x"] {
            assert!(!view.sees(&key(other)), "{other}");
            assert!(View::All.sees(&key(other)));
        }
    }
}
