use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use watchkeeper_agents::install::{Instance, McpCommand, Timeouts};
use watchkeeper_core::AgentKind;

use super::{plan::AgentPlan, receipt::Records, target::Snapshot, write::Staged, *};

mod files;

/// A home of its own, with Claude Code and Codex in it.
struct Home {
    folder: TempDir,
    context: Context,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for agent in [".claude", ".codex"] {
            fs::create_dir(at(agent)).unwrap();
        }
        fs::write(at("watchkeeper-hook"), "").unwrap();
        let context = Context {
            home: folder.path().to_owned(),
            path: None,
            variables: [].into(),
            state: at("state"),
            hook_program: at("watchkeeper-hook"),
            instance: Instance::Default,
            timeouts: Timeouts::default(),
            mcp: None,
            only: None,
        };
        Self { folder, context }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn settings(&self) -> PathBuf {
        self.at(".claude/settings.json")
    }

    fn install(&self) -> Report {
        apply(&self.context, plan(&self.context).unwrap()).unwrap()
    }

    fn uninstall(&self) -> Report {
        apply(&self.context, plan_uninstall(&self.context)).unwrap()
    }

    fn state_of(&self, agent: AgentKind) -> AgentStatus {
        status(&self.context).unwrap().into_iter().find(|status| status.agent == agent).unwrap()
    }

    /// Every file and folder below the agents' homes, with its bytes.
    fn picture(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        fn walk(path: &Path, out: &mut Vec<(PathBuf, Option<Vec<u8>>)>) {
            for entry in fs::read_dir(path).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    out.push((path.clone(), None));
                    walk(&path, out);
                } else {
                    out.push((path.clone(), Some(fs::read(&path).unwrap())));
                }
            }
        }
        let mut out = Vec::new();
        for agent in [".claude", ".codex", ".copilot", ".config", ".gemini", ".qwen"] {
            if self.at(agent).exists() {
                walk(&self.at(agent), &mut out);
            }
        }
        out.sort();
        out
    }
}

#[track_caller]
fn check_failed(report: &Report, expected: &str) {
    let [(_, error)] = &report.failed[..] else { panic!("{report:?}") };
    assert!(error.to_string().contains(expected), "{error}");
    assert!(!error.advice().is_empty());
}

#[test]
fn the_mcp_server_is_registered_when_asked_for_and_leaves_no_trace() {
    let mut home = Home::new();
    let servers = home.at(".claude.json");
    let list = "{\n  \"numStartups\": 5,\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  }\n}\n";
    fs::write(&servers, list).unwrap();
    fs::write(home.at(".codex/config.toml"), "model = \"x\"\n").unwrap();
    let before = home.picture();
    home.install();
    assert_eq!(fs::read_to_string(&servers).unwrap(), list, "nobody asked for it");
    let arguments = vec!["mcp".to_owned(), "--capability".to_owned(), "/c".to_owned()];
    home.context.mcp = Some(McpCommand { program: "/w/watchkeeper".to_owned(), arguments });
    let report = home.install();
    assert!(report.failed.is_empty(), "{report:?}");
    assert_eq!(report.done.len(), 2, "{report:?}");
    let file: serde_json::Value = serde_json::from_slice(&fs::read(&servers).unwrap()).unwrap();
    assert_eq!(file["mcpServers"]["watchkeeper"]["command"], "/w/watchkeeper");
    assert_eq!(file["mcpServers"]["other"]["command"], "x");
    let codex = fs::read_to_string(home.at(".codex/config.toml")).unwrap();
    assert!(codex.contains("[mcp_servers.watchkeeper]\ncommand = \"/w/watchkeeper\""), "{codex}");
    assert!(!plan(&home.context).unwrap().changes_anything(), "again: nothing to do");
    assert_eq!(home.state_of(AgentKind::Claude).hooks, HooksState::Current);
    // A later install that does not name it leaves it where it is.
    home.context.mcp = None;
    assert!(!plan(&home.context).unwrap().changes_anything());
    assert!(home.uninstall().failed.is_empty());
    assert_eq!(fs::read_to_string(&servers).unwrap(), list);
    assert_eq!(home.picture(), before);
}

