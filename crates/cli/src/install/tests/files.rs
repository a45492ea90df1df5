//! Links, permissions, writers in between, and runs that die half-way.

use super::*;

#[test]
fn a_change_between_showing_and_doing_is_noticed() {
    let home = Home::new();
    fs::write(home.settings(), "{\"a\": 1}").unwrap();
    let plan = plan(&home.context).unwrap();
    fs::write(home.settings(), "{\"a\": 2}").unwrap();
    let report = apply(&home.context, plan).unwrap();
    check_failed(&report, "somebody changed it after the changes were shown");
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), "{\"a\": 2}");
    // The receipt of the write that did not happen does no harm.
    assert_eq!(home.uninstall().failed.len(), 0);
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), "{\"a\": 2}");
}

#[test]
fn a_file_that_appears_between_showing_and_doing_is_not_overwritten() {
    let home = Home::new();
    let plan = plan(&home.context).unwrap();
    fs::write(home.settings(), "{\"a\": 2}").unwrap();
    check_failed(&apply(&home.context, plan).unwrap(), "somebody changed it");
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), "{\"a\": 2}");

    let home = Home::new();
    home.install();
    let removal = plan_uninstall(&home.context);
    let edited = fs::read_to_string(home.settings()).unwrap() + "// mine\n";
    fs::write(home.settings(), &edited).unwrap();
    check_failed(&apply(&home.context, removal).unwrap(), "somebody changed it");
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), edited);
}

/// Every step of a run, each followed by a kill, then an uninstallation and an installation by the next run.
#[test]
fn a_kill_at_any_step_is_repaired_by_the_next_run() {
    let original = "{\n  \"a\": 1\n}\n";
    for killed_after in ["nothing", "backup", "receipt", "staging", "rename"] {
        for first in [Action::Uninstall, Action::Install] {
            let home = Home::new();
            fs::write(home.settings(), original).unwrap();
            kill_during_install(&home, killed_after);
            if first == Action::Install {
                let report = home.install();
                assert!(report.failed.is_empty(), "{report:?}");
                assert_eq!(home.state_of(AgentKind::Claude).hooks, HooksState::Current, "{killed_after}");
            }
            let report = home.uninstall();
            assert!(report.failed.is_empty(), "{report:?}");
            assert_eq!(fs::read_to_string(home.settings()).unwrap(), original, "{killed_after}");
        }
    }
}

fn kill_during_install(home: &Home, killed_after: &str) {
    let plan = plan(&home.context).unwrap();
    let claude = plan.agents.into_iter().find(|agent| agent.agent == AgentKind::Claude).unwrap();
    let [file] = <[FilePlan; 1]>::try_from(claude.files).unwrap();
    let (before, receipt) = file.into_parts();
    let records = Records::of(&home.context);
    if killed_after == "nothing" {
        return;
    }
    records.back_up(AgentKind::Claude, &before).unwrap();
    if killed_after == "backup" {
        return;
    }
    records.put(&receipt).unwrap();
    if killed_after == "receipt" {
        return;
    }
    let staged = Staged::new(&before, receipt.written.as_bytes()).unwrap();
    match killed_after {
        // Not dropped: a killed run cleans nothing up.
        "staging" => std::mem::forget(staged),
        "rename" => staged.commit().unwrap(),
        other => panic!("no step is called {other}"),
    }
}

#[test]
fn a_kill_between_removal_and_its_record_is_repaired() {
    let home = Home::new();
    fs::write(home.settings(), "{\"a\": 1}").unwrap();
    home.install();
    let receipt = Records::of(&home.context).find(&home.settings()).unwrap();
    home.uninstall();
    Records::of(&home.context).put(&receipt).unwrap();
    assert_eq!(home.uninstall().done.len(), 0);
    assert_eq!(Records::of(&home.context).find(&home.settings()), None);
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), "{\"a\": 1}");
}

#[test]
fn leftovers_of_killed_runs_are_removed() {
    let home = Home::new();
    let leftover = home.at(".claude/.settings.json.watchkeeper-1.tmp");
    let fresh = home.at(".claude/.settings.json.watchkeeper-2.tmp");
    let foreign = home.at(".claude/.other.json.watchkeeper-1.tmp");
    for path in [&leftover, &fresh, &foreign] {
        fs::write(path, "").unwrap();
    }
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
    for path in [&leftover, &foreign] {
        fs::File::options().write(true).open(path).unwrap().set_modified(hour_ago).unwrap();
    }
    home.install();
    assert!(!leftover.exists());
    assert!(fresh.exists() && foreign.exists());
}

