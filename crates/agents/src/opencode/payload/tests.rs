use super::*;
use serde_json::json;

/// What an event says as short words, with the session it says it of.
fn check(event: &str, payload: Value, expected: &[&str]) {
    let parsed = parse(Some(event), payload.to_string().as_bytes());
    let say = |o: &crate::Observation| {
        let session = o.session.as_deref().unwrap_or_default();
        format!("{session} {:?} {:?}", o.thread, o.body)
    };
    let said: Vec<String> = parsed.observations.iter().map(say).collect();
    assert_eq!(said, expected, "{event} {payload}");
    assert_eq!(parsed.malformed, None, "{event} {payload}");
}

fn event(properties: Value) -> Value {
    json!({ "id": "evt", "properties": properties })
}

#[test]
fn a_child_is_its_parents_work() {
    let info = |parent: Value| {
        event(json!({ "sessionID": "c", "info": { "id": "c", "parentID": parent, "title": "t" } }))
    };
    check("session.created", info(Value::Null), &["c Main SessionStarted { cause: Startup }"]);
    check(
        "session.created",
        info(json!("p")),
        &[r#"p Main WorkStarted { id: "c", what: Subagent, label: Some("t"), process: None }"#],
    );
    check("session.updated", info(json!("p")), &[r#"p Subagent("c") Displayed { what: "session.updated" }"#]);
    let idle = event(json!({ "sessionID": "c" }));
    check(
        "session.idle",
        idle,
        &[r#"c Main WorkFinished { id: "c", cause: Completed }"#, "c Main IdleNoticed"],
    );
}

#[test]
fn a_placeholder_is_no_title() {
    let title = |title: &str| {
        let payload = event(json!({ "info": { "id": "s", "title": title } })).to_string();
        parse(Some("session.updated"), payload.as_bytes()).observations.remove(0).facts.title
    };
    assert_eq!(title("New session - 2026-11-30T08:15:28.737Z"), None);
    assert_eq!(title("mend the door").as_deref(), Some("mend the door"));
}

#[test]
fn prompts_of_a_person_and_of_work() {
    let message = |text: &str, synthetic: bool| {
        let parts = json!([{ "type": "text", "text": text, "synthetic": synthetic }]);
        json!({ "input": { "sessionID": "s" }, "output": { "message": { "id": "m" }, "parts": parts } })
    };
    let said = |text: &str, origin: &str| {
        format!("s Main Started {{ prompt: Some(Prompt {{ text: {text:?}, origin: {origin} }}) }}")
    };
    check("chat.message", message("hi", false), &[&said("hi", "Person")]);
    let result = "<task id=\"c\" state=\"completed\">";
    let ended = r#"s Main WorkFinished { id: "c", cause: Completed }"#;
    check("chat.message", message(result, true), &[&said(result, "Work"), ended]);
    // A person who types it ends nothing.
    check("chat.message", message(result, false), &[&said(result, "Person")]);
    let turn = parse(Some("chat.message"), message("hi", false).to_string().as_bytes());
    assert_eq!(turn.observations[0].turn, Some(TurnId("m".to_owned())));
}

#[test]
fn statuses() {
    let status = |kind: &str| event(json!({ "sessionID": "s", "status": { "type": kind } }));
    check("session.status", status("busy"), &["s Main Activity { what: ModelOutput }"]);
    check("session.status", status("retry"), &["s Main Activity { what: Progress }"]);
    check(
        "session.status",
        status("idle"),
        &[
            r#"s Main WorkFinished { id: "s", cause: Completed }"#,
            "s Main Stopped { final_message: None, can_continue: true, continued: false, live: None }",
        ],
    );
    let error = |name: &str| event(json!({ "sessionID": "s", "error": { "name": name } }));
    check(
        "session.error",
        error("MessageAbortedError"),
        &["s Main Aborted { tools_to_work: false, call: None }"],
    );
    check(
        "session.error",
        error("APIError"),
        &[r#"s Main Failed { message: Some("APIError"), fatal: false }"#],
    );
    check("session.error", event(json!({ "error": { "name": "x" } })), &[]);
}

#[test]
fn what_cannot_be_answered_asks_nobody() {
    let question = |event: &str, said: Value, unanswerable: bool| {
        let payload = json!({ "properties": said, "unanswerable": unanswerable }).to_string();
        parse(Some(event), payload.as_bytes()).question
    };
    let idle = json!({ "sessionID": "s", "status": { "type": "idle" } });
    let asked = json!({ "sessionID": "s", "id": "q" });
    assert_eq!(question("session.status", idle.clone(), false), Some(HookQuestion::Stop));
    assert_eq!(question("permission.asked", asked.clone(), false), Some(HookQuestion::Permission));
    assert_eq!(question("session.status", idle.clone(), true), None);
    assert_eq!(question("permission.asked", asked, true), None);
    check(
        "session.status",
        json!({ "properties": idle, "unanswerable": true }),
        &[
            r#"s Main WorkFinished { id: "s", cause: Completed }"#,
            "s Main Stopped { final_message: None, can_continue: false, continued: false, live: None }",
        ],
    );
}

#[test]
fn dialogs_of_both_generations() {
    for (asked, replied, reason) in [
        ("permission.asked", "permission.replied", "permission_prompt"),
        ("permission.v2.asked", "permission.v2.replied", "permission_prompt"),
        ("question.asked", "question.rejected", "question"),
        ("question.v2.asked", "question.v2.replied", "question"),
        ("form.created", "form.cancelled", "elicitation_dialog"),
    ] {
        let lock = format!(r#"s Main SoftLocked {{ reason: "{reason}", subject: Question("q") }}"#);
        check(asked, event(json!({ "sessionID": "s", "id": "q" })), &[&lock]);
        let answer = event(json!({ "sessionID": "s", "requestID": "q" }));
        check(replied, answer, &[r#"s Main LockResolved { subject: Question("q") }"#]);
    }
}

#[test]
fn calls_and_the_work_they_leave() {
    let before = json!({ "input": { "tool": "task", "sessionID": "s", "callID": "k" }, "output": {} });
    check("tool.execute.before", before, &[r#"s Main ToolStarted { id: "k", name: "task" }"#]);
    let question = json!({ "input": { "tool": "question", "sessionID": "s", "callID": "k" }, "output": {} });
    check(
        "tool.execute.before",
        question,
        &[
            r#"s Main ToolStarted { id: "k", name: "question" }"#,
            r#"s Main SoftLocked { reason: "question", subject: Tool("k") }"#,
        ],
    );
    let after = |output: &str| json!({ "input": { "tool": "task", "sessionID": "s", "callID": "k" }, "output": { "output": output } });
    let ended = r#"s Main ToolFinished { id: "k", name: "task", failed: false }"#;
    check(
        "tool.execute.after",
        after("<task id=\"c\" state=\"running\">"),
        &[r#"s Main WorkStarted { id: "c", what: Subagent, label: None, process: None }"#, ended],
    );
    check(
        "tool.execute.after",
        after("<task id=\"c\" state=\"completed\">"),
        &[r#"s Main WorkFinished { id: "c", cause: Completed }"#, ended],
    );
    let part = |status: &str| {
        let part = json!({ "type": "tool", "tool": "t", "callID": "k", "state": { "status": status } });
        event(json!({ "sessionID": "s", "part": part }))
    };
    check(
        "message.part.updated",
        part("error"),
        &[r#"s Main ToolFinished { id: "k", name: "t", failed: true }"#],
    );
    check("message.part.updated", part("running"), &["s Main Activity { what: Progress }"]);
}

#[test]
fn what_says_nothing_and_what_nobody_knows() {
    check("dispose", json!({}), &[]);
    check("message.updated", event(json!({ "sessionID": "s" })), &[]);
    let later = parse(Some("session.dreamt"), event(json!({ "sessionID": "s" })).to_string().as_bytes());
    assert_eq!(later.unknown, ["session.dreamt"]);
    assert!(parse(Some("session.dreamt"), b"{}").malformed.is_some());
    assert!(parse(Some("dispose"), b"").malformed.is_none());
}
