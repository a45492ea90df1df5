//! A feature in a TOML file that must not be switched off: only `false` becomes `true`, nothing is added, and the
//! undo puts `false` back where a receipt says it was so.
//!
//! `toml_edit` gives the position of the value; the text is cut and joined here, so every other byte stays.

use std::ops::Range;

use toml_edit::{Document, Item, TableLike, Value};

use super::{ConfigFile, Edit, FILE_MAX_BYTES, Inspection, Original, Refusal, Wiring, jsonc::split_mark};

/// One boolean `table.key`, with the names it had before.
#[derive(Debug)]
pub(crate) struct FeatureSwitch {
    pub(crate) path: &'static str,
    pub(crate) table: &'static str,
    /// The feature's name and its deprecated names; each counts when it is there.
    pub(crate) keys: &'static [&'static str],
}

impl ConfigFile for FeatureSwitch {
    fn path(&self) -> &'static str {
        self.path
    }

    fn install(&self, current: Option<&str>, _wiring: &Wiring) -> Result<Edit, Refusal> {
        let Some(text) = current else { return Ok(Edit::Keep) };
        let off: Vec<_> = self.read(text)?.into_iter().filter(|switch| !switch.on).collect();
        Ok(rewrite(text, &off, "true"))
    }

    fn remove(&self, current: Option<&str>, original: Option<Original<'_>>) -> Result<Edit, Refusal> {
        let (Some(text), Some(original)) = (current, original.and_then(Original::text)) else {
            return Ok(Edit::Keep);
        };
        // A switch we turned on: off in the file without us, on in the file now.
        let was_off: Vec<_> =
            self.read(original).unwrap_or_default().into_iter().filter(|switch| !switch.on).collect();
        if was_off.is_empty() {
            return Ok(Edit::Keep);
        }
        let ours: Vec<_> = self
            .read(text)?
            .into_iter()
            .filter(|switch| switch.on && was_off.iter().any(|before| before.key == switch.key))
            .collect();
        Ok(rewrite(text, &ours, "false"))
    }

    fn inspect(&self, current: Option<&str>, _wiring: &Wiring) -> Result<Inspection, Refusal> {
        let off = self.read(current.unwrap_or_default())?.into_iter().filter(|switch| !switch.on);
        let disabled = off.map(|switch| format!("{}.{} is false", self.table, switch.key)).collect();
        Ok(Inspection { disabled, ..Inspection::default() })
    }
}

/// One boolean as it stands in a text.
struct Switch {
    key: &'static str,
    on: bool,
    at: Range<usize>,
}

impl FeatureSwitch {
    fn read(&self, text: &str) -> Result<Vec<Switch>, Refusal> {
        let (mark, document) = parse(text)?;
        let Some(table) = document.get(self.table) else { return Ok(Vec::new()) };
        let wrong = |key: String, wanted| Refusal::WrongType { key, found: "something else", wanted };
        let table = table.as_table_like().ok_or_else(|| wrong(self.table.to_owned(), "a table"))?;
        let mut switches = Vec::new();
        for key in self.keys {
            match table.get(key) {
                None => {}
                Some(Item::Value(value @ Value::Boolean(on))) => {
                    let at = value.span().ok_or(Refusal::Unfaithful)?;
                    switches.push(Switch { key, on: *on.value(), at: at.start + mark..at.end + mark });
                }
                Some(_) => return Err(wrong(format!("{}.{key}", self.table), "true or false")),
            }
        }
        Ok(switches)
    }
}

fn rewrite(text: &str, switches: &[Switch], value: &str) -> Edit {
    if switches.is_empty() {
        return Edit::Keep;
    }
    let mut out = text.to_owned();
    let mut from_last: Vec<_> = switches.iter().map(|switch| switch.at.clone()).collect();
    from_last.sort_by_key(|at| std::cmp::Reverse(at.start));
    for at in from_last {
        out.replace_range(at, value);
    }
    Edit::Write(out)
}

/// The document and the length of its byte order mark.
pub(super) fn parse(text: &str) -> Result<(usize, Document<&str>), Refusal> {
    if text.len() > FILE_MAX_BYTES {
        return Err(Refusal::TooLarge { bytes: text.len(), max_bytes: FILE_MAX_BYTES });
    }
    let (mark, body) = split_mark(text);
    let document = Document::parse(body).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(body.len());
        let before = body.get(..at).unwrap_or_default();
        Refusal::Broken {
            format: "TOML",
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|c| *c != '\n').count() + 1,
            why: error.message().trim().lines().next().unwrap_or_default().to_owned(),
        }
    })?;
    Ok((mark.len(), document))
}

