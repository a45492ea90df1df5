//! Reads the file and the environment, and changes single keys without touching the rest of the file.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};
use toml_edit::{Document, DocumentMut, Item, RawString, Table, Value};
use watchkeeper_api::method::SettingSource;
use watchkeeper_core::Settings;

use super::{
    error::{ConfigError, Problem},
    schema::{ENVIRONMENT_PREFIX, Kind, SETTINGS, Setting, find_or_suggest},
};

/// The file's name in the configuration directory.
pub const FILE_NAME: &str = "config.toml";
/// A larger file is refused: nobody writes that much by hand.
pub const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Reported problems of one file; further ones are left out.
const PROBLEMS_MAX: usize = 16;

/// Variables that may override settings, taken once; nothing else reads the environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment(pub BTreeMap<String, String>);

/// Settings and where each comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    pub settings: Settings,
    /// Keys that do not have their default's source.
    pub sources: BTreeMap<&'static str, SettingSource>,
}

/// A key's text before and after a change of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub key: String,
    pub before: String,
    pub after: String,
}

impl Environment {
    /// The process's own variables, as far as they name settings. Values that are no Unicode are taken lossily and
    /// then refused by their type.
    #[must_use]
    pub fn of_process() -> Self {
        let named = SETTINGS.iter().map(Setting::environment);
        Self(
            named
                .filter_map(|name| Some((name.clone(), std::env::var_os(&name)?.to_string_lossy().into())))
                .collect(),
        )
    }
}

impl Loaded {
    /// Where the value of this key comes from.
    #[must_use]
    pub fn source(&self, key: &str) -> SettingSource {
        self.sources.get(key).copied().unwrap_or(SettingSource::Default)
    }
}

/// The settings of this file with the process's environment over them; a missing file means defaults.
///
/// # Errors
/// [`ConfigError`]: nothing of a file with a mistake is taken.
pub fn load(path: &Path) -> Result<Settings, ConfigError> {
    load_with(path, &Environment::of_process()).map(|loaded| loaded.settings)
}

/// As [`load`], with a given environment and the sources.
///
/// # Errors
/// As [`load`].
pub fn load_with(path: &Path, environment: &Environment) -> Result<Loaded, ConfigError> {
    let mut loaded = Loaded { settings: Settings::default(), sources: BTreeMap::new() };
    if let Some(text) = read(path)? {
        let document = Document::parse(text.as_str()).map_err(|error| syntax(path, &text, &error))?;
        let mut problems = Vec::new();
        take_table(document.as_table(), &text, &mut loaded, &mut problems);
        refuse_any(path.display().to_string(), problems)?;
    }
    let mut problems = Vec::new();
    for setting in SETTINGS {
        let name = setting.environment();
        let Some(text) = environment.0.get(&name) else { continue };
        match setting.apply(&mut loaded.settings, text) {
            Ok(()) => _ = loaded.sources.insert(setting.key, SettingSource::Environment),
            Err(problem) => problems.push(Problem { key: name, ..problem }),
        }
    }
    refuse_any(format!("the environment ({ENVIRONMENT_PREFIX}*)"), problems)?;
    Ok(loaded)
}

/// Writes one key into the file, which need not exist; comments, order and other keys stay as they are.
///
/// # Errors
/// `Rejected` for a bad key or value, `Syntax` for a file that is no TOML; the file is untouched then.
pub fn set(path: &Path, key: &str, value: &str) -> Result<Change, ConfigError> {
    let setting = find_or_suggest(key).map_err(ConfigError::Rejected)?;
    let mut checked = Settings::default();
    setting.apply(&mut checked, unquoted(value)).map_err(ConfigError::Rejected)?;
    let after = setting.value(&checked);
    let mut file = Opened::open(path)?;
    let before = file.text_of(setting);
    let table = file.document.as_table_mut();
    let mut new = to_toml(setting, &after);
    match table.get_mut(setting.key) {
        Some(Item::Value(old)) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        Some(other) => *other = Item::Value(new),
        None => _ = table.insert(setting.key, Item::Value(new)),
    }
    file.write()?;
    Ok(Change { key: setting.key.into(), before, after })
}

/// Takes one key out of the file; comments before it stay. A key that is not there is no error.
///
/// # Errors
/// As [`set`].
pub fn unset(path: &Path, key: &str) -> Result<Change, ConfigError> {
    let mut file = Opened::open(path)?;
    let change = match find_or_suggest(key) {
        Ok(setting) => Change {
            key: setting.key.into(),
            before: file.text_of(setting),
            after: setting.value(&Settings::default()),
        },
        // A key that no setting has can be taken out too: that is how one mends a file.
        Err(_) if file.document.contains_key(key) => Change {
            key: key.into(),
            before: file.document[key].to_string().trim().into(),
            after: String::new(),
        },
        Err(problem) => return Err(ConfigError::Rejected(problem)),
    };
    if remove_keeping_comments(&mut file.document, key) {
        file.write()?;
    }
    Ok(change)
}

/// A file on its way to be changed.
struct Opened {
    /// Where the bytes are: links are followed, so that a link stays one.
    target: PathBuf,
    /// What was read; the file must still be that when it is written.
    text: Option<String>,
    document: DocumentMut,
}