#[test]
fn who_has_no_list_for_the_mcp_server_is_named() {
    let mut home = Home::new();
    fs::create_dir(home.at(".copilot")).unwrap();
    let named = |home: &Home| {
        let plan = plan(&home.context).unwrap();
        let has_note =
            |agent: &&AgentPlan| agent.notes.iter().any(|note| note.contains("not registered here"));
        plan.agents.iter().filter(has_note).map(|agent| agent.agent).collect::<Vec<_>>()
    };
    assert_eq!(named(&home), []);
    home.context.mcp = Some(McpCommand { program: "/w/watchkeeper".to_owned(), arguments: Vec::new() });
    assert_eq!(named(&home), [AgentKind::Copilot]);
    home.install();
    assert_eq!(named(&home), [AgentKind::Copilot], "also when its hooks are there already");
}

#[test]
fn the_mcp_list_moves_with_its_agent_and_a_broken_one_is_refused() {
    let mut home = Home::new();
    fs::create_dir(home.at("moved")).unwrap();
    home.context.variables = [("CLAUDE_CONFIG_DIR", home.at("moved").into_os_string())].into();
    home.context.only = Some(vec![AgentKind::Claude]);
    fs::write(home.at("moved/.claude.json"), "{ broken").unwrap();
    // Not asked for: whatever its shape, it is nobody's concern.
    assert!(home.install().failed.is_empty());
    home.context.mcp = Some(McpCommand { program: "/w/watchkeeper".to_owned(), arguments: Vec::new() });
    let refused = plan(&home.context).unwrap();
    assert!(refused.refusals().any(|(_, error)| error.to_string().contains("is not valid JSON")));
    fs::remove_file(home.at("moved/.claude.json")).unwrap();
    assert!(home.install().failed.is_empty());
    assert!(home.at("moved/.claude.json").exists() && !home.at(".claude.json").exists());
    assert!(home.uninstall().failed.is_empty());
    assert!(!home.at("moved/.claude.json").exists());
}

#[test]
fn install_and_uninstall_leave_no_trace() {
    let home = Home::new();
    fs::write(home.settings(), "{\r\n\t\"a\": 1, // mine\r\n}").unwrap();
    fs::write(home.at(".codex/config.toml"), "[features]\nhooks = false # off\n").unwrap();
    let before = home.picture();

    let report = home.install();
    assert!(report.failed.is_empty(), "{report:?}");
    assert_eq!(report.done.len(), 3);
    assert!(fs::read_to_string(home.at(".codex/config.toml")).unwrap().contains("hooks = true # off"));
    assert_eq!(home.state_of(AgentKind::Claude).hooks, HooksState::Current);
    assert!(home.state_of(AgentKind::Claude).is_working());
    let installed = home.picture();
    let again = plan(&home.context).unwrap();
    assert!(!again.changes_anything());
    assert_eq!(apply(&home.context, again).unwrap().done.len(), 0);
    assert_eq!(home.picture(), installed);

    let report = home.uninstall();
    assert!(report.failed.is_empty(), "{report:?}");
    assert_eq!(home.picture(), before);
    assert_eq!(home.state_of(AgentKind::Claude).hooks, HooksState::Missing);
    assert!(!plan_uninstall(&home.context).changes_anything());
    assert_eq!(home.uninstall().done.len(), 0);
    assert_eq!(home.picture(), before);
}

#[test]
fn folders_that_were_created_go_too() {
    let mut home = Home::new();
    home.context.only = Some(vec![AgentKind::Copilot]);
    let before = home.picture();
    assert_eq!(home.install().done.len(), 1);
    assert!(home.at(".copilot/hooks/watchkeeper.json").is_file());
    // An upgrade must not forget them.
    home.context.hook_program = home.at("new/watchkeeper-hook");
    fs::create_dir(home.at("new")).unwrap();
    fs::write(home.at("new/watchkeeper-hook"), "").unwrap();
    assert_eq!(home.install().done.len(), 1);
    assert_eq!(home.uninstall().done.len(), 1);
    assert_eq!(home.picture(), before);
}