#[test]
fn a_folder_in_the_files_place_is_refused() {
    let home = Home::new();
    fs::create_dir(home.settings()).unwrap();
    check_failed(&home.install(), "it is not a regular file");
}

#[test]
fn a_receipt_that_cannot_be_read_is_passed_over() {
    let home = Home::new();
    fs::write(home.settings(), "{\"a\": 1}").unwrap();
    home.install();
    for entry in fs::read_dir(home.at("state/install/receipts")).unwrap() {
        fs::write(entry.unwrap().path(), "{").unwrap();
    }
    home.uninstall();
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), "{\"a\": 1}");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn links_stay_and_their_target_is_written() {
        let home = Home::new();
        fs::create_dir(home.at("dotfiles")).unwrap();
        fs::write(home.at("dotfiles/claude.json"), "{\"a\": 1}").unwrap();
        symlink("../dotfiles/hop", home.settings()).unwrap();
        symlink("claude.json", home.at("dotfiles/hop")).unwrap();
        home.install();
        assert!(fs::symlink_metadata(home.settings()).unwrap().is_symlink());
        assert!(fs::symlink_metadata(home.at("dotfiles/hop")).unwrap().is_symlink());
        assert!(fs::read_to_string(home.at("dotfiles/claude.json")).unwrap().contains("watchkeeper-hook"));
        home.uninstall();
        assert_eq!(fs::read_to_string(home.at("dotfiles/claude.json")).unwrap(), "{\"a\": 1}");
        assert!(fs::symlink_metadata(home.settings()).unwrap().is_symlink());
    }

    #[test]
    fn a_link_that_leads_nowhere_yet_is_followed() {
        let home = Home::new();
        symlink(home.at("dotfiles/claude.json"), home.settings()).unwrap();
        home.install();
        assert!(home.at("dotfiles/claude.json").is_file());
        home.uninstall();
        assert!(!home.at("dotfiles").exists());
        assert!(fs::symlink_metadata(home.settings()).unwrap().is_symlink());
    }

    #[test]
    fn a_link_that_moves_in_between_is_noticed() {
        let home = Home::new();
        for name in ["one", "two"] {
            fs::write(home.at(name), "{}").unwrap();
        }
        symlink(home.at("one"), home.settings()).unwrap();
        let plan = plan(&home.context).unwrap();
        fs::remove_file(home.settings()).unwrap();
        symlink(home.at("two"), home.settings()).unwrap();
        check_failed(&apply(&home.context, plan).unwrap(), "somebody changed it");
        assert_eq!(fs::read_to_string(home.at("two")).unwrap(), "{}");
    }

    #[test]
    fn links_that_do_not_end_are_refused() {
        let home = Home::new();
        symlink("settings.json", home.settings()).unwrap();
        check_failed(&home.install(), "its symbolic links do not end");
    }

    #[test]
    fn a_pipe_is_refused_without_waiting_for_it() {
        let home = Home::new();
        let made = std::process::Command::new("mkfifo").arg(home.settings()).status().unwrap();
        assert!(made.success());
        check_failed(&home.install(), "it is not a regular file");
    }

    #[test]
    fn mode_and_owner_are_kept() {
        let home = Home::new();
        fs::write(home.settings(), "{\"a\": 1}").unwrap();
        set_mode(&home.settings(), 0o644);
        let as_superuser = std::os::unix::fs::chown(home.settings(), Some(12345), Some(12346)).is_ok();
        home.install();
        home.uninstall();
        let found = fs::metadata(home.settings()).unwrap();
        assert_eq!(found.mode() & 0o7777, 0o644);
        if as_superuser {
            assert_eq!((found.uid(), found.gid()), (12345, 12346));
        }
        // A new file is its owner's alone, and so are the copies.
        home.install();
        for private in [
            home.at(".codex/hooks.json"),
            home.at("state/install/backups"),
            home.at("state/install/receipts"),
        ] {
            assert_eq!(fs::metadata(&private).unwrap().mode() & 0o077, 0, "{private:?}");
        }
    }

    #[test]
    fn read_only_files_and_folders_are_left_alone() {
        let home = Home::new();
        fs::write(home.settings(), "{}").unwrap();
        set_mode(&home.settings(), 0o444);
        let report = home.install();
        check_failed(&report, "it is read-only");
        assert!(report.failed[0].1.advice().contains("chmod u+w"));
        assert_eq!(fs::read_to_string(home.settings()).unwrap(), "{}");

        set_mode(&home.settings(), 0o644);
        set_mode(&home.at(".claude"), 0o555);
        check_failed(&home.install(), ".claude is read-only");
        set_mode(&home.at(".claude"), 0o755);
        assert_eq!(fs::read_to_string(home.settings()).unwrap(), "{}");
        assert!(home.install().failed.is_empty());

        // Taken away between the two: the entries stay, and say so.
        set_mode(&home.settings(), 0o444);
        check_failed(&home.uninstall(), "it is read-only");
        set_mode(&home.settings(), 0o644);
        home.uninstall();
        assert_eq!(fs::read_to_string(home.settings()).unwrap(), "{}");
    }

    #[test]
    fn further_names_of_a_file_are_pointed_out() {
        let home = Home::new();
        fs::write(home.settings(), "{}").unwrap();
        fs::hard_link(home.settings(), home.at("other")).unwrap();
        let notes = plan(&home.context).unwrap().agents.remove(0).notes;
        assert!(notes.iter().any(|note| note.contains("1 more name(s)")), "{notes:?}");
    }
}

