use super::*;
use crate::config::schema;
use std::time::Duration;

/// `expected`: what `load_with` says, errors as shown to people with the directory cut off.
fn check(text: &str, environment: &[(&str, &str)], expected: Result<fn(&mut Settings), &str>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    fs::write(&path, text).unwrap();
    let environment = Environment(environment.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect());
    let got = load_with(&path, &environment)
        .map(|loaded| loaded.settings)
        .map_err(|error| error.to_string().replace(&format!("{}/", directory.path().display()), ""));
    let expected = expected.map_err(String::from).map(|change| {
        let mut settings = Settings::default();
        change(&mut settings);
        settings
    });
    assert_eq!(got, expected, "{text}");
}

#[test]
fn reads_files() {
    check("", &[], Ok(|_| ()));
    check(
        "# mine\nkeep_awake = \"On\" # always\ninactivity_timeout = \"off\"\nsuspend = true\nsound = 'bell'\n",
        &[],
        Ok(|s| {
            s.keep_awake = watchkeeper_core::settings::KeepAwake::On;
            s.inactivity_timeout = None;
            s.suspend = true;
            s.sound = Some("bell".into());
        }),
    );
    check(
        "wake_grace = \"0s\"",
        &[("WATCHKEEPER_WAKE_GRACE", "1m")],
        Ok(|s| s.wake_grace = Duration::from_secs(60)),
    );
}

#[test]
fn says_what_is_wrong_and_what_was_meant() {
    check(
        "\nkeep-awake = \"on\"",
        &[],
        Err("config.toml: line 2: unknown setting 'keep-awake'; did you mean 'keep_awake'?"),
    );
    check("[telemetry]\non = true", &[], Err("config.toml: line 1: unknown setting 'telemetry'"));
    check(
        "keep_awake = \"bussy\"\nsuspend = \"yes\"",
        &[],
        Err(
            "config.toml: line 1: 'keep_awake' cannot be 'bussy'; it takes off, busy or on (did you mean 'busy'?); \
             line 2: 'suspend' cannot be 'yes'; it takes true or false (did you mean 'true'?)",
        ),
    );
    check(
        "work_max = 60",
        &[],
        Err("config.toml: line 1: 'work_max' cannot be 'integer'; it takes a duration from 1m to 7d \
             (write \"60s\" or \"60m\", with quotes)"),
    );
    check(
        "inactivity_timeout = \"1s\"",
        &[],
        Err(
            "config.toml: line 1: 'inactivity_timeout' cannot be '1s'; it takes a duration from 10s to 1d, or off \
             (that is too short)",
        ),
    );
    check(
        "",
        &[("WATCHKEEPER_WORK_MAX", "6")],
        Err(
            "the environment (WATCHKEEPER_*): 'WATCHKEEPER_WORK_MAX' cannot be '6'; it takes a duration from 1m to 7d \
             (it has no unit; write 12s, 12m or 12h)",
        ),
    );
    check(
        "keep_awake = on",
        &[],
        Err("config.toml, line 1, column 14: string values must be quoted, expected literal string"),
    );
}

#[test]
fn a_missing_file_is_defaults_and_a_monster_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    assert_eq!(load_with(&path, &Environment::default()).unwrap().settings, Settings::default());
    fs::write(&path, vec![b'#'; usize::try_from(FILE_BYTES_MAX).unwrap() + 1]).unwrap();
    assert!(matches!(load(&path), Err(ConfigError::TooLarge { .. })));
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(matches!(load(&path), Err(ConfigError::Read { .. })));
}

#[test]
fn set_keeps_everything_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new").join(FILE_NAME);
    let change = set(&path, "keep_awake", "\"ON\"").unwrap();
    assert_eq!((change.before.as_str(), change.after.as_str()), ("busy", "on"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "keep_awake = \"on\"\n");

    fs::write(&path, "# head\n\n# why\nkeep_awake   =  'busy'  # tail\nbroken_key = 1\n# end\n").unwrap();
    set(&path, "keep_awake", "off").unwrap();
    set(&path, "suspend", "true").unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "# head\n\n# why\nkeep_awake   =  \"off\"  # tail\nbroken_key = 1\nsuspend = true\n# end\n"
    );
    unset(&path, "keep_awake").unwrap();
    let gone = unset(&path, "broken_key").unwrap();
    assert_eq!(gone.before, "1");
    unset(&path, "work_max").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "# head\n\n# why\nsuspend = true\n# end\n");
    unset(&path, "suspend").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "# head\n\n# why\n# end\n");
}

#[test]
fn a_refused_change_leaves_the_file_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    let broken = "keep_awake = \n";
    fs::write(&path, broken).unwrap();
    assert!(matches!(set(&path, "keep_awake", "on"), Err(ConfigError::Syntax { .. })));
    assert!(matches!(set(&path, "keep_awak", "on"), Err(ConfigError::Rejected(_))));
    assert!(matches!(set(&path, "keep_awake", "maybe"), Err(ConfigError::Rejected(_))));
    assert!(matches!(unset(&path, "keep_awake"), Err(ConfigError::Syntax { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), broken);
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_modes_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real.toml"), directory.path().join(FILE_NAME));
    fs::write(&real, "").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, &link).unwrap();
    set(&link, "webhooks", "true").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "webhooks = true\n");
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
}

/// The table is complete (serde names every field) and each default survives a round through text.
#[test]
fn every_setting_is_in_the_table() {
    let fields = serde_json::to_value(Settings::default()).unwrap();
    let mut names: Vec<&str> = fields.as_object().unwrap().keys().map(String::as_str).collect();
    let mut keys: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
    names.sort_unstable();
    keys.sort_unstable();
    assert_eq!(keys, names);
    for setting in SETTINGS {
        let mut settings = Settings::default();
        let text = setting.value(&settings);
        setting.apply(&mut settings, &text).unwrap();
        assert_eq!(settings, Settings::default(), "{}", setting.key);
    }
    assert_eq!(schema().settings.len(), SETTINGS.len());
}
