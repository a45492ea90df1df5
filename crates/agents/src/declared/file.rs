//! Reads an adapter file. Everything in it is checked, and all that is wrong is said at once.

use std::sync::Arc;

use serde_json::Value as Json;
use toml_edit::{Document, Item, Key, TableLike, Value};
use watchkeeper_core::{AgentKind, DeclaredName, signal::WorkKind};

use super::{
    Declared, Process,
    problem::{Problem, ProblemKind},
    rules::{Field, FieldPath, KINDS, Rule, Section, WORDS, Word},
};
use crate::{json::clipped, nearest::nearest};

/// A larger file is refused: nobody writes that much by hand.
pub const FILE_BYTES_MAX: usize = 64 * 1024;
/// Problems said of one file; further ones are left out.
const PROBLEMS_MAX: usize = 16;
/// Problems looked for, of which the first of the text are said; the rest of a hostile file is not worth its time.
const PROBLEMS_SOUGHT_MAX: usize = 16 * PROBLEMS_MAX;
/// Rules in one section; more are refused.
const RULES_MAX: usize = 128;
/// Words in one list; more are refused.
const WORDS_MAX: usize = 32;
/// Conditions of one rule; more are refused.
const CONDITIONS_MAX: usize = 8;
/// Steps of one path; a longer one is refused.
const STEPS_MAX: usize = 8;
/// Longest text.
const TEXT_BYTES_MAX: usize = 256;
/// How much of a bad value is repeated.
const GIVEN_BYTES_MAX: usize = 64;
/// Programs that run anything: none of them is an agent.
const INTERPRETERS: [&str; 10] =
    ["node", "bun", "deno", "python", "python3", "ruby", "sh", "bash", "zsh", "electron"];

const TOP: &[&str] = &["agent", "process", "hooks", "transcript"];
const PROCESS: &[&str] = &["names", "path_contains", "scripts", "helpers", "shared", "print_options"];
const SCRIPT: &[&str] = &["interpreter", "path"];
const HOOKS: &[(&str, Field)] = &[
    ("event", Field::Event),
    ("session", Field::Session),
    ("turn", Field::Turn),
    ("subagent", Field::Subagent),
    ("cwd", Field::Cwd),
    ("transcript", Field::Transcript),
    ("version", Field::Version),
    ("title", Field::Title),
    ("time", Field::Time),
    ("prompt", Field::Prompt),
    ("message", Field::Message),
    ("tool", Field::Tool),
    ("call", Field::Call),
    ("work", Field::Work),
    ("label", Field::Label),
];
const HOOKS_KEYS: &[&str] = &[
    "event",
    "session",
    "turn",
    "subagent",
    "cwd",
    "transcript",
    "version",
    "title",
    "time",
    "prompt",
    "message",
    "tool",
    "call",
    "work",
    "label",
    "signals",
];
const TRANSCRIPT: &[(&str, Field)] = &[
    ("turn", Field::Turn),
    ("subagent", Field::Subagent),
    ("title", Field::Title),
    ("time", Field::Time),
    ("prompt", Field::Prompt),
    ("message", Field::Message),
    ("tool", Field::Tool),
    ("call", Field::Call),
    ("work", Field::Work),
    ("label", Field::Label),
];
const TRANSCRIPT_KEYS: &[&str] =
    &["turn", "subagent", "title", "time", "prompt", "message", "tool", "call", "work", "label", "signals"];
const HOOK_RULE: &[&str] = &["event", "when", "signal", "kind"];
const RECORD_RULE: &[&str] = &["when", "signal", "kind"];

pub(super) fn parse(text: &str) -> Result<Declared, Vec<Problem>> {
    let whole = |line, kind| vec![Problem { line, key: String::new(), kind }];
    if text.len() > FILE_BYTES_MAX {
        return Err(whole(None, ProblemKind::TooLarge { bytes: text.len(), limit: FILE_BYTES_MAX }));
    }
    let document = Document::parse(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        let line = error.span().map(|span| line_of(text, span.start));
        whole(line, ProblemKind::Syntax { message })
    })?;
    let mut checker = Checker { text, problems: Vec::new() };
    let declared = checker.file(document.as_table());
    let mut problems = checker.problems;
    problems.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
    problems.truncate(PROBLEMS_MAX);
    match declared {
        Some(declared) if problems.is_empty() => Ok(declared),
        _ => Err(problems),
    }
}

fn line_of(text: &str, byte: usize) -> usize {
    text.as_bytes().iter().take(byte).filter(|b| **b == b'\n').count() + 1
}

/// A table with its name, for what is said of it.
#[derive(Clone, Copy)]
struct Place<'a> {
    table: &'a dyn TableLike,
    name: &'a str,
}

impl Place<'_> {
    fn key(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}

