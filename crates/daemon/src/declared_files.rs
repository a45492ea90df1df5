//! The files by which the user declares agents: `agents/*.toml` in the configuration directory. Reads them, keeps the last
//! good adapter of a file that is broken now, and has each file's state to show.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use watchkeeper_agents::{
    Adapter as _, Adapters, Declared,
    declared::{FILE_BYTES_MAX, Problem},
};
use watchkeeper_api::method::{Check, CheckLevel};

use crate::follow::open_regular;

/// The folder's name in the configuration directory.
const FOLDER: &str = "agents";
/// Files taken, in the order of their names; the rest is said and not read.
const FILES_MAX: usize = 32;
/// Entries of the folder looked at; a fuller one is no folder of adapters.
const ENTRIES_MAX: usize = 1024;

/// Why a file's agent is not there, or not as its file says.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdapterFileError {
    #[error("cannot be read: {why}")]
    Read { why: String },
    #[error("{}", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Problem>),
    /// As between the two renames of an editor that saves.
    #[error("it is not there any more; its agent goes with the next look")]
    Vanished,
    #[error("'{agent}' is declared by {} already", other.display())]
    Twice { agent: String, other: PathBuf },
}

/// One file as it was found.
#[derive(Debug)]
struct AdapterFile {
    path: PathBuf,
    /// What is in force: of this text, or of an earlier one.
    adapter: Option<Arc<Declared>>,
    error: Option<AdapterFileError>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct DeclaredFiles {
    folder: PathBuf,
    files: Vec<AdapterFile>,
    adapters: Adapters,
    left_out: usize,
    /// The folder is there and cannot be listed; its last good adapters stay.
    unlisted: Option<String>,
}

impl DeclaredFiles {
    /// Reads the folder below this configuration directory. Blocks for small local files.
    #[must_use]
    pub(crate) fn load(config: &Path) -> Self {
        let mut files = Self { folder: config.join(FOLDER), ..Self::default() };
        _ = files.reload(); // all of it is new
        files
    }

    /// Reads all files again; true when other adapters are in force.
    pub(crate) fn reload(&mut self) -> bool {
        let mut paths = match listed(&self.folder) {
            Ok(paths) => paths,
            Err(error) => {
                self.unlisted = Some(error.to_string());
                return false;
            }
        };
        self.unlisted = None;
        self.left_out = paths.len().saturating_sub(FILES_MAX);
        paths.truncate(FILES_MAX);
        let mut before = std::mem::take(&mut self.files);
        let old: Vec<Arc<Declared>> = in_force(&before);
        for vanished in before.iter_mut().filter(|file| !paths.contains(&file.path)) {
            let is_news = vanished.error != Some(AdapterFileError::Vanished);
            if let Some(adapter) = vanished.adapter.take_if(|_| is_news) {
                let (path, error) = (vanished.path.clone(), Some(AdapterFileError::Vanished));
                self.files.push(AdapterFile { path, adapter: Some(adapter), error });
            }
        }
        for path in paths {
            let last = before.iter_mut().find(|file| file.path == path).and_then(|file| file.adapter.take());
            let mut file = match read(&path) {
                Ok(adapter) => AdapterFile { path, adapter: Some(Arc::new(adapter)), error: None },
                Err(error) => AdapterFile { path, adapter: last, error: Some(error) },
            };
            if let Some(adapter) = &file.adapter
                && let Some(other) = self.declares(adapter)
            {
                file.error = Some(AdapterFileError::Twice {
                    agent: adapter.kind().to_string(),
                    other: other.path.clone(),
                });
                file.adapter = None;
            }
            if let Some(error) = &file.error {
                tracing::warn!(path = %file.path.display(), %error, "an adapter file is not in force");
            }
            self.files.push(file);
        }
        let new = in_force(&self.files);
        self.adapters = Adapters::with(new.clone());
        new != old
    }

    /// Whether a file that was there must be looked for once more.
    #[must_use]
    pub(crate) fn is_settling(&self) -> bool {
        self.files.iter().any(|file| file.error == Some(AdapterFileError::Vanished))
    }

