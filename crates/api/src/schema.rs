//! The published schema: every method with the JSON Schema of its params and result, read off the types themselves.
//!
//! Serde tells a deserializer which fields a type has and what it wants in them. The tracer here feeds each type what it
//! asks for and writes down the questions, so that the schema cannot drift from the code.

mod trace;

use serde_json::{Value, json};

use crate::{
    method::{self, Changed, EventRow, Lagged, Method, Scope},
    rpc::{ErrorCode, FRAME_BYTES_MAX, PROTOCOL},
};

/// Version of the schema document's own shape.
pub const SCHEMA_VERSION: u32 = 1;

/// The whole interface as one document.
#[must_use]
pub fn schema() -> Value {
    let errors = ErrorCode::known().iter().map(|code| json!({"code": code.number(), "name": code.name()}));
    json!({
        "version": SCHEMA_VERSION,
        "protocol": PROTOCOL,
        "transport": {"framing": "newline", "frame_bytes_max": FRAME_BYTES_MAX, "envelope": "JSON-RPC 2.0"},
        "methods": methods(),
        "notifications": [
            {"name": "changed", "params": trace::of::<Changed>()},
            {"name": "event", "params": trace::of::<EventRow>()},
            {"name": "lagged", "params": trace::of::<Lagged>()},
        ],
        "errors": errors.collect::<Vec<_>>(),
    })
}

fn methods() -> Vec<Value> {
    vec![
        one::<method::Initialize>(),
        one::<method::GetStatus>(),
        one::<method::GetWhy>(),
        one::<method::Explain>(),
        one::<method::GetEvents>(),
        one::<method::Subscribe>(),
        one::<method::SessionStart>(),
        one::<method::SessionStop>(),
        one::<method::SessionActivity>(),
        one::<method::SessionSoftlock>(),
        one::<method::SessionClearSoftlock>(),
        one::<method::SessionRemove>(),
        one::<method::HoldTake>(),
        one::<method::HoldRelease>(),
        one::<method::HoldList>(),
        one::<method::ConfigGet>(),
        one::<method::ConfigSet>(),
        one::<method::ConfigUnset>(),
        one::<method::GetConfigPath>(),
        one::<method::GetConfigSchema>(),
        one::<method::GetDaemonStatus>(),
        one::<method::DaemonStop>(),
        one::<method::DaemonRestart>(),
        one::<method::GetDoctor>(),
    ]
}

fn one<M: Method>() -> Value {
    let scope = match M::SCOPE {
        Scope::Session => "session",
        Scope::Machine => "machine",
    };
    json!({
        "name": M::NAME, "scope": scope, "params": trace::of::<M::Params>(), "result": trace::of::<M::Output>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, Status};

    #[test]
    fn every_method_is_there_in_order() {
        let schema = schema();
        let names: Vec<&str> =
            schema["methods"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
        let expected: Vec<&str> = Call::ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn shapes_are_read_off_the_types() {
        assert_eq!(
            trace::of::<method::SessionStopParams>(),
            json!({
                "type": "object",
                "properties": {
                    "session": {"type": "string"},
                    "message": {"type": ["string", "null"]},
                    "end": {"type": "boolean"},
                },
                "required": ["session"],
            })
        );
        assert_eq!(
            trace::of::<method::SessionStartParams>()["properties"]["agent"]["examples"][0],
            json!("claude")
        );
        let status = trace::of::<Status>();
        let session = &status["properties"]["sessions"]["items"];
        assert_eq!(session["properties"]["since"], json!({"type": "string", "format": "date-time"}));
        assert_eq!(session["properties"]["turn_since"]["type"], json!(["string", "null"]));
        assert_eq!(session["properties"]["background"]["items"]["required"], json!(["id", "kind", "since"]));
        assert!(session["required"].as_array().unwrap().contains(&json!("state")));
        let counters = &trace::of::<method::DaemonStatus>()["properties"]["counters"];
        assert_eq!(counters["additionalProperties"], json!({"type": "integer", "minimum": 0}));
    }
}
