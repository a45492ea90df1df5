//! Settings as the person sees them: names, texts, where they come from. The daemon owns the file.

use serde::{Deserialize, Serialize};

/// Version of the settings' schema as published.
pub const CONFIG_SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigGetParams {
    /// Absent: all.
    pub key: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigValues {
    pub path: String,
    pub settings: Vec<ConfigValue>,
    /// Why the file is not in force (the last good settings are); `null`: it is.
    #[serde(default)]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigValue {
    pub key: String,
    /// As one would write it in the file, strings without quotes.
    pub value: String,
    pub default: String,
    pub source: SettingSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingSource {
    Default,
    File,
    Environment,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigSetParams {
    pub key: String,
    /// As one would write it in the file; quotes around a string may be left out.
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigUnsetParams {
    pub key: String,
}

/// What a change of the file came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyChange {
    pub key: String,
    pub before: String,
    pub after: String,
    /// Why `after` is in the file but not in force, e.g. an environment variable that says otherwise.
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigPath {
    pub path: String,
    pub exists: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigSchema {
    pub version: u32,
    pub settings: Vec<SettingSchema>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingSchema {
    pub key: String,
    /// `duration`, `bool`, `choice` or `text`.
    #[serde(rename = "type")]
    pub kind: String,
    /// In words, e.g. `10s to 24h, or off`.
    pub range: String,
    /// For `choice`.
    #[serde(default)]
    pub choices: Vec<String>,
    pub default: String,
    /// The environment variable that overrides the file.
    pub environment: String,
    pub doc: String,
}