#[test]
fn every_agent_is_wired_up_and_let_go_again() {
    let mut home = Home::new();
    let all = watchkeeper_agents::install::ALL.map(|installer| installer.agent);
    home.context.only = Some(all.to_vec());
    fs::create_dir(home.at(".gemini")).unwrap();
    fs::write(home.at(".gemini/settings.json"), "{\n  \"ui\": {} // mine\n}").unwrap();
    let before = home.picture();
    let report = home.install();
    assert!(report.failed.is_empty(), "{report:?}");
    for file in [".config/opencode/plugin/watchkeeper.js", ".gemini/settings.json", ".qwen/settings.json"] {
        assert!(fs::read_to_string(home.at(file)).unwrap().contains("watchkeeper-hook"), "{file}");
    }
    for agent in all.into_iter().filter(|agent| *agent != AgentKind::Codex) {
        assert!(home.state_of(agent).is_working(), "{:?}", home.state_of(agent));
    }
    assert!(!plan(&home.context).unwrap().changes_anything());
    assert!(home.uninstall().failed.is_empty());
    assert_eq!(home.picture(), before);
}

#[test]
fn a_plugin_of_somebody_else_is_left_alone() {
    let mut home = Home::new();
    home.context.only = Some(vec![AgentKind::OpenCode]);
    let plugin = home.at(".config/opencode/plugin/watchkeeper.js");
    fs::create_dir_all(plugin.parent().unwrap()).unwrap();
    fs::write(&plugin, "export const mine = 1;\n").unwrap();
    let before = home.picture();
    check_failed(&home.install(), "somebody else wrote it");
    assert_eq!(home.state_of(AgentKind::OpenCode).hooks, HooksState::Broken);
    assert!(home.uninstall().failed.is_empty());
    assert_eq!(home.picture(), before);
    // A receipt of ours does not make a later file of theirs ours.
    fs::remove_file(&plugin).unwrap();
    assert_eq!(home.install().done.len(), 1);
    fs::write(&plugin, "export const mine = 1;\n").unwrap();
    assert!(home.uninstall().failed.is_empty());
    assert_eq!(home.picture(), before);
}

#[test]
fn a_variable_may_name_the_folder_above() {
    let mut home = Home::new();
    home.context.only = Some(vec![AgentKind::Gemini, AgentKind::OpenCode]);
    let moved = home.at("moved").into_os_string();
    home.context.variables = [("GEMINI_CLI_HOME", moved.clone()), ("XDG_CONFIG_HOME", moved)].into();
    assert_eq!(home.install().done.len(), 2);
    assert!(home.at("moved/.gemini/settings.json").is_file());
    assert!(home.at("moved/opencode/plugin/watchkeeper.js").is_file());
}

#[test]
fn agents_that_are_not_here_are_left_out() {
    let home = Home::new();
    let plan = plan(&home.context).unwrap();
    assert_eq!(plan.absent, [AgentKind::Copilot, AgentKind::OpenCode, AgentKind::Gemini, AgentKind::Qwen]);
    assert_eq!(
        plan.agents.iter().map(|agent| agent.agent).collect::<Vec<_>>(),
        [AgentKind::Claude, AgentKind::Codex]
    );
}

#[test]
fn a_program_on_path_is_found() {
    let mut home = Home::new();
    let bin = home.at("bin");
    fs::create_dir(&bin).unwrap();
    let name = if cfg!(windows) { "copilot.cmd" } else { "copilot" };
    fs::write(bin.join(name), "").unwrap();
    home.context.path = Some(bin.clone().into_os_string());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert!(!home.state_of(AgentKind::Copilot).present, "not executable");
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let found = home.state_of(AgentKind::Copilot);
    assert_eq!(found.program, Some(bin.join(name)));
    assert!(found.present);
}