/// One table of a table of tables: its key, and a text and a boolean member of it.
pub(crate) struct KeyedState {
    pub(crate) key: String,
    pub(crate) text: Option<String>,
    pub(crate) flag: Option<bool>,
}

/// The tables below a dotted path.
pub(crate) fn states(
    text: &str,
    path: &[&str],
    text_member: &str,
    flag_member: &str,
) -> Result<Vec<KeyedState>, Refusal> {
    let (_, document) = parse(text)?;
    let mut table: &dyn TableLike = document.as_table();
    for segment in path {
        match table.get(segment).and_then(Item::as_table_like) {
            Some(inner) => table = inner,
            None => return Ok(Vec::new()),
        }
    }
    Ok(table
        .iter()
        .filter_map(|(key, item)| {
            let state = item.as_table_like()?;
            let text = state.get(text_member).and_then(Item::as_str).map(str::to_owned);
            let flag = state.get(flag_member).and_then(Item::as_bool);
            Some(KeyedState { key: key.to_owned(), text, flag })
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::Timeouts;

    const SWITCH: FeatureSwitch =
        FeatureSwitch { path: "config.toml", table: "features", keys: &["hooks", "codex_hooks"] };

    fn wiring() -> Wiring {
        Wiring {
            program: "/w/watchkeeper-hook".to_owned(),
            instance: crate::install::Instance::Default,
            state: "/state".to_owned(),
            timeouts: Timeouts::default(),
            shell: crate::install::Shell::Posix,
            mcp: None,
        }
    }

    fn check(before: &str, expected: Option<&str>) {
        let edit = SWITCH.install(Some(before), &wiring()).unwrap();
        match expected {
            None => assert_eq!(edit, Edit::Keep, "{before}"),
            Some(after) => {
                assert_eq!(edit, Edit::Write(after.to_owned()));
                assert_eq!(SWITCH.install(Some(after), &wiring()).unwrap(), Edit::Keep);
                let undone = SWITCH.remove(Some(after), Some(Original::Text(before))).unwrap();
                assert_eq!(undone, Edit::Write(before.to_owned()));
                assert_eq!(SWITCH.remove(Some(after), None).unwrap(), Edit::Keep);
            }
        }
    }

    #[test]
    fn only_false_is_changed() {
        check("", None);
        check("model = \"x\"\n", None);
        check("[features]\nhooks = true\n", None);
        check("[features]\nother = false\n", None);
        check("[features]\r\nhooks = false # off\r\n", Some("[features]\r\nhooks = true # off\r\n"));
        check("features = { hooks=false, a = 1 }", Some("features = { hooks=true, a = 1 }"));
        check("features.hooks   =   false", Some("features.hooks   =   true"));
        check("\u{feff}[features]\nhooks = false\n", Some("\u{feff}[features]\nhooks = true\n"));
        check(
            "[features]\ncodex_hooks = false\nhooks = false\n[x]\nhooks = false\n",
            Some("[features]\ncodex_hooks = true\nhooks = true\n[x]\nhooks = false\n"),
        );
    }

    #[test]
    fn the_undo_touches_only_what_was_turned_on() {
        let original = Original::Text("[features]\nhooks = false\n");
        let now = "[features]\nhooks = true\n[hooks.state.\"k\"]\ntrusted_hash = \"h\"\n";
        assert_eq!(
            SWITCH.remove(Some(now), Some(original)).unwrap(),
            Edit::Write(now.replace("hooks = true", "hooks = false"))
        );
        let switched_by_person = Original::Text("[features]\nhooks = true\n");
        assert_eq!(SWITCH.remove(Some(now), Some(switched_by_person)).unwrap(), Edit::Keep);
        assert_eq!(SWITCH.remove(Some("[features]\n"), Some(original)).unwrap(), Edit::Keep);
    }

    #[test]
    fn broken_and_odd_files_are_refused() {
        let refused = |text: &str| SWITCH.install(Some(text), &wiring()).unwrap_err();
        assert!(matches!(refused("a = 1\n[features\n"), Refusal::Broken { format: "TOML", line: 2, .. }));
        assert!(matches!(refused("features = 3"), Refusal::WrongType { .. }));
        assert!(matches!(refused("[features]\nhooks = \"no\""), Refusal::WrongType { .. }));
    }
}
