//! A JSON file with a `hooks` object: one list an event, our one entry in each. Claude Code, Codex, Gemini CLI and Qwen
//! Code share the shape with groups (`{"hooks":{"Stop":[{"hooks":[{…}]}]}}`), Copilot's lists hold the hooks themselves.
//!
//! Every change is one small edit to a freshly parsed text, repeated until nothing is left to do, so that no edit has
//! to reckon with another. Entries are appended behind foreign ones: Codex remembers trust by position.

use std::collections::BTreeSet;

use jsonc_parser::ast::{Array, Object, Value};
use watchkeeper_core::AgentKind;

use super::{
    ConfigFile, Edit, Inspection, Original, Refusal, Shell, Wiring, is_ours,
    jsonc::{Container, Document, split_mark},
};
use said::{Part, said};

mod removal;
mod said;

/// Upper bound on edits to one file: far above the events of any agent plus stray entries; at the limit the file is
/// refused.
const EDITS_MAX: usize = 1_000;

/// Whether an event's list holds hooks, or groups with a matcher that hold hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nesting {
    Groups,
    Flat,
}

/// How long the agent may have to wait for the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Stop,
    Permission,
    Short,
    /// At the agent's end, where it waits less: see [`CLOSING_S`].
    Closing,
}

/// Codex 0.171.0 cuts the timeout of SessionEnd and Interrupt hooks to this many seconds, and takes its checksum with
/// the cut value.
pub(crate) const CLOSING_S: u32 = 3;

/// One event to be told about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HookEvent {
    pub(crate) name: &'static str,
    pub(crate) wait: Wait,
    /// A failing hook here stops the agent's work, so a missing program must count as success.
    pub(crate) must_succeed: bool,
}

impl HookEvent {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, wait: Wait::Short, must_succeed: false }
    }

    pub(crate) const fn waiting(name: &'static str, wait: Wait) -> Self {
        Self { name, wait, must_succeed: false }
    }

    pub(crate) const fn must_succeed(self) -> Self {
        Self { must_succeed: true, ..self }
    }
}

/// What a number under `timeout` means to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeoutUnit {
    Seconds,
    Milliseconds,
    /// Seconds, but milliseconds from 1000 on (Qwen Code 0.24.4).
    SecondsBelow1000,
}

impl TimeoutUnit {
    fn number(self, seconds: u32) -> u64 {
        let (seconds, milliseconds) = (u64::from(seconds), u64::from(seconds) * 1000);
        match self {
            Self::Seconds => seconds,
            Self::SecondsBelow1000 if seconds < 1000 => seconds,
            Self::Milliseconds | Self::SecondsBelow1000 => milliseconds,
        }
    }
}

/// With which shell an agent runs the command on Windows; a POSIX one everywhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunsIn {
    /// A POSIX one there too.
    Posix,
    PowerShell,
    /// The one that the entry names under `shell`.
    Named,
}

/// A member that switches all hooks off, by its path from the root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OffSwitch {
    pub(crate) path: &'static [&'static str],
    /// The value that does so.
    pub(crate) value: bool,
}

impl OffSwitch {
    /// Claude Code's, and others' after it.
    pub(crate) const DISABLE_ALL: Self = Self { path: &["disableAllHooks"], value: true };

    /// Whether it is set in this way.
    fn is_set(&self, root: &Object<'_>) -> bool {
        matches!(at(root, self.path), Some(Value::BooleanLit(found)) if found.value == self.value)
    }
}

impl std::fmt::Display for OffSwitch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {}", self.path.join("."), self.value)
    }
}

/// A hooks file of one agent.
#[derive(Debug)]
pub(crate) struct HooksFile {
    pub(crate) path: &'static str,
    pub(crate) agent: AgentKind,
    pub(crate) nesting: Nesting,
    pub(crate) events: &'static [HookEvent],
    /// Members beside `hooks` that a new file needs, with their JSON.
    pub(crate) preamble: &'static [(&'static str, &'static str)],
    /// Nobody else is expected to write here: removed when nothing but the preamble is left.
    pub(crate) own: bool,
    /// The agent reads plain JSON only, and no hook at all from a file that it cannot read.
    pub(crate) strict: bool,
    pub(crate) off_switches: &'static [OffSwitch],
    /// A list of commands that the agent does not run as hooks, by its path from the root; empty where it has none.
    pub(crate) off_list: &'static [&'static str],
    pub(crate) timeout_unit: TimeoutUnit,
    pub(crate) runs_in: RunsIn,
}

