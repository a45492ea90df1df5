//! Files of agents that the installers edit. An input is one byte that picks the file, and the file.

use watchkeeper_agents::install::{
    ALL, ConfigFile, Edit, HOOK_PROGRAM, Instance, Original, Shell, Timeouts, Wiring, decode,
};

/// How the hooks are wired up, with a path that needs quoting.
pub(crate) fn wiring() -> Wiring {
    Wiring {
        program: "/opt/w k/watchkeeper-hook".to_owned(),
        instance: Instance::Default,
        state: "/state".to_owned(),
        timeouts: Timeouts::default(),
        shell: Shell::Posix,
        mcp: None,
    }
}

/// The whole life of our entries in a file of somebody else.
fn check(file: &dyn ConfigFile, bytes: &[u8]) {
    let Ok(before) = decode(bytes) else { return };
    // Text that speaks of us may hold entries of ours: then removing is right, and no identity.
    let foreign = !before.contains(HOOK_PROGRAM) && !before.contains("watchkeeper");
    drop(file.inspect(Some(before), &wiring()));
    if foreign {
        assert_eq!(
            file.remove(Some(before), None).unwrap_or(Edit::Keep),
            Edit::Keep,
            "nothing of ours was there"
        );
    } else {
        drop(file.remove(Some(before), None));
    }
    let Ok(Edit::Write(after)) = file.install(Some(before), &wiring()) else { return };
    assert!(file.inspect(Some(&after), &wiring()).is_ok_and(|found| found.is_current()), "{after}");
    assert_eq!(file.install(Some(&after), &wiring()), Ok(Edit::Keep), "{after}");
    if foreign {
        let removed = file.remove(Some(&after), Some(Original::Text(before)));
        assert_eq!(removed, Ok(Edit::Write(before.to_owned())), "{after}");
    }
}

fn files(ending: &str) -> Vec<&'static dyn ConfigFile> {
    ALL.iter().flat_map(|installer| installer.files).copied().filter(|f| f.path().ends_with(ending)).collect()
}

fn pick(ending: &str, input: &[u8]) {
    let Some((which, bytes)) = input.split_first() else { return };
    let files = files(ending);
    if let Some(file) = files.get(usize::from(*which) % files.len().max(1)) {
        check(*file, bytes);
    }
}

/// Settings and hook files as JSON, with comments or without.
pub fn json(input: &[u8]) {
    pick(".json", input);
}

/// Settings as TOML, which also say which hooks the agent trusts.
pub fn toml(input: &[u8]) {
    pick(".toml", input);
    let Some(Ok(text)) = input.get(1..).map(decode) else { return };
    for installer in ALL {
        let Some(trust) = installer.trust else { continue };
        let texts: Vec<Option<&str>> =
            installer.files.iter().map(|file| file.path().ends_with(".toml").then_some(text)).collect();
        let said = trust("/h/hooks.json", &texts);
        assert_eq!(said.trusted, Vec::<String>::new(), "no hook stands there");
    }
}