    /// Whether agents may be declared that are not in force: what they say must not be taken for nobody's.
    #[must_use]
    pub(crate) fn is_incomplete(&self) -> bool {
        let is_unread = |file: &AdapterFile| match &file.error {
            Some(AdapterFileError::Read { .. } | AdapterFileError::Invalid(_)) => file.adapter.is_none(),
            Some(AdapterFileError::Vanished | AdapterFileError::Twice { .. }) | None => false,
        };
        self.unlisted.is_some() || self.files.iter().any(is_unread)
    }

    #[must_use]
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    #[must_use]
    pub(crate) const fn adapters(&self) -> &Adapters {
        &self.adapters
    }

    fn declares(&self, adapter: &Declared) -> Option<&AdapterFile> {
        self.files.iter().find(|file| file.adapter.as_ref().is_some_and(|a| a.kind() == adapter.kind()))
    }

    /// One check a file.
    pub(crate) fn checks(&self) -> impl Iterator<Item = Check> {
        let check = |name: String, level, detail, fix: Option<&str>| Check {
            name,
            level,
            detail,
            fix: fix.map(str::to_owned),
        };
        let files = self.files.iter().map(move |file| {
            let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("adapter-{stem}");
            match (&file.error, &file.adapter) {
                (None, Some(adapter)) => {
                    let (events, records) = adapter.signals();
                    let detail = format!(
                        "declares {}: {events} events of hooks, {records} kinds of transcript records",
                        adapter.kind()
                    );
                    check(name, CheckLevel::Ok, detail, None)
                }
                (error_kind, adapter) => {
                    let error = error_kind.as_ref().map(AdapterFileError::to_string).unwrap_or_default();
                    let stays = match (&error_kind, adapter) {
                        (Some(AdapterFileError::Vanished), _) | (_, None) => "",
                        (_, Some(_)) => " (as it was before, it stays in force)",
                    };
                    let detail = format!("{}: {error}{stays}", file.path.display());
                    check(name, CheckLevel::Fail, detail, Some("mend the file; it is read again at once"))
                }
            }
        });
        let folder = self.folder.display().to_string();
        let left_out = (self.left_out > 0).then(|| {
            let detail =
                format!("{folder}: {} files beyond the first {FILES_MAX} are not read", self.left_out);
            check("adapters".to_owned(), CheckLevel::Warn, detail, Some("keep those that you use"))
        });
        let unlisted = self.unlisted.as_ref().map(|why| {
            check("adapters".to_owned(), CheckLevel::Warn, format!("{folder} cannot be listed: {why}"), None)
        });
        files.chain(left_out).chain(unlisted)
    }
}

fn in_force(files: &[AdapterFile]) -> Vec<Arc<Declared>> {
    files.iter().filter_map(|file| file.adapter.clone()).collect()
}

/// The adapter files by name; none when there is no folder.
fn listed(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = Vec::new();
    for entry in entries.take(ENTRIES_MAX) {
        let path = entry?.path();
        // A name that begins with a dot is an editor's.
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<Declared, AdapterFileError> {
    let failed = |error: io::Error| AdapterFileError::Read { why: error.to_string() };
    let (file, _, _) = open_regular(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error.utf8_error())))?;
    Declared::parse(&text).map_err(AdapterFileError::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(agent: &str, event: &str) -> String {
        format!(
            "agent = \"{agent}\"\n[process]\nnames = [\"{agent}\"]\n[hooks]\nsession = \"id\"\n\
             signals = [{{ event = \"{event}\", signal = \"turn_started\" }}, \
             {{ event = \"stop\", signal = \"turn_ended\" }}]\n"
        )
    }

    /// The agents in force, and the level and the detail of each check.
    fn check(files: &DeclaredFiles, agents: &[&str], checks: &[(&str, CheckLevel, &str)]) {
        let kinds = files.adapters().kinds().filter(|kind| !watchkeeper_core::AgentKind::ALL.contains(kind));
        assert_eq!(kinds.map(|kind| kind.to_string()).collect::<Vec<_>>(), agents);
        let got: Vec<Check> = files.checks().collect();
        assert_eq!(got.len(), checks.len(), "{got:?}");
        for (got, (name, level, part)) in got.iter().zip(checks) {
            assert_eq!((got.name.as_str(), got.level), (*name, *level), "{got:?}");
            assert!(got.detail.contains(part), "{got:?}");
        }
    }

    #[test]
    fn files_come_break_and_go() {
        let config = tempfile::tempdir().unwrap();
        let mut files = DeclaredFiles::load(config.path());
        check(&files, &[], &[]);
        let folder = config.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("one.toml"), text("one", "go")).unwrap();
        fs::write(folder.join("note.txt"), "not an adapter").unwrap();
        fs::write(folder.join(".two.toml.swp.toml"), "not an adapter").unwrap();
        assert!(files.reload());
        check(&files, &["one"], &[("adapter-one", CheckLevel::Ok, "declares one: 2 events")]);
        assert!(!files.reload(), "nothing changed");

        fs::write(folder.join("one.toml"), text("one", "go").replace("turn_started", "turn_strated"))
            .unwrap();
        assert!(!files.reload(), "the last good one stays");
        let expected = "did you mean 'turn_started'? (as it was before, it stays in force)";
        check(&files, &["one"], &[("adapter-one", CheckLevel::Fail, expected)]);

        fs::write(folder.join("two.toml"), text("one", "go")).unwrap();
        fs::write(folder.join("three.toml"), b"\xff").unwrap();
        fs::create_dir(folder.join("four.toml")).unwrap();
        _ = files.reload();
        check(
            &files,
            &["one"],
            &[
                ("adapter-four", CheckLevel::Fail, "cannot be read"),
                ("adapter-one", CheckLevel::Fail, "stays in force"),
                ("adapter-three", CheckLevel::Fail, "cannot be read"),
                ("adapter-two", CheckLevel::Fail, "'one' is declared by"),
            ],
        );
        fs::remove_dir_all(&folder).unwrap();
        assert!(!files.reload() && files.is_settling(), "an editor may be saving it");
        check(&files, &["one"], &[("adapter-one", CheckLevel::Fail, "not there any more")]);
        assert!(files.reload() && !files.is_settling());
        check(&files, &[], &[]);
    }

    /// As editors do it: the former file goes aside, then comes the new one.
    #[test]
    fn a_broken_file_that_came_by_renames_leaves_the_last_good_one() {
        let config = tempfile::tempdir().unwrap();
        let folder = config.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        let file = folder.join("one.toml");
        fs::write(&file, text("one", "go")).unwrap();
        let mut files = DeclaredFiles::load(config.path());
        fs::rename(&file, folder.join("one.toml~")).unwrap();
        assert!(!files.reload());
        fs::write(&file, "broken").unwrap();
        assert!(!files.reload() && !files.is_settling());
        check(&files, &["one"], &[("adapter-one", CheckLevel::Fail, "stays in force")]);
    }

    #[test]
    fn what_cannot_be_read_may_declare_anybody() {
        let config = tempfile::tempdir().unwrap();
        let folder = config.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        let file = folder.join("one.toml");
        fs::write(&file, "broken").unwrap();
        let mut files = DeclaredFiles::load(config.path());
        assert!(files.is_incomplete());
        fs::write(&file, text("one", "go")).unwrap();
        assert!(files.reload() && !files.is_incomplete());
        fs::write(&file, "broken").unwrap();
        assert!(!files.reload() && !files.is_incomplete(), "the last good one stays in force");
        fs::remove_dir_all(&folder).unwrap();
        fs::write(&folder, "no folder").unwrap();
        assert!(!files.reload() && files.is_incomplete());
    }

    #[test]
    fn a_flood_of_files_is_cut_and_said() {
        let config = tempfile::tempdir().unwrap();
        let folder = config.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        for n in 0..FILES_MAX + 3 {
            fs::write(folder.join(format!("{n:03}.toml")), text(&format!("agent-{n}"), "go")).unwrap();
        }
        let files = DeclaredFiles::load(config.path());
        assert_eq!(files.checks().count(), FILES_MAX + 1);
        assert!(files.checks().last().unwrap().detail.contains("3 files beyond the first 32"));
    }
}