#[test]
fn variables_move_the_homes_and_receipts_remember_them() {
    let mut home = Home::new();
    home.context.variables = [("CLAUDE_CONFIG_DIR", home.at("moved").into_os_string())].into();
    fs::create_dir(home.at("moved")).unwrap();
    home.install();
    assert!(home.at("moved/settings.json").is_file());
    assert!(!home.settings().exists());
    home.context.variables.clear();
    home.uninstall();
    assert!(!home.at("moved/settings.json").exists());
}

#[test]
fn what_others_wrote_since_stays() {
    let home = Home::new();
    fs::write(home.settings(), "{\n  \"a\": 1\n}\n").unwrap();
    home.install();
    let edited = fs::read_to_string(home.settings()).unwrap().replace("\"a\": 1", "\"b\": 2");
    fs::write(home.settings(), edited).unwrap();
    home.uninstall();
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), "{\n  \"b\": 2\n}\n");
}

#[test]
fn an_upgrade_after_somebody_else_wrote_can_be_undone() {
    let mut home = Home::new();
    fs::write(home.settings(), "{\"a\": 1}").unwrap();
    home.install();
    let edited = fs::read_to_string(home.settings()).unwrap().replace("\"a\": 1", "\"b\": 2");
    fs::write(home.settings(), edited).unwrap();
    home.context.timeouts.stop_s += 1;
    let plan = plan(&home.context).unwrap();
    let notes = plan.agents.iter().flat_map(|agent| &agent.notes);
    assert!(notes.into_iter().any(|note| note.contains("are replaced")));
    apply(&home.context, plan).unwrap();
    home.uninstall();
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), "{\"b\": 2}");
}

#[test]
fn broken_files_are_refused_and_the_rest_is_done() {
    let home = Home::new();
    fs::write(home.settings(), "{\"a\": 1,, }").unwrap();
    let report = home.install();
    check_failed(&report, "settings.json is left alone: it is not valid JSON: line 1, column 9");
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), "{\"a\": 1,, }");
    assert!(home.at(".codex/hooks.json").is_file());
    let status = home.state_of(AgentKind::Claude);
    assert_eq!(status.hooks, HooksState::Broken);
    assert!(status.files[0].problem.as_ref().unwrap().contains("not valid JSON"));

    // Not UTF-8, and a wrong type.
    fs::write(home.settings(), b"{\"a\": \"\xff\"}").unwrap();
    check_failed(&home.install(), "it is not UTF-8 text (byte 7)");
    fs::write(home.settings(), "{\"hooks\": 3}").unwrap();
    check_failed(&home.install(), "'hooks' in it is a number, not an object");
}

#[test]
fn an_agent_is_wired_up_as_a_whole_or_not_at_all() {
    let home = Home::new();
    fs::write(home.at(".codex/config.toml"), "[features\n").unwrap();
    let report = home.install();
    assert_eq!(report.failed.len(), 2, "{report:?}");
    assert!(!home.at(".codex/hooks.json").exists());
}

#[test]
fn the_diff_shows_what_changes_and_sends_no_control_characters() {
    let home = Home::new();
    fs::write(home.settings(), "{\n  \"a\": 1 // \u{1b}[31m\n}\n").unwrap();
    let plan = plan(&home.context).unwrap();
    let diff = plan.agents[0].files[0].diff();
    assert!(diff.contains("-  \"a\": 1 // \\u{1b}[31m\n+  \"a\": 1, // \\u{1b}[31m\n"), "{diff}");
    assert!(diff.contains("+    \"Stop\": [{\"hooks\": ["), "{diff}");
    assert!(!diff.contains('\u{1b}'));
    let new = plan.agents[1].files[0].diff();
    assert!(new.starts_with("--- /dev/null\n"), "{new}");
    assert_eq!(plan.agents[1].files[1].diff(), "");
}