impl HooksFile {
    /// The agent's own `settings.json` in Claude Code's form, which others write, too.
    pub(crate) const fn settings(agent: AgentKind, events: &'static [HookEvent]) -> Self {
        Self {
            path: "settings.json",
            agent,
            nesting: Nesting::Groups,
            events,
            preamble: &[],
            own: false,
            strict: false,
            off_switches: &[OffSwitch::DISABLE_ALL],
            off_list: &[],
            timeout_unit: TimeoutUnit::Seconds,
            runs_in: RunsIn::Posix,
        }
    }
}

/// An entry of ours, by position.
struct Hit<'d, 'a> {
    event: &'d str,
    /// Members of the root and of the `hooks` object.
    hooks_member: usize,
    event_member: usize,
    /// Index in the event's list; within the group's list for [`Nesting::Groups`].
    element: usize,
    within: Option<usize>,
    hook: &'d Object<'a>,
    /// Where the agent looks: the last of duplicate keys, a group without a matcher.
    effective: bool,
}

impl ConfigFile for HooksFile {
    fn path(&self) -> &'static str {
        self.path
    }

    fn install(&self, current: Option<&str>, wiring: &Wiring) -> Result<Edit, Refusal> {
        let before = current.unwrap_or_default();
        let (mark, body) = split_mark(before);
        let mut text = body.to_owned();
        for _ in 0..EDITS_MAX {
            match self.next_edit(&text, wiring)? {
                Some(edited) => text = edited,
                None if text == body => return Ok(Edit::Keep),
                None => {
                    self.verify(body, &text)?;
                    return Ok(Edit::Write(format!("{mark}{text}")));
                }
            }
        }
        Err(Refusal::Unfaithful)
    }

    fn remove(&self, current: Option<&str>, original: Option<Original<'_>>) -> Result<Edit, Refusal> {
        let Some(before) = current else { return Ok(Edit::Keep) };
        let (mark, body) = split_mark(before);
        let parsed = Document::parse(body);
        if parsed.is_err() && !body.contains(super::HOOK_PROGRAM) {
            // Broken, but nothing of ours is in it.
            return Ok(Edit::Keep);
        }
        drop(parsed?);
        let original_text = original.and_then(Original::text).map(|text| split_mark(text).1);
        let text = self.without_ours(body, original_text)?;
        if text == body {
            return Ok(Edit::Keep);
        }
        let nothing_left = self.is_blank(&text)?;
        Ok(match original {
            Some(Original::Absent) if nothing_left => Edit::Delete,
            None if nothing_left && self.own => Edit::Delete,
            Some(Original::Absent | Original::Text(_)) | None => Edit::Write(format!("{mark}{text}")),
        })
    }

    fn inspect(&self, current: Option<&str>, wiring: &Wiring) -> Result<Inspection, Refusal> {
        let (_, body) = split_mark(current.unwrap_or_default());
        let document = Document::parse(body)?;
        let mut inspection = Inspection::default();
        let mut seen = BTreeSet::new();
        let text = current.unwrap_or_default();
        if self.strict && !text.is_empty() && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
            inspection.disabled.push(
                "it is not plain JSON (comments, trailing commas, a byte order mark or no value), and the agent \
                 reads nothing else"
                    .to_owned(),
            );
        }
        if let Some(root) = self.root(&document)? {
            let set = self.off_switches.iter().filter(|switch| switch.is_set(root));
            inspection.disabled.extend(set.map(ToString::to_string));
            let off: BTreeSet<&str> = strings(at(root, self.off_list)).collect();
            for hit in self.hits(root) {
                if command_of(hit.hook).is_some_and(|command| off.contains(command)) {
                    inspection.switched_off.push(hit.event.to_owned());
                }
                let wanted = self.events.iter().find(|event| event.name == hit.event);
                let as_wanted = wanted.is_some_and(|event| {
                    hit.effective && self.is_current(document.text, hit.hook, event, wiring)
                });
                if as_wanted && seen.insert(hit.event.to_owned()) {
                    inspection.current.push(hit.event.to_owned());
                } else {
                    inspection.outdated.push(hit.event.to_owned());
                }
            }
        }
        let outdated: BTreeSet<&str> = inspection.outdated.iter().map(String::as_str).collect();
        inspection.missing = self
            .events
            .iter()
            .map(|event| event.name)
            .filter(|name| !seen.contains(*name) && !outdated.contains(name))
            .map(str::to_owned)
            .collect();
        Ok(inspection)
    }
}

