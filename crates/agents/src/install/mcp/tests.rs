use super::*;
use crate::install::{Instance, Shell, Timeouts};

const JSON: JsonServers =
    JsonServers { path: ".claude.json", default_path: ".claude.json", member: "mcpServers" };
const TOML: SwitchAndServers =
    SwitchAndServers { switch: FeatureSwitch { path: "config.toml", table: "features", keys: &["hooks"] } };

fn wiring(arguments: &[&str]) -> Wiring {
    Wiring {
        state: "/state".to_owned(),
        program: "/w/watchkeeper-hook".to_owned(),
        instance: Instance::Default,
        timeouts: Timeouts::default(),
        shell: Shell::Posix,
        mcp: Some(McpCommand {
            program: "/a \"b\"/watchkeeper".to_owned(),
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
        }),
    }
}

fn written(edit: Edit) -> String {
    match edit {
        Edit::Write(text) => text,
        other @ (Edit::Keep | Edit::Delete) => panic!("{other:?}"),
    }
}

/// Merges twice, replaces, and takes out again: what was there comes back byte for byte.
fn check(file: &dyn ConfigFile, before: &str) -> String {
    let after = written(file.install(Some(before), &wiring(&["mcp", "--capability", "/c"])).unwrap());
    assert_eq!(file.install(Some(&after), &wiring(&["mcp", "--capability", "/c"])).unwrap(), Edit::Keep);
    let replaced = written(file.install(Some(&after), &wiring(&["mcp"])).unwrap());
    assert_ne!(replaced, after);
    for text in [&after, &replaced] {
        let back = written(file.remove(Some(text), Some(Original::Text(before))).unwrap());
        assert_eq!(back, before, "{text}");
    }
    let none = Wiring { mcp: None, ..wiring(&[]) };
    assert_eq!(file.install(Some(&after), &none).unwrap(), Edit::Keep, "not asked for: left as it is");
    after
}

#[test]
fn json_comes_back_byte_for_byte() {
    check(&JSON, "{}");
    check(&JSON, "{\n  \"numStartups\": 5,\n  \"projects\": {\"/x\": {\"mcpServers\": {}}}\n}\n");
    check(&JSON, "{\"mcpServers\":{}}");
    check(
        &JSON,
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"other\": {\"command\": \"x\"}\r\n\t},\r\n\t\"z\": 1e5\r\n}",
    );
    let after = check(&JSON, "\u{feff}{\"a\": 1}");
    assert!(after.starts_with('\u{feff}'), "{after}");
    let file: Value = serde_json::from_str(&check(&JSON, "{\"a\":1}")).unwrap();
    let entry =
        json!({"type": "stdio", "command": "/a \"b\"/watchkeeper", "args": ["mcp", "--capability", "/c"]});
    assert_eq!(file, json!({"a": 1, "mcpServers": {"watchkeeper": entry}}));
}

#[test]
fn toml_comes_back_byte_for_byte() {
    check(&TOML, "model = \"x\"\n");
    check(&TOML, "[mcp_servers.other]\ncommand = \"x\"\n\n[features]\nhooks = true\n");
    check(&TOML, "model = \"x\"\r\n[features]\r\nhooks = true\r\n");
    let after = check(&TOML, "a = 1979-05-27T07:32:00Z\n# the end\n");
    assert!(after.ends_with("\n\n[mcp_servers.watchkeeper]\ncommand = '/a \"b\"/watchkeeper'\nargs = [\"mcp\", \"--capability\", \"/c\"]\n"), "{after}");
    // The switch is turned on, and off again, beside it.
    let after = check(&TOML, "[features]\nhooks = false\n");
    assert!(after.contains("hooks = true"), "{after}");
}

#[test]
fn new_files_go_as_a_whole() {
    for file in [&JSON as &dyn ConfigFile, &TOML] {
        let after = written(file.install(None, &wiring(&["mcp"])).unwrap());
        assert_eq!(file.remove(Some(&after), Some(Original::Absent)).unwrap(), Edit::Delete, "{after}");
    }
}

#[test]
fn what_the_agent_added_meanwhile_stays() {
    let after = written(JSON.install(Some("{\"a\": 1}"), &wiring(&["mcp"])).unwrap());
    let grown = after.replacen("\"a\": 1", "\"a\": 2, \"b\": 3", 1);
    let left = written(JSON.remove(Some(&grown), Some(Original::Text("{\"a\": 1}"))).unwrap());
    assert_eq!(left, "{\"a\": 2, \"b\": 3}");
    let after = written(TOML.install(Some("a = 1\n"), &wiring(&["mcp"])).unwrap());
    let grown = format!(
        "{after}enabled = true\n\n[mcp_servers.watchkeeper.env]\nX = \"1\"\n\n# mine\n[projects.\"/x\"]\ntrust = 1\n"
    );
    let left = written(TOML.remove(Some(&grown), Some(Original::Text("a = 1\n"))).unwrap());
    assert_eq!(left, "a = 1\n\n# mine\n[projects.\"/x\"]\ntrust = 1\n");
}

#[test]
fn foreign_and_odd_files_are_left_alone() {
    let json = |text: &str| JSON.install(Some(text), &wiring(&["mcp"])).unwrap_err();
    assert!(matches!(json("{\"mcpServers\": []}"), Refusal::WrongType { .. }));
    assert!(matches!(json("[]"), Refusal::WrongType { .. }));
    assert!(matches!(json("{\"mcpServers\": "), Refusal::Broken { .. }));
    let foreign = "{\"mcpServers\": {\"watchkeeper\": {\"command\": \"/x/another\"}}}";
    assert_eq!(json(foreign), Refusal::Foreign);
    assert_eq!(JSON.remove(Some(foreign), None).unwrap(), Edit::Keep);
    for never_ours in ["{ broken", "{\"projects\": {\"/x/watchkeeper\": {}}, broken"] {
        assert_eq!(JSON.remove(Some(never_ours), None).unwrap(), Edit::Keep);
    }
    let broken = "{\"mcpServers\": {\"watchkeeper\": {\"command\": \"/w/watchkeeper\"}}, broken";
    assert!(matches!(JSON.remove(Some(broken), None).unwrap_err(), Refusal::Broken { .. }));
    let toml = |text: &str| TOML.install(Some(text), &wiring(&["mcp"])).unwrap_err();
    assert_eq!(toml("mcp_servers = { other = { command = \"x\" } }\n"), Refusal::Unfaithful);
    assert_eq!(toml("[mcp_servers.watchkeeper]\ncommand = \"/x/another\"\n"), Refusal::Foreign);
    assert!(matches!(toml("[features\n"), Refusal::Broken { .. }));
    // Two of the same name: whichever the agent takes, it is not for us to guess.
    let twice = "{\"mcpServers\": {}, \"mcpServers\": {\"x\": 1}}";
    assert_eq!(json(twice), Refusal::Unfaithful);
}
