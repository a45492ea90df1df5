//! Watchkeeper's MCP server in an agent's own list of servers: one entry of the name `watchkeeper`, merged in, replaced
//! and taken out again as text; nothing else of the file changes.
//!
//! What an edit made of the file is compared, as values, with what it should be; an edit that did more is refused.

use jsonc_parser::ast::{Object, Value as Ast};
use serde_json::{Map, Value, json};
use toml_edit::{Item, Value as Toml};

use super::{
    ConfigFile, Edit, FeatureSwitch, Inspection, McpPlace, Original, Refusal, Wiring,
    jsonc::{Container, Document, split_mark},
    switch::parse,
};

/// The entry's name.
const NAME: &str = "watchkeeper";
/// The entry's name as JSON has it.
const KEY: &str = "\"watchkeeper\"";
/// The table of Codex's servers.
const TABLE: &str = "mcp_servers";
/// How the entry's own table begins.
const HEADER: &str = "[mcp_servers.watchkeeper]";
/// How tables below it begin.
const BELOW: &str = "[mcp_servers.watchkeeper.";

/// How the server is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpCommand {
    /// Absolute path of `watchkeeper`.
    pub program: String,
    pub arguments: Vec<String>,
}

/// Whether a program is a `watchkeeper`, of whatever folder.
fn is_ours(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    name == NAME || name.strip_suffix(".exe") == Some(NAME)
}

/// A JSON file with an object of servers by name, as Claude Code keeps them.
#[derive(Debug)]
pub(crate) struct JsonServers {
    /// Below the agent's configuration folder where that was moved.
    pub(crate) path: &'static str,
    /// Below the user's home folder otherwise.
    pub(crate) default_path: &'static str,
    /// The member that holds the servers.
    pub(crate) member: &'static str,
}

impl JsonServers {
    /// The servers and our entry's place among them, `None` where there is none.
    fn servers<'d, 'a>(&self, document: &'d Document<'a>) -> Result<Option<&'d Object<'a>>, Refusal> {
        let wrong = |key: &str| Refusal::WrongType {
            key: key.to_owned(),
            found: "something else",
            wanted: "an object",
        };
        let Some(root) = &document.root else { return Ok(None) };
        let Ast::Object(root) = root else { return Err(wrong("the whole file")) };
        match root.get(self.member).map(|member| &member.value) {
            None => Ok(None),
            Some(Ast::Object(servers)) => Ok(Some(servers)),
            Some(
                Ast::StringLit(_)
                | Ast::NumberLit(_)
                | Ast::BooleanLit(_)
                | Ast::Array(_)
                | Ast::NullKeyword(_),
            ) => Err(wrong(self.member)),
        }
    }

    fn merged(&self, body: &str, command: &McpCommand) -> Result<Edit, Refusal> {
        let empty =
            Document::parse(body)?.root.is_none().then(|| Document::parse(body).map(|d| d.with_empty_root()));
        let start = empty.transpose()?.unwrap_or_else(|| body.to_owned());
        let document = Document::parse(&start)?;
        let entry = json!({"type": "stdio", "command": command.program, "args": command.arguments});
        let before = values(&start)?;
        let edited = match self.servers(&document)? {
            None => {
                let Some(Ast::Object(root)) = &document.root else { return Err(Refusal::Unfaithful) };
                let member = format!("{}: {}", json!(self.member), json!({ NAME: entry }));
                document.append(&Container::of_object(root), &member)
            }
            Some(servers) => {
                match servers.properties.iter().position(|member| member.name.as_str() == NAME) {
                    None => {
                        let member = format!("{}: {entry}", json!(NAME));
                        document.append(&Container::of_object(servers), &member)
                    }
                    Some(_) if self.entry_of(&before) == Some(&entry) => return Ok(Edit::Keep),
                    Some(_) if !self.is_ours(&before) => return Err(Refusal::Foreign),
                    Some(at) => {
                        let container = Container::of_object(servers);
                        document.replace(container.item(at), &format!("{}: {entry}", json!(NAME)))
                    }
                }
            }
        };
        let mut wanted = before;
        if let Some(root) = wanted.as_object_mut()
            && let Some(servers) =
                root.entry(self.member).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
        {
            servers.insert(NAME.to_owned(), entry);
        }
        if values(&edited)? == wanted { Ok(Edit::Write(edited)) } else { Err(Refusal::Unfaithful) }
    }

