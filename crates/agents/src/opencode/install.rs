//! OpenCode's plugin: one file of our own in its plugin folder, with the hook's command line in it.

use watchkeeper_core::AgentKind;

use crate::install::{ConfigFile, Home, Installer, OwnFile, Wiring};

/// What stands for the hook's command line in the plugin's text.
const COMMAND: &str = "[\"watchkeeper-hook\", \"opencode\"]";

static PLUGIN: OwnFile = OwnFile {
    path: "plugin/watchkeeper.js",
    what: "plugin",
    mark: "// watchkeeper plugin for OpenCode",
    text: plugin,
};

static FILES: &[&dyn ConfigFile] = &[&PLUGIN];

fn plugin(wiring: &Wiring) -> String {
    let words = serde_json::Value::from(wiring.words(&AgentKind::OpenCode)).to_string();
    include_str!("plugin.js").replacen(COMMAND, &words, 1)
}

/// OpenCode's installer.
#[derive(Debug)]
pub struct OpenCodeInstall;

impl Installer for OpenCodeInstall {
    fn agent(&self) -> AgentKind {
        AgentKind::OpenCode
    }

    fn home(&self) -> Home {
        Home { variable: "XDG_CONFIG_HOME", below: "opencode", default: ".config/opencode" }
    }

    fn programs(&self) -> &'static [&'static str] {
        &["opencode"]
    }

    fn files(&self) -> &'static [&'static dyn ConfigFile] {
        FILES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{Instance, Shell, Timeouts};

    #[test]
    fn the_command_line_is_the_plugins() {
        let wiring = Wiring {
            program: "/opt/\"w\\k/watchkeeper-hook".to_owned(),
            instance: Instance::Home("/h `x`".to_owned()),
            timeouts: Timeouts::default(),
            shell: Shell::Posix,
        };
        let text = plugin(&wiring);
        let line = text.lines().find_map(|line| line.strip_prefix("const COMMAND = ")).unwrap();
        let words: Vec<String> = serde_json::from_str(line.trim_end_matches(';')).unwrap();
        assert_eq!(words, ["/opt/\"w\\k/watchkeeper-hook", "--home", "/h `x`", "opencode"]);
        assert!(text.starts_with(PLUGIN.mark) && !text.contains(COMMAND));
    }
}