impl Opened {
    fn open(path: &Path) -> Result<Self, ConfigError> {
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let text = read(&target)?;
        let content = text.as_deref().unwrap_or_default();
        let document = content.parse::<DocumentMut>().map_err(|error| syntax(path, content, &error))?;
        Ok(Self { target, text, document })
    }

    /// What the file says of a setting, its default when it says nothing.
    fn text_of(&self, setting: &Setting) -> String {
        match self.document.get(setting.key) {
            Some(item) => item_text(item).unwrap_or_else(|| item.to_string().trim().into()),
            None => setting.value(&Settings::default()),
        }
    }

    /// Replaces the file as a whole: a crash leaves the old or the new one.
    fn write(self) -> Result<(), ConfigError> {
        let Self { target, text, document } = self;
        let failed = |source| ConfigError::Write { path: target.clone(), source };
        let directory = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(failed)?;
        if read(&target)? != text {
            return Err(ConfigError::Raced { path: target });
        }
        let temporary = directory.join(format!(".{FILE_NAME}.{}.new", std::process::id()));
        let written = write_synced(&temporary, document.to_string().as_bytes())
            .and_then(|()| match fs::metadata(&target) {
                Ok(metadata) => fs::set_permissions(&temporary, metadata.permissions()),
                Err(_) => Ok(()),
            })
            .and_then(|()| fs::rename(&temporary, &target));
        written.map_err(|source| {
            // The error that counts is the first; a left-over file is replaced by the next change.
            _ = fs::remove_file(&temporary);
            failed(source)
        })
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// The file's text; `None` when there is no file.
fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    let failed = |source| ConfigError::Read { path: path.into(), source };
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(ConfigError::TooLarge { path: path.into(), limit: FILE_BYTES_MAX });
    }
    let text = String::from_utf8(bytes).map_err(|e| failed(io::Error::new(io::ErrorKind::InvalidData, e)))?;
    Ok(Some(text))
}

fn take_table(table: &Table, text: &str, loaded: &mut Loaded, problems: &mut Vec<Problem>) {
    for (key, item) in table {
        let line = table.key(key).and_then(toml_edit::Key::span).map(|span| position(text, span.start).0);
        let taken = find_or_suggest(key).and_then(|setting| {
            let value = item_text(item)
                .ok_or_else(|| setting.bad_value(item.type_name(), shape_note(setting, item)))?;
            setting.apply(&mut loaded.settings, &value)?;
            loaded.sources.insert(setting.key, SettingSource::File);
            Ok(())
        });
        if let Err(problem) = taken
            && problems.len() < PROBLEMS_MAX
        {
            problems.push(Problem { line, ..problem });
        }
    }
}

/// A string or a boolean as text; other types are no setting's.
fn item_text(item: &Item) -> Option<String> {
    match item.as_value()? {
        Value::String(text) => Some(text.value().clone()),
        Value::Boolean(on) => Some(on.value().to_string()),
        Value::Integer(_)
        | Value::Float(_)
        | Value::Datetime(_)
        | Value::Array(_)
        | Value::InlineTable(_) => None,
    }
}

fn shape_note(setting: &Setting, item: &Item) -> Option<String> {
    let number = item.as_integer()?;
    matches!(setting.kind, Kind::Duration { .. })
        .then(|| format!("write \"{number}s\" or \"{number}m\", with quotes"))
}

fn to_toml(setting: &Setting, text: &str) -> Value {
    match setting.kind {
        Kind::Bool => Value::from(text == "true"),
        Kind::Duration { .. } | Kind::Choice(_) | Kind::Text { .. } => Value::from(text),
    }
}

fn unquoted(value: &str) -> &str {
    let value = value.trim();
    ['"', '\''].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q)).unwrap_or(value)
}

/// Removes a key of the top level; what stood before it moves to what follows. False when there was none.
fn remove_keeping_comments(document: &mut DocumentMut, key: &str) -> bool {
    let names: Vec<String> = document.iter().map(|(name, _)| name.into()).collect();
    let Some((removed, _)) = document.as_table_mut().remove_entry(key) else { return false };
    let comment = raw(removed.leaf_decor().prefix());
    if comment.trim().is_empty() {
        return true;
    }
    let next = names.iter().skip_while(|name| *name != key).nth(1).cloned();
    let followed = next.and_then(|name| {
        document.as_table_mut().key_mut(&name).map(|mut next| {
            let decor = next.leaf_decor_mut();
            let joined = format!("{comment}{}", raw(decor.prefix()));
            decor.set_prefix(joined);
        })
    });
    if followed.is_none() {
        let joined = format!("{comment}{}", raw(Some(document.trailing())));
        document.set_trailing(joined);
    }
    true
}

fn raw(text: Option<&RawString>) -> String {
    text.and_then(RawString::as_str).unwrap_or_default().into()
}

fn refuse_any(origin: String, problems: Vec<Problem>) -> Result<(), ConfigError> {
    if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid { origin, problems }) }
}

fn syntax(path: &Path, text: &str, error: &toml_edit::TomlError) -> ConfigError {
    let (line, column) = position(text, error.span().map_or(0, |span| span.start));
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    ConfigError::Syntax { path: path.into(), line, column, message }
}

/// Line and column of a byte, both from 1.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests;