/// Where an entry of ours stands.
pub(crate) struct Position {
    pub(crate) event: String,
    pub(crate) element: usize,
    pub(crate) within: usize,
    /// Its command and its timeout as JSON; `None` when it has other members too.
    pub(crate) says: Option<(String, String)>,
}

impl HooksFile {
    /// Our entries by position; none in a text that cannot be read.
    pub(crate) fn positions(&self, text: &str) -> Vec<Position> {
        let Ok(document) = Document::parse(split_mark(text).1) else { return Vec::new() };
        let Ok(Some(root)) = self.root(&document) else { return Vec::new() };
        let position = |hit: Hit<'_, '_>| Position {
            event: hit.event.to_owned(),
            element: hit.element,
            within: hit.within.unwrap_or_default(),
            says: says(hit.hook, document.text),
        };
        self.hits(root).into_iter().filter(|hit| hit.effective).map(position).collect()
    }

    /// The next single edit towards the installed state; `None` when it is reached.
    fn next_edit(&self, text: &str, wiring: &Wiring) -> Result<Option<String>, Refusal> {
        let document = Document::parse(text)?;
        let Some(root) = self.root(&document)? else { return Ok(Some(document.with_empty_root())) };
        for (name, value) in self.preamble {
            if last_member(root, name).is_none() {
                return Ok(Some(document.append(&Container::of_object(root), &member(name, value))));
            }
        }
        let Some((_, hooks)) = last_member(root, "hooks") else {
            return Ok(Some(document.append(&Container::of_object(root), &member("hooks", "{}"))));
        };
        let hooks = as_object(hooks, "hooks")?;

        let mut kept = BTreeSet::new();
        let mut outdated = None;
        for hit in self.hits(root) {
            let wanted = self.events.iter().find(|event| event.name == hit.event);
            let Some(event) = wanted.filter(|_| hit.effective && !kept.contains(hit.event)) else {
                return Ok(Some(self.remove_hit(&document, root, &hit, None)));
            };
            kept.insert(hit.event);
            if !self.is_current(text, hit.hook, event, wiring) {
                outdated = outdated.or(Some((hit.hook, event)));
            }
        }
        if let Some((hook, event)) = outdated {
            let span = jsonc_parser::common::Ranged::range(hook);
            return Ok(Some(document.replace(span.start..span.end, &self.hook_text(event, wiring))));
        }
        let Some(event) = self.events.iter().find(|event| !kept.contains(event.name)) else {
            return Ok(None);
        };
        let element = self.element_text(event, wiring);
        Ok(Some(match last_member(hooks, event.name) {
            Some((_, list)) => {
                let list = as_array(list, &format!("hooks.{}", event.name))?;
                document.append(&Container::of_array(list), &element)
            }
            None => {
                document.append(&Container::of_object(hooks), &member(event.name, &format!("[{element}]")))
            }
        }))
    }

    fn root<'d, 'a>(&self, document: &'d Document<'a>) -> Result<Option<&'d Object<'a>>, Refusal> {
        document.root.as_ref().map(|root| as_object(root, self.path)).transpose()
    }