struct Checker<'a> {
    text: &'a str,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn file(&mut self, table: &dyn TableLike) -> Option<Declared> {
        let top = Place { table, name: "" };
        self.only(top, TOP);
        let kind = self.kind(top);
        let process = match self.table(top, "process", "how its process is found") {
            Some(table) => self.process(Place { table, name: "process" }),
            None => Process::default(),
        };
        let hooks = match self.table(top, "hooks", "where its hooks' fields are, and what their events mean")
        {
            Some(table) => self.section(Place { table, name: "hooks" }, HOOKS, HOOKS_KEYS, true),
            None => Section::default(),
        };
        let transcript = match table.get("transcript") {
            None => None,
            Some(_) => self.table(top, "transcript", "").map(|table| {
                self.section(Place { table, name: "transcript" }, TRANSCRIPT, TRANSCRIPT_KEYS, false)
            }),
        };
        if transcript.is_some() && !hooks.fields.iter().any(|(field, _)| *field == Field::Transcript) {
            let hooks = table.get("hooks").and_then(Item::as_table_like).unwrap_or(table);
            self.missing(
                Place { table: hooks, name: "hooks" },
                "transcript",
                "the field that names the transcript's file",
            );
        }
        let words = || {
            hooks
                .rules
                .iter()
                .chain(transcript.iter().flat_map(|section| &section.rules))
                .map(|rule| rule.word)
        };
        // A rule that cannot be read may be the one that is missed.
        if self.problems.is_empty()
            && words().any(|word| word == Word::TurnStarted)
            && !words().any(Word::ends_a_turn)
        {
            let what = "something starts a turn, so something must end it \
                        (turn_ended, turn_aborted, turn_failed, idle or session_ended)";
            self.missing(top, "hooks.signals", what);
        }
        Some(Declared { kind: kind?, process, hooks, transcript: transcript.map(Arc::new) })
    }

    fn kind(&mut self, top: Place<'_>) -> Option<AgentKind> {
        let Some(name) = self.text(top, "agent") else {
            if top.table.get("agent").is_none() {
                self.missing(top, "agent", "the agent's name, as in 'watchkeeper-hook NAME EVENT'");
            }
            return None;
        };
        if let Some(name) = DeclaredName::new(&name).filter(|known| known.as_str() == name) {
            return Some(AgentKind::Declared(name));
        }
        let expected = if name.parse::<AgentKind>().is_ok() {
            "a name that no built-in agent has".to_owned()
        } else {
            let limit = DeclaredName::BYTES_MAX;
            format!("2 to {limit} lower-case letters, digits and '-', a letter first")
        };
        self.bad(top, "agent", &format!("'{name}'"), expected, None);
        None
    }

    fn process(&mut self, place: Place<'_>) -> Process {
        self.only(place, PROCESS);
        let process = Process {
            names: self.list(place, "names"),
            path_contains: self.list(place, "path_contains"),
            scripts: self.scripts(place),
            helpers: self.list(place, "helpers"),
            shared: self.list(place, "shared"),
            print_options: self.list(place, "print_options"),
        };
        for name in &process.names {
            if INTERPRETERS.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                let expected =
                    "the name of the agent's own program; a script stands under 'scripts'".to_owned();
                self.bad(place, "names", &format!("'{name}'"), expected, None);
            }
        }
        let is_given = PROCESS[..3].iter().any(|key| place.table.get(key).is_some());
        if !is_given {
            self.missing(place, "names", "its program's names, or 'path_contains', or 'scripts'");
        }
        process
    }

    fn scripts(&mut self, place: Place<'_>) -> Vec<(String, String)> {
        let name = place.key("scripts");
        let mut scripts = Vec::new();
        for table in self.tables(place, "scripts", WORDS_MAX) {
            let script = Place { table, name: &name };
            self.only(script, SCRIPT);
            for key in SCRIPT {
                if table.get(key).is_none() {
                    self.missing(
                        script,
                        key,
                        "both the interpreter and the end of the script's path are needed",
                    );
                }
            }
            if let (Some(interpreter), Some(path)) =
                (self.text(script, "interpreter"), self.text(script, "path"))
            {
                scripts.push((interpreter, path));
            }
        }
        scripts
    }

    fn section(
        &mut self,
        place: Place<'_>,
        fields: &[(&str, Field)],
        keys: &'static [&'static str],
        is_hooks: bool,
    ) -> Section {
        self.only(place, keys);
        let mut section = Section::default();
        for (key, field) in fields {
            if let Some(text) = self.text(place, key)
                && let Some(path) = self.path(place, key, &text)
            {
                section.fields.push((*field, path));
            }
        }
        if is_hooks && place.table.get("session").is_none() {
            self.missing(place, "session", "the field that has the session's id");
        }
        let name = place.key("signals");
        let tables = self.tables(place, "signals", RULES_MAX);
        if tables.is_empty() && place.table.get("signals").is_none() {
            self.missing(place, "signals", "what its events mean, each with 'signal'");
        }
        for table in tables {
            let at = Place { table, name: &name };
            let Some(rule) = self.rule(at, is_hooks) else { continue };
            if let Some((field, key)) = rule.word.needs()
                && !section.fields.iter().any(|(known, _)| *known == field)
                && place.table.get(key).is_none()
            {
                self.missing(place, key, "a signal needs the field that has it");
            }
            let hides = |earlier: &Rule| earlier.event == rule.event && earlier.when.is_empty();
            if is_hooks && section.rules.iter().any(hides) {
                self.push(at, if is_hooks { "event" } else { "when" }, ProblemKind::Unreachable);
            }
            section.rules.push(rule);
        }
        section
    }

    fn rule(&mut self, place: Place<'_>, is_hook: bool) -> Option<Rule> {
        self.only(place, if is_hook { HOOK_RULE } else { RECORD_RULE });
        let event = is_hook.then(|| self.needed(place, "event", "the event's name as the agent gives it"));
        let when = self.when(place);
        if !is_hook && !when.iter().any(|(_, wanted)| wanted.is_string()) {
            self.missing(
                place,
                "when",
                "a text by which the record is told from others, as { type = \"user\" }",
            );
        }
        let word = self.needed(place, "signal", "what it means")?;
        let word = self.choice(place, "signal", &word, &WORDS)?;
        let kind = match self.text(place, "kind") {
            None => WorkKind::Shell,
            Some(kind) => self.choice(place, "kind", &kind, &KINDS)?,
        };
        let event = match event {
            Some(event) => Some(event?),
            None => None,
        };
        Some(Rule { event, when, word, kind })
    }

    fn when(&mut self, place: Place<'_>) -> Vec<(FieldPath, Json)> {
        if place.table.get("when").is_none() {
            return Vec::new();
        }
        let Some(table) = self.table(place, "when", "") else { return Vec::new() };
        if table.len() > CONDITIONS_MAX {
            self.push(place, "when", ProblemKind::TooMany { limit: CONDITIONS_MAX });
            return Vec::new();
        }
        let name = place.key("when");
        let at = Place { table, name: &name };
        let mut conditions = Vec::new();
        for (key, item) in table.iter() {
            let wanted = match item.as_value() {
                Some(Value::String(text)) if text.value().len() <= TEXT_BYTES_MAX => {
                    Some(Json::from(text.value().as_str()))
                }
                Some(Value::Integer(number)) => Some(Json::from(*number.value())),
                Some(Value::Boolean(truth)) => Some(Json::from(*truth.value())),
                Some(_) | None => None,
            };
            let Some(wanted) = wanted else {
                let expected =
                    format!("text of at most {TEXT_BYTES_MAX} bytes, a whole number, true or false");
                self.bad(at, key, &given(item), expected, None);
                continue;
            };
            if let Some(path) = self.path(at, key, key) {
                conditions.push((path, wanted));
            }
        }
        conditions
    }

    /// A path like `message.content.0.type`.
    fn path(&mut self, place: Place<'_>, key: &str, text: &str) -> Option<FieldPath> {
        let steps: Vec<String> = text.split('.').map(str::to_owned).collect();
        if steps.len() <= STEPS_MAX && !steps.iter().any(String::is_empty) {
            return Some(FieldPath(steps));
        }
        let expected = format!("1 to {STEPS_MAX} names of fields with dots between, as 'message.id'");
        self.bad(place, key, &format!("'{text}'"), expected, None);
        None
    }

    fn choice<T: Copy>(
        &mut self,
        place: Place<'_>,
        key: &str,
        given: &str,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        if let Some((_, choice)) = choices.iter().find(|(word, _)| *word == given) {
            return Some(*choice);
        }
        let words: Vec<&'static str> = choices.iter().map(|(word, _)| *word).collect();
        let meant = nearest(given, words.iter().copied());
        self.bad(place, key, &format!("'{given}'"), words.join(", "), meant);
        None
    }

    fn only(&mut self, place: Place<'_>, allowed: &'static [&'static str]) {
        for (key, _) in place.table.iter() {
            if self.has_enough() {
                return;
            }
            if !allowed.contains(&key) {
                let nearest = nearest(key, allowed.iter().copied());
                let shown = clipped(key, GIVEN_BYTES_MAX).to_owned();
                let line = self.line(place.table, key);
                let kind = ProblemKind::UnknownKey { allowed, nearest };
                self.problems.push(Problem { line, key: place.key(&shown), kind });
            }
        }
    }

    /// A table that must be there.
    fn table<'t>(&mut self, place: Place<'t>, key: &str, what: &'static str) -> Option<&'t dyn TableLike> {
        let Some(item) = place.table.get(key) else {
            self.missing(place, key, what);
            return None;
        };
        let table = item.as_table_like();
        if table.is_none() {
            self.bad(place, key, &given(item), "a table".to_owned(), None);
        }
        table
    }

    /// A list of tables, written either way.
    fn tables<'t>(&mut self, place: Place<'t>, key: &str, limit: usize) -> Vec<&'t dyn TableLike> {
        let Some(item) = place.table.get(key) else { return Vec::new() };
        let tables: Option<Vec<&dyn TableLike>> = match item {
            Item::ArrayOfTables(tables) => Some(tables.iter().map(|table| table as &dyn TableLike).collect()),
            Item::Value(Value::Array(items)) => {
                items.iter().map(|item| item.as_inline_table().map(|table| table as &dyn TableLike)).collect()
            }
            Item::Value(_) | Item::Table(_) | Item::None => None,
        };
        match tables {
            Some(tables) if tables.len() <= limit => tables,
            Some(_) => {
                self.push(place, key, ProblemKind::TooMany { limit });
                Vec::new()
            }
            None => {
                self.bad(place, key, &given(item), "a list of tables".to_owned(), None);
                Vec::new()
            }
        }
    }

    fn list(&mut self, place: Place<'_>, key: &str) -> Vec<String> {
        let Some(item) = place.table.get(key) else { return Vec::new() };
        let texts: Option<Vec<String>> = item.as_array().and_then(|items| {
            items.iter().map(|item| item.as_str().filter(|text| is_text(text)).map(str::to_owned)).collect()
        });
        match texts {
            Some(texts) if texts.len() > WORDS_MAX => {
                self.push(place, key, ProblemKind::TooMany { limit: WORDS_MAX });
                Vec::new()
            }
            Some(texts) if !texts.is_empty() => texts,
            Some(_) | None => {
                let expected = format!("a list of texts of 1 to {TEXT_BYTES_MAX} bytes");
                self.bad(place, key, &given(item), expected, None);
                Vec::new()
            }
        }
    }

    /// A text, when it is there; anything else is a problem.
    fn text(&mut self, place: Place<'_>, key: &str) -> Option<String> {
        let item = place.table.get(key)?;
        match item.as_str().filter(|text| is_text(text)) {
            Some(text) => Some(text.to_owned()),
            None => {
                self.bad(place, key, &given(item), format!("a text of 1 to {TEXT_BYTES_MAX} bytes"), None);
                None
            }
        }
    }

    fn needed(&mut self, place: Place<'_>, key: &str, what: &'static str) -> Option<String> {
        if place.table.get(key).is_none() {
            self.missing(place, key, what);
        }
        self.text(place, key)
    }

    fn missing(&mut self, place: Place<'_>, key: &str, what: &'static str) {
        let known = self
            .problems
            .iter()
            .any(|p| p.key == place.key(key) && matches!(p.kind, ProblemKind::Missing { .. }));
        if !known || place.name.ends_with("signals") {
            self.push(place, key, ProblemKind::Missing { what });
        }
    }

    fn bad(
        &mut self,
        place: Place<'_>,
        key: &str,
        given: &str,
        expected: String,
        nearest: Option<&'static str>,
    ) {
        let given = clipped(given, GIVEN_BYTES_MAX).chars().filter(|c| !c.is_control()).collect();
        self.push(place, key, ProblemKind::BadValue { given, expected, nearest });
    }

    fn push(&mut self, place: Place<'_>, key: &str, kind: ProblemKind) {
        if self.has_enough() {
            return;
        }
        let line = self.line(place.table, key);
        self.problems.push(Problem { line, key: place.key(key), kind });
    }

    const fn has_enough(&self) -> bool {
        self.problems.len() >= PROBLEMS_SOUGHT_MAX
    }

    /// The line of a key, else the first line of anything in its table.
    fn line(&self, table: &dyn TableLike, key: &str) -> Option<usize> {
        let span = |key: &Key| key.span();
        let own = table.get_key_value(key).and_then(|(key, item)| span(key).or_else(|| item.span()));
        let any =
            || table.iter().filter_map(|(key, _)| span(table.get_key_value(key)?.0)).min_by_key(|s| s.start);
        own.or_else(any).map(|span| line_of(self.text, span.start))
    }
}

fn is_text(text: &str) -> bool {
    !text.is_empty() && text.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control)
}

/// A bad value as far as it is repeated.
fn given(item: &Item) -> String {
    match item.as_str() {
        Some(text) => format!("'{}'", clipped(text, GIVEN_BYTES_MAX)),
        None => format!("of type {}", item.type_name()),
    }
}
