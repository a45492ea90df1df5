//! `config`: the daemon owns the file; without a daemon the same code changes it here.

use std::{env, path::PathBuf, process::Command};

use clap::Subcommand;
use watchkeeper_api::{
    ClientError, Method,
    method::{
        ConfigGet, ConfigGetParams, ConfigPath, ConfigSchema, ConfigSet, ConfigSetParams, ConfigUnset,
        ConfigUnsetParams, ConfigValue, ConfigValues, KeyChange,
    },
};
use watchkeeper_core::Settings;
use watchkeeper_daemon::config::{self, Change, ConfigError, Environment, Loaded, SETTINGS};

use crate::{
    app::{App, Outcome},
    complaint::Complaint,
    exit,
    output::{plain, rows, style},
};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigArgs {
    /// Print a setting, or all with their values and where they come from
    Get { key: Option<String> },
    /// Change a setting; comments in the file stay
    Set { key: String, value: String },
    /// Take a setting out of the file, so that its default counts
    Unset { key: String },
    /// Open the file in $VISUAL or $EDITOR, then check it
    Edit,
    /// Print the file's path
    Path,
    /// Print every setting with type, range, default and meaning
    Schema,
}

pub(super) fn run(app: &App, args: &ConfigArgs) -> Outcome {
    match args {
        ConfigArgs::Get { key } => get(app, key.as_deref()),
        ConfigArgs::Set { key, value } => {
            let what = format!("cannot set '{}'", plain(key));
            let params = ConfigSetParams { key: key.clone(), value: value.clone() };
            let change = either::<ConfigSet>(app, &what, &params, |path| {
                config::set(&path, key, value).map(key_change)
            })?;
            changed(app, &change)
        }
        ConfigArgs::Unset { key } => {
            let what = format!("cannot unset '{}'", plain(key));
            let params = ConfigUnsetParams { key: key.clone() };
            let change =
                either::<ConfigUnset>(app, &what, &params, |path| config::unset(&path, key).map(key_change))?;
            changed(app, &change)
        }
        ConfigArgs::Edit => edit(app),
        ConfigArgs::Path => {
            let path = app.instance.config_file();
            let answer = ConfigPath { path: path.display().to_string(), exists: path.exists() };
            app.answer(&answer, |_| format!("{}\n", answer.path))?;
            Ok(exit::SUCCESS)
        }
        ConfigArgs::Schema => {
            let schema = config::schema();
            app.answer(&schema, |app| schema_text(app, &schema))?;
            Ok(exit::SUCCESS)
        }
    }
}

/// Asks the daemon, or does it here when there is none.
fn either<M: Method>(
    app: &App,
    what: &str,
    params: &M::Params,
    here: impl FnOnce(PathBuf) -> Result<M::Output, ConfigError>,
) -> Result<M::Output, Complaint> {
    match app.dial().and_then(|mut client| client.call::<M>(params)) {
        Ok(output) => Ok(output),
        Err(ClientError::Unreachable { .. }) => {
            here(app.instance.config_file()).map_err(|error| Complaint::config(what, &error))
        }
        Err(error) => Err(Complaint::client(what, &error)),
    }
}

fn get(app: &App, key: Option<&str>) -> Outcome {
    let what =
        key.map_or_else(|| "cannot read the settings".into(), |key| format!("cannot read '{}'", plain(key)));
    let params = ConfigGetParams { key: key.map(Into::into) };
    let values = either::<ConfigGet>(app, &what, &params, |path| {
        if let Some(key) = key {
            config::find_or_suggest(key).map_err(ConfigError::Rejected)?;
        }
        let loaded = config::load_with(&path, &Environment::of_process())?;
        Ok(values(&loaded, path.display().to_string(), key))
    })?;
    app.answer(&values, |app| {
        if let (Some(_), [one]) = (key, values.settings.as_slice()) {
            return format!("{}\n", one.value);
        }
        let cells: Vec<Vec<String>> = values.settings.iter().map(cells).collect();
        let mut text = rows(&cells, |row, column, cell| match column {
            2 => app.terminal.paint(style::DIM, cell),
            1 if values.settings[row].value != values.settings[row].default => {
                app.terminal.paint(style::STRONG, cell)
            }
            _ => cell.into(),
        })
        .join("\n");
        if let Some(error) = &values.error {
            text.push_str(&format!("\n{} {}", app.terminal.paint(style::BAD, "not in force:"), plain(error)));
        }
        text + "\n"
    })?;
    Ok(exit::SUCCESS)
}

fn cells(setting: &ConfigValue) -> Vec<String> {
    use watchkeeper_api::method::SettingSource;
    let from = match setting.source {
        SettingSource::Default => "default".into(),
        SettingSource::File => format!("from the file (default {})", setting.default),
        SettingSource::Environment => format!("from the environment (default {})", setting.default),
    };
    vec![setting.key.clone(), plain(&setting.value), from]
}

fn values(loaded: &Loaded, path: String, key: Option<&str>) -> ConfigValues {
    let defaults = Settings::default();
    let wanted = SETTINGS.iter().filter(|setting| key.is_none_or(|key| setting.key == key));
    let settings = wanted.map(|setting| ConfigValue {
        key: setting.key.into(),
        value: setting.value(&loaded.settings),
        default: setting.value(&defaults),
        source: loaded.source(setting.key),
    });
    ConfigValues { path, settings: settings.collect(), error: None }
}

fn key_change(change: Change) -> KeyChange {
    KeyChange { key: change.key, before: change.before, after: change.after, note: None }
}

fn changed(app: &App, change: &KeyChange) -> Outcome {
    app.answer(change, |_| {
        let note = change.note.as_ref().map(|note| format!("\nnote: {}", plain(note)));
        let (key, before, after) = (plain(&change.key), plain(&change.before), plain(&change.after));
        let what = if before == after {
            format!("{key} = {after} (as before)")
        } else {
            format!("{key} = {after} (was {before})")
        };
        format!("{what}{}\n", note.unwrap_or_default())
    })?;
    Ok(exit::SUCCESS)
}

/// Opens the file itself: the daemon reads it again when it changes, and keeps the last good settings.
fn edit(app: &App) -> Outcome {
    let what = "cannot edit the settings";
    let path = app.instance.config_file();
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| env::var(name).ok().filter(|text| !text.trim().is_empty()));
    let Some(editor) = editor else {
        return Err(Complaint::new(what)
            .because("neither VISUAL nor EDITOR is set")
            .todo(format!("Open {} in an editor of your choice.", path.display())));
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| Complaint::new(what).caused_by(&error))?;
    }
    // `code --wait`: words separated by spaces, never a shell line.
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or_default();
    let status = Command::new(program).args(words).arg(&path).status().map_err(|error| {
        Complaint::new(what)
            .because(format!("cannot start '{program}'"))
            .caused_by(&error)
            .todo("Check VISUAL and EDITOR.")
    })?;
    if !status.success() {
        return Err(Complaint::new(what).because(format!("the editor ended with {status}")));
    }
    config::load(&path).map_err(|error| Complaint::config("the file is not in force", &error))?;
    app.print_line("The settings are in order.")?;
    Ok(exit::SUCCESS)
}

fn schema_text(app: &App, schema: &ConfigSchema) -> String {
    let mut text = String::new();
    for setting in &schema.settings {
        text.push_str(&format!(
            "{} = {}\n  {}\n  {}\n",
            app.terminal.paint(style::STRONG, &setting.key),
            setting.default,
            setting.doc,
            app.terminal
                .paint(style::DIM, &format!("{}; environment: {}", setting.range, setting.environment)),
        ));
    }
    text
}
