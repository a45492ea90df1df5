//! The reference pages agree with the code.
#![expect(clippy::unwrap_used, reason = "what a test cannot go on without fails it")]

use std::{fs, path::PathBuf, process::Command};

use watchkeeper_daemon::config;

fn document(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn configuration_lists_every_setting() {
    let mut expected = String::from(
        "| Setting | Takes | Default | Environment | Meaning |\n| --- | --- | --- | --- | --- |\n",
    );
    for setting in config::schema().settings {
        let (key, range, default) = (setting.key, setting.range, setting.default);
        expected +=
            &format!("| `{key}` | {range} | `{default}` | `{}` | {} |\n", setting.environment, setting.doc);
    }
    let page = document("configuration.md");
    let (_, rest) = page.split_once("<!-- settings: begin -->\n").unwrap();
    let (table, _) = rest.split_once("<!-- settings: end -->").unwrap();
    assert_eq!(table, expected, "docs/configuration.md must have this table:\n{expected}");
}

#[test]
fn cli_names_every_command_and_option() {
    let page = document("cli.md");
    check("", &page);
    for group in ["config", "daemon", "hooks", "api"] {
        check(group, &page);
    }
}

/// Every command of the help text is named in the page.
fn check(group: &str, page: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    let output = command.args((!group.is_empty()).then_some(group)).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let names: Vec<&str> = commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .collect();
    assert!(!names.is_empty(), "{help}");
    for name in names {
        let shown = if group.is_empty() { format!("`{name}") } else { name.to_owned() };
        assert!(page.contains(&shown), "docs/cli.md does not name '{group} {name}'");
    }
}