    /// All entries of ours, in file order, under whatever event they stand.
    fn hits<'d, 'a>(&self, root: &'d Object<'a>) -> Vec<Hit<'d, 'a>> {
        let mut hits = Vec::new();
        let last_hooks = last_member(root, "hooks").map(|(at, _)| at);
        for (hooks_member, member) in root.properties.iter().enumerate() {
            let Value::Object(hooks) = &member.value else { continue };
            if member.name.as_str() != "hooks" {
                continue;
            }
            for (event_member, member) in hooks.properties.iter().enumerate() {
                let event = member.name.as_str();
                let Value::Array(list) = &member.value else { continue };
                let last = last_hooks == Some(hooks_member)
                    && last_member(hooks, event).map(|(at, _)| at) == Some(event_member);
                for (element, value) in list.elements.iter().enumerate() {
                    let Value::Object(object) = value else { continue };
                    let mut push = |within, hook, effective| {
                        hits.push(Hit {
                            event,
                            hooks_member,
                            event_member,
                            element,
                            within,
                            hook,
                            effective,
                        });
                    };
                    match self.nesting {
                        Nesting::Flat if names_us(object) => push(None, object, last),
                        Nesting::Flat => {}
                        Nesting::Groups => {
                            let Some(inner) = inner_list(object) else { continue };
                            for (within, hook) in inner.elements.iter().enumerate() {
                                if let Value::Object(hook) = hook
                                    && names_us(hook)
                                {
                                    push(Some(within), hook, last && matches_everything(object));
                                }
                            }
                        }
                    }
                }
            }
        }
        hits
    }

    /// The members of our entry, with their JSON.
    fn fields(&self, event: &HookEvent, wiring: &Wiring) -> Vec<(&'static str, String)> {
        let timeouts = &wiring.timeouts;
        let timeout_s = match event.wait {
            Wait::Stop => timeouts.stop_s,
            Wait::Permission => timeouts.permission_s,
            Wait::Short => timeouts.other_s,
            Wait::Closing => timeouts.other_s.min(CLOSING_S),
        };
        let shell = match self.runs_in {
            RunsIn::Posix => Shell::Posix,
            RunsIn::PowerShell | RunsIn::Named => wiring.shell,
        };
        let mut command = wiring.command(self.agent, event.name, shell);
        if event.must_succeed {
            command.push_str(match shell {
                Shell::Posix => " || true",
                Shell::PowerShell => "; exit 0",
            });
        }
        let (command_name, timeout_name) = match (self.nesting, shell) {
            (Nesting::Groups, Shell::Posix | Shell::PowerShell) => ("command", "timeout"),
            (Nesting::Flat, Shell::Posix) => ("bash", "timeoutSec"),
            (Nesting::Flat, Shell::PowerShell) => ("powershell", "timeoutSec"),
        };
        let mut fields = vec![
            ("type", "\"command\"".to_owned()),
            (command_name, serde_json::Value::String(command).to_string()),
            (timeout_name, self.timeout_unit.number(timeout_s).to_string()),
        ];
        if self.runs_in == RunsIn::Named && shell == Shell::PowerShell {
            fields.push(("shell", "\"powershell\"".to_owned()));
        }
        fields
    }

    fn hook_text(&self, event: &HookEvent, wiring: &Wiring) -> String {
        let fields = self.fields(event, wiring);
        let members: Vec<String> = fields.iter().map(|(name, value)| member(name, value)).collect();
        format!("{{{}}}", members.join(", "))
    }

    fn element_text(&self, event: &HookEvent, wiring: &Wiring) -> String {
        let hook = self.hook_text(event, wiring);
        match self.nesting {
            Nesting::Flat => hook,
            Nesting::Groups => format!("{{\"hooks\": [{hook}]}}"),
        }
    }

    /// Compares what an entry says, not how it is written: an agent may have rewritten the file in its own style.
    fn is_current(&self, text: &str, hook: &Object<'_>, event: &HookEvent, wiring: &Wiring) -> bool {
        let fields = self.fields(event, wiring);
        hook.properties.len() == fields.len()
            && fields.iter().all(|(name, wanted)| match last_member(hook, name) {
                Some((_, Value::StringLit(found))) => {
                    serde_json::from_str::<String>(wanted).is_ok_and(|wanted| wanted == found.value)
                }
                Some((_, found)) => jsonc_parser::common::Ranged::text(found, text) == wanted,
                None => false,
            })
    }

