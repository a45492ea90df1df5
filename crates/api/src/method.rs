//! Every method: its name, what it takes, what it answers, and the scope that a caller needs. Both sides use these
//! types; nothing here acts.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    rpc::{ErrorCode, Failure},
    status::Status,
};

mod config;
mod daemon;
mod event;
mod hold;
mod session;

pub use config::{
    CONFIG_SCHEMA_VERSION, ConfigGetParams, ConfigPath, ConfigSchema, ConfigSetParams, ConfigUnsetParams,
    ConfigValue, ConfigValues, KeyChange, SettingSchema, SettingSource,
};
pub use daemon::{
    Check, CheckLevel, DaemonStatus, Doctor, InitializeParams, Initialized, JournalState, Left, PlacePaths,
    RestartParams, Restarting, WatchCoverage, Why,
};
pub use event::{
    Changed, EVENTS_LIMIT_DEFAULT, EVENTS_LIMIT_MAX, EventRow, Events, EventsParams, Lagged, Pushed,
    SubscribeParams, Subscribed, TransitionRow, source_name,
};
pub use hold::{Hold, HoldReleaseParams, HoldTakeParams, Holds, Released};
pub use session::{
    Acknowledged, EvidenceRow, ExplainParams, Explained, SessionActivityParams, SessionParams,
    SessionSoftlockParams, SessionStartParams, SessionStopParams,
};

/// How much a caller may see and do. Derived by the daemon from the caller's ancestry; a request cannot widen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// What an agent, its MCP server or a tool inside it gets: its own session and the machine line, to read.
    Session,
    /// The person's own programs.
    Machine,
}

/// For methods that take nothing. Unknown fields are ignored, as everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Nothing {}

/// One method of the interface.
pub trait Method {
    const NAME: &'static str;
    /// The least scope that may call it. A `Session` caller gets answers about its own session only.
    const SCOPE: Scope;
    type Params: Serialize + DeserializeOwned;
    type Output: Serialize + DeserializeOwned;
}

macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident = $name:literal, $scope:ident, $params:ty => $output:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $method;

            impl Method for $method {
                const NAME: &'static str = $name;
                const SCOPE: Scope = Scope::$scope;
                type Params = $params;
                type Output = $output;
            }
        )*

        /// A request, read and typed: what a server matches on.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Call {
            $($(#[$doc])* $method($params),)*
        }

        impl Call {
            /// Every method's name with the scope it needs.
            pub const ALL: &'static [(&'static str, Scope)] = &[$(($name, Scope::$scope)),*];

            /// Reads the params of the method `name`; absent params count as an empty object.
            ///
            /// # Errors
            /// `UnknownMethod` or `InvalidParams`, ready to be sent.
            pub fn parse(name: &str, params: Value) -> Result<Self, Failure> {
                match name {
                    $($name => params_of(name, params).map(Self::$method),)*
                    _ => Err(Failure::new(
                        ErrorCode::UnknownMethod,
                        format!("there is no method '{}'", name.chars().take(64).collect::<String>()),
                    )),
                }
            }

            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$method(_) => $name,)* }
            }

            #[must_use]
            pub const fn scope(&self) -> Scope {
                match self { $(Self::$method(_) => Scope::$scope,)* }
            }
        }
    };
}

methods! {
    /// The first call of every connection.
    Initialize = "initialize", Session, InitializeParams => Initialized;
    GetStatus = "status", Session, Nothing => Status;
    GetWhy = "why", Session, Nothing => Why;
    Explain = "explain", Session, ExplainParams => Explained;
    GetEvents = "events", Session, EventsParams => Events;
    /// Pushes `changed`, `event` and `lagged` notifications on this connection from here on; one subscription each.
    Subscribe = "subscribe", Session, SubscribeParams => Subscribed;
    SessionStart = "session.start", Machine, SessionStartParams => Acknowledged;
    SessionStop = "session.stop", Machine, SessionStopParams => Acknowledged;
    SessionActivity = "session.activity", Machine, SessionActivityParams => Acknowledged;
    SessionSoftlock = "session.softlock", Machine, SessionSoftlockParams => Acknowledged;
    SessionClearSoftlock = "session.clear_softlock", Machine, SessionParams => Acknowledged;
    SessionRemove = "session.remove", Machine, SessionParams => Acknowledged;
    HoldTake = "hold.take", Machine, HoldTakeParams => Hold;
    HoldRelease = "hold.release", Machine, HoldReleaseParams => Released;
    HoldList = "hold.list", Machine, Nothing => Holds;
    ConfigGet = "config.get", Machine, ConfigGetParams => ConfigValues;
    ConfigSet = "config.set", Machine, ConfigSetParams => KeyChange;
    ConfigUnset = "config.unset", Machine, ConfigUnsetParams => KeyChange;
    GetConfigPath = "config.path", Machine, Nothing => ConfigPath;
    GetConfigSchema = "config.schema", Machine, Nothing => ConfigSchema;
    GetDaemonStatus = "daemon.status", Machine, Nothing => DaemonStatus;
    /// Answered before the daemon lets go; the connection closes when it is gone.
    DaemonStop = "daemon.stop", Machine, Nothing => Left;
    /// Answered before the daemon becomes its successor, which keeps the machine awake without a gap. Refused where a
    /// program cannot hand over what it holds: stop and start it there.
    DaemonRestart = "daemon.restart", Machine, RestartParams => Restarting;
    GetDoctor = "doctor", Machine, Nothing => Doctor;
}

fn params_of<P: DeserializeOwned>(name: &str, params: Value) -> Result<P, Failure> {
    let params = if params.is_null() { Value::Object(serde_json::Map::new()) } else { params };
    if !params.is_object() {
        let message = format!("the params of '{name}' must be an object");
        return Err(Failure::new(ErrorCode::InvalidParams, message));
    }
    serde_json::from_value(params)
        .map_err(|e| Failure::new(ErrorCode::InvalidParams, format!("bad params for '{name}': {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(name: &str, params: Value, expected: Result<Call, ErrorCode>) {
        assert_eq!(Call::parse(name, params).map_err(|failure| failure.code), expected);
    }

    #[test]
    fn reads_calls() {
        check("status", Value::Null, Ok(Call::GetStatus(Nothing {})));
        check("status", json!({"new": 1}), Ok(Call::GetStatus(Nothing {})));
        check(
            "session.remove",
            json!({"session": "a"}),
            Ok(Call::SessionRemove(SessionParams { session: "a".into() })),
        );
        check("session.remove", json!({}), Err(ErrorCode::InvalidParams));
        check("session.remove", json!({"session": 1}), Err(ErrorCode::InvalidParams));
        check("status", json!([]), Err(ErrorCode::InvalidParams));
        check("sessions", json!({}), Err(ErrorCode::UnknownMethod));
    }

    #[test]
    fn what_changes_something_needs_the_machine_scope() {
        for (name, scope) in Call::ALL {
            let reads = ["initialize", "status", "why", "explain", "events", "subscribe"].contains(name);
            assert_eq!(*scope == Scope::Session, reads, "{name}");
        }
    }
}