    fn entry_of<'v>(&self, file: &'v Value) -> Option<&'v Value> {
        file.get(self.member)?.get(NAME)
    }

    fn is_ours(&self, file: &Value) -> bool {
        self.entry_of(file).and_then(|entry| entry.get("command")?.as_str()).is_some_and(is_ours)
    }

    fn without(&self, body: &str, original: Option<Original<'_>>) -> Result<Edit, Refusal> {
        let document = Document::parse(body)?;
        let Some(servers) = self.servers(&document)? else { return Ok(Edit::Keep) };
        let Some(at) = servers.properties.iter().position(|member| member.name.as_str() == NAME) else {
            return Ok(Edit::Keep);
        };
        let before = values(body)?;
        if !self.is_ours(&before) {
            return Ok(Edit::Keep);
        }
        let container = Container::of_object(servers);
        let mut wanted = before;
        let root = wanted.as_object_mut().ok_or(Refusal::Unfaithful)?;
        // The list itself was ours where the file had none without us.
        let had_none = match original {
            None => false,
            Some(Original::Absent) => true,
            Some(Original::Text(text)) => {
                values(split_mark(text).1).is_ok_and(|file| file.get(self.member).is_none())
            }
        };
        let without_us = original.and_then(Original::text).map(|text| Document::parse(split_mark(text).1));
        let without_us = without_us.and_then(Result::ok);
        let edited = if container.len() == 1 && had_none {
            let Some(Ast::Object(whole)) = &document.root else { return Err(Refusal::Unfaithful) };
            root.remove(self.member);
            if root.is_empty() && original == Some(Original::Absent) {
                return Ok(Edit::Delete);
            }
            let index = whole.properties.iter().position(|member| member.name.as_str() == self.member);
            let was = without_us.as_ref().and_then(|file| empty_text(file, file.root.as_ref()?.as_object()?));
            take_out(&document, whole, index.ok_or(Refusal::Unfaithful)?, was)
        } else {
            if let Some(servers) = root.get_mut(self.member).and_then(Value::as_object_mut) {
                servers.remove(NAME);
            }
            let was = without_us.as_ref().and_then(|file| empty_text(file, self.servers(file).ok()??));
            take_out(&document, servers, at, was)
        };
        if values(&edited)? == wanted { Ok(Edit::Write(edited)) } else { Err(Refusal::Unfaithful) }
    }
}

/// How an object without members was written.
fn empty_text(document: &Document<'_>, object: &Object<'_>) -> Option<String> {
    let text = document.text.get(Container::of_object(object).whole())?;
    object.properties.is_empty().then(|| text.to_owned())
}

/// Removes a member; an object that is empty then is written as it `was` when it was empty before.
fn take_out(document: &Document<'_>, object: &Object<'_>, index: usize, was: Option<String>) -> String {
    let container = Container::of_object(object);
    match was {
        Some(was) if container.len() == 1 => document.replace(container.whole(), &was),
        Some(_) | None => document.remove(&container, index),
    }
}

/// The file as values; what is no strict JSON is none that the agent reads.
fn values(text: &str) -> Result<Value, Refusal> {
    serde_json::from_str(text).map_err(|error| Refusal::Broken {
        format: "JSON",
        line: error.line(),
        column: error.column(),
        why: "it is not strict JSON".to_owned(),
    })
}

fn with_mark(mark: &str, edit: Edit) -> Edit {
    match edit {
        Edit::Write(text) => Edit::Write(format!("{mark}{text}")),
        Edit::Keep => Edit::Keep,
        Edit::Delete => Edit::Delete,
    }
}

