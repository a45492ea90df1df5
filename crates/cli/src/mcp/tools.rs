//! What a set of tools is to the server: descriptions with schemas, and a call that blocks on the daemon.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::complaint::Complaint;

/// One tool's description.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// The properties of its arguments, as JSON schemas.
    pub(super) properties: Value,
    pub(super) required: &'static [&'static str],
    pub(super) effect: Effect,
}

/// What a call does to the world, for the client's own questions to its person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    /// Can be said again or taken back.
    Adds,
    /// Something is forgotten or ended.
    Removes,
}

/// What a call brought.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Always an object.
    pub(super) value: Value,
    /// The same for a reader.
    pub(super) text: String,
}

/// The tools of one server.
pub(crate) trait Toolset: fmt::Debug + Send + Sync + 'static {
    /// What the client's model is told about the whole.
    fn instructions(&self) -> String;
    fn descriptions(&self) -> Vec<Description>;
    /// Blocks until the daemon has answered. `None`: there is no such tool here.
    fn call(&self, name: &str, arguments: Map<String, Value>) -> Option<Result<Answer, Complaint>>;
    /// The server ends: lets go of what nobody will let go of later. Best effort.
    fn leave(&self) {}
}

impl Description {
    /// The JSON schema of its arguments.
    pub(super) fn schema(&self) -> Map<String, Value> {
        let schema = json!({
            "type": "object", "properties": self.properties, "required": self.required, "additionalProperties": false,
        });
        match schema {
            Value::Object(schema) => schema,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        }
    }

    /// The names of its arguments.
    pub(super) fn arguments(&self) -> Vec<&str> {
        self.properties.as_object().map(|all| all.keys().map(String::as_str).collect()).unwrap_or_default()
    }
}

impl Answer {
    /// An answer of the daemon as it is.
    pub(super) fn of(value: &impl serde::Serialize, text: String) -> Result<Self, Complaint> {
        let value = serde_json::to_value(value)
            .map_err(|error| Complaint::new("cannot write the answer").caused_by(&error))?;
        Ok(Self { value, text })
    }
}

/// The schema of a text argument.
pub(super) fn text(what: &str) -> Value {
    json!({"type": "string", "description": what})
}