    /// Takes our entries out of both texts: what is left must say the same.
    fn verify(&self, before: &str, after: &str) -> Result<(), Refusal> {
        let said = |text: &str| -> Result<Vec<Vec<Part>>, Refusal> {
            let left = self.without_ours(text, None)?;
            let document = Document::parse(&left)?;
            Ok(document.root.as_ref().map(|root| said(root, &left)).unwrap_or_default())
        };
        let (before, mut after) = (said(before)?, said(after)?);
        let preamble = self.preamble.iter().map(|(name, value)| {
            vec![Part::Member((*name).to_owned()), Part::Leaf((*value).to_owned()), Part::End]
        });
        for ours in preamble.filter(|ours| !before.contains(ours)) {
            after.retain(|part| *part != ours);
        }
        if before == after { Ok(()) } else { Err(Refusal::Unfaithful) }
    }
}

fn member(name: &str, value: &str) -> String {
    format!("\"{name}\": {value}")
}

/// The member an agent reads: the last of its name.
fn last_member<'d, 'a>(object: &'d Object<'a>, name: &str) -> Option<(usize, &'d Value<'a>)> {
    let at = object.properties.iter().rposition(|member| member.name.as_str() == name)?;
    object.properties.get(at).map(|member| (at, &member.value))
}

/// What stands at a path of members from the root; nothing at an empty one.
fn at<'d, 'a>(root: &'d Object<'a>, path: &[&str]) -> Option<&'d Value<'a>> {
    let (last, folders) = path.split_last()?;
    let mut object = root;
    for folder in folders {
        object = last_member(object, folder)?.1.as_object()?;
    }
    last_member(object, last).map(|(_, value)| value)
}

/// The texts in a list.
fn strings<'d>(list: Option<&'d Value<'_>>) -> impl Iterator<Item = &'d str> {
    let elements = list.and_then(Value::as_array).into_iter().flat_map(|list| &list.elements);
    elements.filter_map(|element| element.as_string_lit().map(|text| &*text.value))
}

fn command_of<'d>(hook: &'d Object<'_>) -> Option<&'d str> {
    last_member(hook, "command").and_then(|(_, command)| command.as_string_lit()).map(|text| &*text.value)
}

fn inner_list<'d, 'a>(group: &'d Object<'a>) -> Option<&'d Array<'a>> {
    last_member(group, "hooks").and_then(|(_, list)| list.as_array())
}

fn names_us(hook: &Object<'_>) -> bool {
    ["command", "bash", "powershell"].iter().any(|name| {
        matches!(last_member(hook, name), Some((_, Value::StringLit(command))) if is_ours(&command.value))
    })
}

fn matches_everything(group: &Object<'_>) -> bool {
    match last_member(group, "matcher") {
        None => true,
        Some((_, matcher)) => {
            matcher.as_string_lit().is_some_and(|matcher| matches!(&*matcher.value, "" | "*"))
        }
    }
}

/// The command and the timeout of a hook that has just these and its type, as JSON.
fn says(hook: &Object<'_>, text: &str) -> Option<(String, String)> {
    let (_, command) = last_member(hook, "command")?;
    let (_, timeout) = last_member(hook, "timeout")?;
    let (_, kind) = last_member(hook, "type")?;
    let plain =
        hook.properties.len() == 3 && kind.as_string_lit().is_some_and(|kind| kind.value == "command");
    let command = serde_json::Value::String(command.as_string_lit()?.value.to_string()).to_string();
    let timeout = jsonc_parser::common::Ranged::text(timeout.as_number_lit()?, text).to_owned();
    plain.then_some((command, timeout))
}

fn as_object<'d, 'a>(value: &'d Value<'a>, key: &str) -> Result<&'d Object<'a>, Refusal> {
    value.as_object().ok_or_else(|| wrong_type(value, key, "an object"))
}

fn as_array<'d, 'a>(value: &'d Value<'a>, key: &str) -> Result<&'d Array<'a>, Refusal> {
    value.as_array().ok_or_else(|| wrong_type(value, key, "a list"))
}

fn wrong_type(value: &Value<'_>, key: &str, wanted: &'static str) -> Refusal {
    let found = match value {
        Value::StringLit(_) => "text",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "true or false",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::NullKeyword(_) => "null",
    };
    Refusal::WrongType { key: key.to_owned(), found, wanted }
}

#[cfg(test)]
mod tests;
