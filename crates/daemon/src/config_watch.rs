//! The settings in force: the last good ones, with the error of a file that is not.

use std::path::PathBuf;

use watchkeeper_core::Settings;

use crate::config::{self, Environment, FILE_NAME, Loaded};

#[derive(Debug)]
pub(crate) struct Configuration {
    path: PathBuf,
    environment: Environment,
    loaded: Loaded,
    error: Option<String>,
}

impl Configuration {
    /// Reads the file in `folder`. A broken one leaves the defaults in force and its error to be shown.
    #[must_use]
    pub(crate) fn load(folder: &std::path::Path) -> Self {
        let mut configuration = Self {
            path: folder.join(FILE_NAME),
            environment: Environment::of_process(),
            loaded: Loaded { settings: Settings::default(), sources: std::collections::BTreeMap::new() },
            error: None,
        };
        _ = configuration.reload(); // the settings are read from it anyway
        configuration
    }

    /// Reads the file again; the new settings if they differ.
    pub(crate) fn reload(&mut self) -> Option<Settings> {
        match config::load_with(&self.path, &self.environment) {
            Ok(loaded) => {
                self.error = None;
                let changed = loaded.settings != self.loaded.settings;
                self.loaded = loaded;
                changed.then(|| self.loaded.settings.clone())
            }
            Err(error) => {
                tracing::warn!(%error, "the configuration is not in force; the last good one is");
                self.error = Some(error.to_string());
                None
            }
        }
    }

    #[must_use]
    pub(crate) const fn settings(&self) -> &Settings {
        &self.loaded.settings
    }

    #[must_use]
    pub(crate) const fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    #[must_use]
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    #[must_use]
    pub(crate) const fn path(&self) -> &PathBuf {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watchkeeper_core::settings::KeepAwake;

    #[test]
    fn a_broken_file_keeps_the_last_good_settings() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE_NAME);
        std::fs::write(&file, "keep_awake = \"off\"\n").unwrap();
        let mut configuration = Configuration::load(dir.path());
        assert_eq!(configuration.settings().keep_awake, KeepAwake::Off);
        std::fs::write(&file, "keep_awake = \"sometimes\"\n").unwrap();
        assert_eq!(configuration.reload(), None);
        assert_eq!(configuration.settings().keep_awake, KeepAwake::Off);
        assert!(configuration.error().unwrap().contains("keep_awake"));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(configuration.reload().map(|s| s.keep_awake), Some(KeepAwake::Busy));
        assert_eq!(configuration.error(), None);
    }
}