impl ConfigFile for JsonServers {
    fn path(&self) -> &'static str {
        self.path
    }

    fn default_path(&self) -> Option<&'static str> {
        Some(self.default_path)
    }

    fn mcp(&self) -> McpPlace {
        McpPlace::Only
    }

    fn install(&self, current: Option<&str>, wiring: &Wiring) -> Result<Edit, Refusal> {
        let Some(command) = &wiring.mcp else { return Ok(Edit::Keep) };
        let (mark, body) = split_mark(current.unwrap_or_default());
        Ok(with_mark(mark, self.merged(body, command)?))
    }

    fn remove(&self, current: Option<&str>, original: Option<Original<'_>>) -> Result<Edit, Refusal> {
        // Most files never had the entry; those may be of whatever shape, and name a folder of ours in a path.
        let Some(text) = current.filter(|text| text.contains(KEY)) else { return Ok(Edit::Keep) };
        let (mark, body) = split_mark(text);
        Ok(with_mark(mark, self.without(body, original)?))
    }

    fn inspect(&self, _current: Option<&str>, _wiring: &Wiring) -> Result<Inspection, Refusal> {
        Ok(Inspection::default())
    }
}

/// Codex's `config.toml`: its switch, and a table of servers.
#[derive(Debug)]
pub(crate) struct SwitchAndServers {
    pub(crate) switch: FeatureSwitch,
}

impl ConfigFile for SwitchAndServers {
    fn path(&self) -> &'static str {
        self.switch.path
    }

    fn mcp(&self) -> McpPlace {
        McpPlace::Beside
    }

    fn install(&self, current: Option<&str>, wiring: &Wiring) -> Result<Edit, Refusal> {
        let first = self.switch.install(current, wiring)?;
        let Some(command) = &wiring.mcp else { return Ok(first) };
        let text = match &first {
            Edit::Write(text) => text.as_str(),
            Edit::Keep | Edit::Delete => current.unwrap_or_default(),
        };
        Ok(match merged_toml(text, command)? {
            Edit::Keep => first,
            second @ (Edit::Write(_) | Edit::Delete) => second,
        })
    }

    fn remove(&self, current: Option<&str>, original: Option<Original<'_>>) -> Result<Edit, Refusal> {
        let first = match current.filter(|text| text.contains(HEADER)) {
            Some(text) => without_toml(text)?,
            None => Edit::Keep,
        };
        let text = match &first {
            Edit::Write(text) => Some(text.as_str()),
            Edit::Keep | Edit::Delete => current,
        };
        let both = match self.switch.remove(text, original)? {
            Edit::Keep => first,
            second @ (Edit::Write(_) | Edit::Delete) => second,
        };
        Ok(match (both, original) {
            (Edit::Write(text), Some(Original::Absent)) if text.trim().is_empty() => Edit::Delete,
            (both, _) => both,
        })
    }

    fn inspect(&self, current: Option<&str>, wiring: &Wiring) -> Result<Inspection, Refusal> {
        self.switch.inspect(current, wiring)
    }
}

fn merged_toml(text: &str, command: &McpCommand) -> Result<Edit, Refusal> {
    let before = toml_values(text)?;
    let entry = json!({"command": command.program, "args": command.arguments});
    let start = match before.get(TABLE).and_then(|servers| servers.get(NAME)) {
        None => text.to_owned(),
        Some(found) if *found == entry => return Ok(Edit::Keep),
        Some(found) if !found.get("command").and_then(Value::as_str).is_some_and(is_ours) => {
            return Err(Refusal::Foreign);
        }
        Some(_) => match without_toml(text)? {
            Edit::Write(text) => text,
            Edit::Keep | Edit::Delete => return Err(Refusal::Unfaithful),
        },
    };
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let quoted = |text: &String| Toml::from(text.as_str()).to_string();
    let arguments: Vec<String> = command.arguments.iter().map(quoted).collect();
    let gap = match (start.trim().is_empty(), start.ends_with('\n')) {
        (true, _) => String::new(),
        (false, true) => newline.to_owned(),
        (false, false) => newline.repeat(2),
    };
    let lines = [
        HEADER.to_owned(),
        format!("command = {}", quoted(&command.program)),
        format!("args = [{}]", arguments.join(", ")),
        String::new(),
    ];
    let edited = format!("{start}{gap}{}", lines.join(newline));
    let mut wanted = before;
    let servers = wanted
        .as_object_mut()
        .and_then(|root| root.entry(TABLE).or_insert_with(|| Value::Object(Map::new())).as_object_mut());
    if let Some(servers) = servers {
        servers.insert(NAME.to_owned(), entry);
    }
    // A list of another form (an inline table) cannot be added to so.
    match toml_values(&edited) {
        Ok(after) if after == wanted => Ok(Edit::Write(edited)),
        Ok(_) | Err(_) => Err(Refusal::Unfaithful),
    }
}