#[test]
fn a_snapshot_of_nothing_is_unchanged_while_there_is_nothing() {
    let home = Home::new();
    let snapshot = Snapshot::read(&home.settings()).unwrap();
    assert!(snapshot.is_unchanged().unwrap());
    fs::write(home.settings(), "").unwrap();
    assert!(!snapshot.is_unchanged().unwrap());
}

/// Another program writes the file from its own picture of it.
#[test]
fn what_another_program_wiped_is_noticed_told_apart_and_put_back() {
    let keys = |n: usize| (0..n).map(|n| format!("\"key{n}\": {n}, ")).collect::<String>();
    let others = |n: usize| {
        let one = r#"{"hooks": [{"type": "command", "command": "beep"}]}"#;
        format!("\"Stop\": [{}]", vec![one; n].join(", "))
    };
    let text = |key_count: usize, hook_count: usize| {
        format!("{{{}\"hooks\": {{{}}}}}", keys(key_count), others(hook_count))
    };
    let home = Home::new();
    fs::write(home.settings(), text(16, 59)).unwrap();
    let report = home.install();
    let whole = fs::read_to_string(home.settings()).unwrap();
    assert_eq!(whole.matches("beep").count(), 59);
    assert_eq!(fs::read_to_string(report.done[0].backup.as_ref().unwrap()).unwrap(), text(16, 59));
    assert!(home.state_of(AgentKind::Claude).is_working());

    // All of ours are gone, and most of the others.
    fs::write(home.settings(), text(4, 10)).unwrap();
    let status = home.state_of(AgentKind::Claude);
    assert_eq!(status.hooks, HooksState::Missing);
    assert!(!status.is_working());
    assert!(status.files[0].missing.len() > 10, "{status:?}");
    // Only one is.
    let mut value: serde_json::Value = serde_json::from_str(&whole).unwrap();
    value["hooks"].as_object_mut().unwrap().remove("SessionStart");
    fs::write(home.settings(), value.to_string()).unwrap();
    let status = home.state_of(AgentKind::Claude);
    assert_eq!(status.hooks, HooksState::Outdated);
    assert!(!status.is_working());
    assert_eq!(
        (&status.files[0].missing[..], status.files[0].outdated.len()),
        (&["SessionStart".to_owned()][..], 0)
    );

    // What others left of it stays, what ours were comes back, and the copies have every version that we replaced.
    fs::write(home.settings(), text(4, 10)).unwrap();
    let report = home.install();
    assert!(home.state_of(AgentKind::Claude).is_working());
    let mended = fs::read_to_string(home.settings()).unwrap();
    assert_eq!((mended.matches("beep").count(), mended.matches("\"key").count()), (10, 4));
    assert_eq!(fs::read_to_string(report.done[0].backup.as_ref().unwrap()).unwrap(), text(4, 10));
    let copies: Vec<String> = fs::read_dir(home.at("state/install/backups"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert!(copies.contains(&text(16, 59)), "{} copies", copies.len());
    home.uninstall();
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), text(4, 10));
}