#[test]
fn codex_says_what_it_does_not_trust() {
    let home = Home::new();
    let before = plan(&home.context).unwrap();
    assert!(before.agents[1].notes.iter().any(|note| note.contains("Trust all and continue")));
    apply(&home.context, before).unwrap();
    let status = home.state_of(AgentKind::Codex);
    assert_eq!((status.hooks, status.untrusted.len()), (HooksState::Current, 12));
    assert!(!status.is_working());
    // Reviewed in another form: Codex asks again.
    let hooks = home.at(".codex/hooks.json");
    let reviewed = format!("[hooks.state.\"{}:stop:0:0\"]\ntrusted_hash = \"sha256:0\"\n", hooks.display());
    fs::write(home.at(".codex/config.toml"), reviewed).unwrap();
    let status = home.state_of(AgentKind::Codex);
    assert_eq!((status.untrusted.len(), status.changed_since_review), (11, vec!["Stop".to_owned()]));
}

#[test]
fn what_keeps_hooks_from_running_is_said() {
    let home = Home::new();
    fs::write(home.settings(), "{\"disableAllHooks\": true}").unwrap();
    fs::write(home.at(".codex/hooks.json"), "{} // mine").unwrap();
    let plan = plan(&home.context).unwrap();
    for (agent, why) in plan.agents.iter().zip(["disableAllHooks is true", "it is not plain JSON"]) {
        assert!(agent.notes.iter().any(|note| note.contains(why)), "{:?}", agent.notes);
    }
    apply(&home.context, plan).unwrap();
    assert!(!home.state_of(AgentKind::Claude).is_working());
}

#[test]
fn a_gemini_hook_that_its_person_switched_off_is_said() {
    let mut home = Home::new();
    home.context.only = Some(vec![AgentKind::Gemini]);
    fs::create_dir(home.at(".gemini")).unwrap();
    home.install();
    let settings = home.at(".gemini/settings.json");
    let mut text: serde_json::Value = serde_json::from_slice(&fs::read(&settings).unwrap()).unwrap();
    let command = &text["hooks"]["AfterAgent"][0]["hooks"][0]["command"];
    text["hooksConfig"] = serde_json::json!({ "disabled": [command] });
    fs::write(&settings, text.to_string()).unwrap();
    let status = home.state_of(AgentKind::Gemini);
    assert_eq!((status.hooks, &status.switched_off), (HooksState::Current, &vec!["AfterAgent".to_owned()]));
    assert!(!status.is_working());
    let plan = plan(&home.context).unwrap();
    assert!(plan.agents[0].notes.iter().any(|note| note.contains("switches off AfterAgent")), "{plan:?}");
}

#[test]
fn a_missing_hook_program_is_said() {
    let home = Home::new();
    home.install();
    fs::remove_file(home.at("watchkeeper-hook")).unwrap();
    assert!(home.state_of(AgentKind::Claude).hook_program_missing);
    assert!(matches!(plan(&home.context), Err(ContextError::NoHookProgram { .. })));
    // What cannot be installed can still be taken out.
    assert_eq!(home.uninstall().done.len(), 2);
}

#[test]
fn the_second_installation_waits_its_turn() {
    let home = Home::new();
    let plan = plan(&home.context).unwrap();
    let lock = Records::of(&home.context).lock().unwrap();
    assert!(matches!(apply(&home.context, plan), Err(InstallError::Busy { .. })));
    drop(lock);
    assert_eq!(home.install().done.len(), 2);
}

#[test]
fn backups_are_kept_and_bounded() {
    let mut home = Home::new();
    fs::write(home.settings(), "{\"a\": 1}").unwrap();
    let report = home.install();
    let copy = report.done[0].backup.clone().unwrap();
    assert_eq!(fs::read_to_string(copy).unwrap(), "{\"a\": 1}");
    for round in 0..25 {
        home.context.timeouts.stop_s = 1000 + round;
        home.install();
    }
    let copies = fs::read_dir(home.at("state/install/backups"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with("settings.json"));
    assert_eq!(copies.count(), 20);
    home.uninstall();
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), "{\"a\": 1}");
}