/// Cuts our table and those below it, with the one empty line before them.
fn without_toml(text: &str) -> Result<Edit, Refusal> {
    let before = toml_values(text)?;
    let Some(found) = before.get(TABLE).and_then(|servers| servers.get(NAME)) else { return Ok(Edit::Keep) };
    if !found.get("command").and_then(Value::as_str).is_some_and(is_ours) {
        return Ok(Edit::Keep);
    }
    let mut kept: Vec<&str> = Vec::new();
    // Of our tables: comments and empty lines, which belong to what follows unless more of ours does.
    let mut undecided: Vec<&str> = Vec::new();
    let mut within = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with('[') {
            let ours = trimmed.starts_with(HEADER) || trimmed.starts_with(BELOW);
            if ours && !within && kept.last().is_some_and(|line| line.trim().is_empty()) {
                kept.pop();
            }
            if ours {
                undecided.clear();
            } else {
                kept.append(&mut undecided);
            }
            within = ours;
        }
        if !within {
            kept.push(line);
        } else if trimmed.is_empty() || trimmed.starts_with('#') {
            undecided.push(line);
        } else {
            undecided.clear();
        }
    }
    kept.append(&mut undecided);
    let edited = kept.concat();
    let mut wanted = before;
    let emptied = wanted.get_mut(TABLE).and_then(Value::as_object_mut).is_some_and(|servers| {
        servers.remove(NAME);
        servers.is_empty()
    });
    let after = toml_values(&edited)?;
    // The list itself goes with its last entry where nothing else names it.
    if emptied
        && after.get(TABLE).is_none()
        && let Some(root) = wanted.as_object_mut()
    {
        root.remove(TABLE);
    }
    if after == wanted { Ok(Edit::Write(edited)) } else { Err(Refusal::Unfaithful) }
}

/// A TOML text as values, to be compared.
fn toml_values(text: &str) -> Result<Value, Refusal> {
    let (_, document) = parse(text)?;
    let members = document.as_table().iter().map(|(key, item)| (key.to_owned(), of_item(item)));
    Ok(Value::Object(members.collect()))
}

fn of_item(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => of_value(value),
        Item::Table(table) => {
            Value::Object(table.iter().map(|(key, item)| (key.to_owned(), of_item(item))).collect())
        }
        Item::ArrayOfTables(tables) => tables
            .iter()
            .map(|table| {
                Value::Object(table.iter().map(|(key, item)| (key.to_owned(), of_item(item))).collect())
            })
            .collect(),
    }
}

fn of_value(value: &Toml) -> Value {
    match value {
        Toml::String(text) => text.value().as_str().into(),
        Toml::Integer(number) => (*number.value()).into(),
        Toml::Float(number) => number.value().to_string().into(),
        Toml::Boolean(flag) => (*flag.value()).into(),
        Toml::Datetime(time) => time.value().to_string().into(),
        Toml::Array(values) => values.iter().map(of_value).collect(),
        Toml::InlineTable(table) => {
            Value::Object(table.iter().map(|(key, value)| (key.to_owned(), of_value(value))).collect())
        }
    }
}

#[cfg(test)]
#[path = "mcp/tests.rs"]
mod tests;
