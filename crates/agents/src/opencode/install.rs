//! OpenCode's plugin: one file of our own in its plugin folder, with the hook's command line in it.

use watchkeeper_core::AgentKind;

use crate::install::{Home, Installer, OwnFile, Wiring};

/// What stands for the hook's command line in the plugin's text.
const COMMAND: &str = "[\"watchkeeper-hook\", \"opencode\"]";
/// What stands for the folder in which it hands payloads over.
const FOLDER: &str = "const FOLDER = \".\";";

static PLUGIN: OwnFile = OwnFile {
    path: "plugin/watchkeeper.js",
    what: "plugin",
    mark: "// watchkeeper plugin for OpenCode",
    text: plugin,
};

fn plugin(wiring: &Wiring) -> String {
    let words = serde_json::Value::from(wiring.words(&AgentKind::OpenCode)).to_string();
    let folder = format!("const FOLDER = {};", serde_json::Value::from(wiring.state.as_str()));
    include_str!("plugin.js").replacen(COMMAND, &words, 1).replacen(FOLDER, &folder, 1)
}

/// OpenCode's installer.
pub static INSTALLER: Installer = Installer {
    agent: AgentKind::OpenCode,
    home: Home { variable: "XDG_CONFIG_HOME", below: "opencode", default: ".config/opencode" },
    programs: &["opencode"],
    files: &[&PLUGIN],
    notes: &[],
    trust: None,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{Instance, Shell, Timeouts};

    #[test]
    fn the_command_line_and_the_folder_are_the_plugins() {
        let wiring = Wiring {
            program: "/opt/\"w\\k/watchkeeper-hook".to_owned(),
            instance: Instance::Home("/h `x`".to_owned()),
            state: "/s \"t\"".to_owned(),
            timeouts: Timeouts::default(),
            shell: Shell::Posix,
            mcp: None,
        };
        let text = plugin(&wiring);
        let line = text.lines().find_map(|line| line.strip_prefix("const COMMAND = ")).unwrap();
        let words: Vec<String> = serde_json::from_str(line.trim_end_matches(';')).unwrap();
        assert_eq!(words, ["/opt/\"w\\k/watchkeeper-hook", "--home", "/h `x`", "opencode"]);
        assert!(text.contains("\nconst FOLDER = \"/s \\\"t\\\"\";\n"), "{text}");
        assert!(text.starts_with(PLUGIN.mark) && !text.contains(COMMAND) && !text.contains(FOLDER));
    }
}
