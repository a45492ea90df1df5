//! Random foreign files, written in random styles, through the whole life of our entries.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::*;

/// How a generated value is written down: a tape of choices, read again from its start when it is used up.
#[derive(Debug, Clone)]
struct Style {
    tape: Vec<u8>,
    crlf: bool,
    trailing_commas: bool,
    comments: bool,
    dense: bool,
}

struct Writer<'s> {
    style: &'s Style,
    at: usize,
    out: String,
}

impl Writer<'_> {
    fn choice(&mut self, of: u8) -> u8 {
        let tape = &self.style.tape;
        let byte = tape.get(self.at % tape.len().max(1)).copied().unwrap_or_default();
        self.at += 1;
        byte % of
    }

    fn newline(&self) -> &'static str {
        if self.style.crlf { "\r\n" } else { "\n" }
    }

    /// White space and comments between two tokens.
    fn trivia(&mut self) {
        if self.style.dense {
            return;
        }
        for _ in 0..self.choice(3) {
            match self.choice(if self.style.comments { 7 } else { 5 }) {
                0 | 1 => self.out.push(' '),
                2 => self.out.push('\t'),
                3 | 4 => {
                    let newline = self.newline();
                    let spaces = usize::from(self.choice(9));
                    self.out.push_str(newline);
                    self.out.push_str(&" ".repeat(spaces));
                }
                5 => self.out.push_str("/* , \" ] */"),
                _ => {
                    let newline = self.newline();
                    self.out.push_str("// it's \"x\", ]");
                    self.out.push_str(newline);
                }
            }
        }
    }

    fn list<T>(&mut self, open: char, close: char, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.out.push(open);
        for (at, each) in items.iter().enumerate() {
            self.trivia();
            item(self, each);
            self.trivia();
            let last = at + 1 == items.len();
            if !last || (self.style.trailing_commas && self.choice(2) == 0) {
                self.out.push(',');
            }
        }
        self.trivia();
        self.out.push(close);
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Leaf(value) => self.out.push_str(&value.to_string()),
            Node::List(items) => self.list('[', ']', items, Self::node),
            Node::Object(members) => self.list('{', '}', members, |writer, (key, value)| {
                writer.out.push_str(&Value::from(key.as_str()).to_string());
                writer.trivia();
                writer.out.push(':');
                writer.trivia();
                writer.node(value);
            }),
        }
    }
}

/// A JSON value that keeps duplicate keys.
#[derive(Debug, Clone)]
enum Node {
    Leaf(Value),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

fn leaf() -> impl Strategy<Value = Node> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~äß€\\n\"\\\\]{0,12}".prop_map(Value::from),
        Just(json!("// no comment, ] } watchkeeper-hook")),
    ]
    .prop_map(Node::Leaf)
}

fn any_node() -> impl Strategy<Value = Node> {
    leaf().prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Node::List),
            vec(("[a-c\"]{0,2}", inner), 0..4).prop_map(Node::Object),
        ]
    })
}

fn text(value: &str) -> Node {
    Node::Leaf(Value::from(value))
}

fn foreign_hook() -> impl Strategy<Value = Node> {
    let command = prop_oneof![
        Just("beep"),
        Just("/x/my-watchkeeper-hook claude Stop"),
        Just("echo watchkeeper-hook"),
        Just("/x/watchkeeper-hook-old claude Stop"),
    ];
    command.prop_map(|command| {
        Node::Object(vec![
            ("type".to_owned(), text("command")),
            ("command".to_owned(), text(command)),
            ("timeout".to_owned(), Node::Leaf(json!(5))),
        ])
    })
}

fn foreign_group() -> impl Strategy<Value = Node> {
    prop_oneof![
        6 => (prop::option::of("[a-z*]{0,3}"), vec(foreign_hook(), 0..3)).prop_map(|(matcher, hooks)| {
            let mut members = Vec::new();
            members.extend(matcher.map(|matcher| ("matcher".to_owned(), text(&matcher))));
            members.push(("hooks".to_owned(), Node::List(hooks)));
            Node::Object(members)
        }),
        1 => any_node(),
    ]
}

fn foreign_hooks() -> impl Strategy<Value = Node> {
    let event = prop_oneof![Just("Stop"), Just("PreToolUse"), Just("SessionEnd"), Just("MessageDisplay")];
    vec((event, vec(foreign_group(), 0..3).prop_map(Node::List)), 0..4).prop_map(|events| {
        Node::Object(events.into_iter().map(|(event, list)| (event.to_owned(), list)).collect())
    })
}

fn foreign_root() -> impl Strategy<Value = Node> {
    let member = prop_oneof![
        3 => ("[a-d]{1,3}", any_node()),
        1 => (Just("hooks".to_owned()), foreign_hooks()),
    ];
    vec(member, 0..5).prop_map(Node::Object)
}

fn style() -> impl Strategy<Value = Style> {
    (vec(any::<u8>(), 1..40), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(tape, crlf, trailing_commas, comments, dense)| Style {
            tape,
            crlf,
            trailing_commas,
            comments,
            dense,
        },
    )
}

/// A foreign file, and whether its root has members.
fn foreign_file() -> impl Strategy<Value = (String, bool)> {
    (foreign_root(), style(), any::<bool>()).prop_map(|(root, style, mark)| {
        let filled = matches!(&root, Node::Object(members) if !members.is_empty());
        let mut writer = Writer { style: &style, at: 0, out: String::new() };
        if mark {
            writer.out.push('\u{feff}');
        }
        writer.trivia();
        writer.node(&root);
        writer.trivia();
        (writer.out, filled)
    })
}

/// An own reading of JSON with comments, so that the parser under test is not its own judge.
fn read(text: &str) -> Value {
    let mut plain = String::new();
    let mut chars = text.trim_start_matches('\u{feff}').chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('"', _) => {
                plain.push('"');
                while let Some(c) = chars.next() {
                    plain.push(c);
                    match c {
                        '\\' => plain.extend(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => while chars.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) => {
                let mut before = ' ';
                chars.next();
                for c in chars.by_ref() {
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
            }
            (']' | '}', _) => {
                let kept = plain.trim_end();
                if kept.ends_with(',') {
                    plain.truncate(kept.len() - 1);
                }
                plain.push(c);
            }
            _ => plain.push(c),
        }
    }
    serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

/// The value without our groups, and without lists and objects that are empty.
fn foreign_part(mut value: Value) -> Value {
    if let Some(events) = value.get_mut("hooks").and_then(Value::as_object_mut) {
        for list in events.values_mut() {
            if let Some(list) = list.as_array_mut() {
                list.retain(|group| {
                    let command = group.pointer("/hooks/0/command").and_then(Value::as_str);
                    command.is_none_or(|command| !command.starts_with("\"/opt/w k/watchkeeper-hook\""))
                });
            }
        }
        events.retain(|_, list| list.as_array().is_none_or(|list| !list.is_empty()));
        if events.is_empty() {
            value.as_object_mut().unwrap().remove("hooks");
        }
    }
    value
}

fn is_subsequence(part: &str, whole: &str) -> bool {
    let mut bytes = whole.bytes();
    part.bytes().all(|wanted| bytes.any(|found| found == wanted))
}

/// Agents whose own settings the entries stand in.
const MERGED: [&Installer; 3] = [&CLAUDE, &GEMINI, &QWEN];

/// `PROPTEST_CASES` overrides the number (`cargo xtask explore`).
fn cases(n: u32) -> ProptestConfig {
    let wanted = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { wanted.cases } else { n };
    ProptestConfig { cases, failure_persistence: None, ..wanted }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_foreign_file_keeps_every_byte(
        (before, filled) in foreign_file(), agent in prop::sample::select(&MERGED[..]),
    ) {
        let file = super::file(agent);
        let after = check_round_trip(file, &before);
        prop_assert!(is_subsequence(&before, &after), "{before}\n--\n{after}");
        if before.contains("\r\n") {
            prop_assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
        }

        // Exactly ours was added.
        let value = read(&after);
        prop_assert_eq!(foreign_part(value.clone()), foreign_part(read(&before)));
        for event in file.inspect(Some(&after), &wiring()).unwrap().current {
            let list = value["hooks"][&event].as_array().unwrap();
            let wanted = format!("\"/opt/w k/watchkeeper-hook\" {} {event}", agent.agent.name());
            let ours = list.iter().filter(|group| group["hooks"][0]["command"] == wanted.as_str());
            prop_assert_eq!(ours.count(), 1);
        }

        // Somebody else adds a member.
        let add = |text: &str| text.replacen('{', "{\"zz\":[1],", 1);
        let now = file.remove(Some(&add(&after)), Some(Original::Text(&before))).unwrap();
        let Edit::Write(now) = now else { panic!("{now:?}") };
        if filled {
            prop_assert_eq!(&now, &add(&before));
        } else {
            prop_assert_eq!(read(&now), read(&add(&before)));
        }

        // Without a receipt nothing but empty containers of ours goes with our entries.
        let Edit::Write(bare) = file.remove(Some(&after), None).unwrap() else { panic!("nothing written") };
        prop_assert_eq!(foreign_part(read(&bare)), foreign_part(read(&before)));
        prop_assert_eq!(file.remove(Some(&bare), None).unwrap(), Edit::Keep);

        // An upgrade, and its undo.
        let moved = Wiring { program: "/new/watchkeeper-hook".to_owned(), ..wiring() };
        let Edit::Write(upgraded) = file.install(Some(&after), &moved).unwrap() else { panic!("nothing written") };
        prop_assert!(file.inspect(Some(&upgraded), &moved).unwrap().is_current());
        let removed = file.remove(Some(&upgraded), Some(Original::Text(&before))).unwrap();
        prop_assert_eq!(removed, Edit::Write(before));
    }

    /// Cut and spoiled files are edited or refused, and what is edited can be read again.
    #[test]
    fn a_spoiled_file_is_never_made_worse(
        (file, _) in foreign_file(), at in any::<prop::sample::Index>(), spoil in "[{}\\[\\],:\"/* \n]{0,2}", cut in any::<bool>(),
    ) {
        let at = at.index(file.len() + 1);
        let at = (0..=at).rev().find(|at| file.is_char_boundary(*at)).unwrap();
        let spoiled = if cut { file[..at].to_owned() } else { format!("{}{spoil}{}", &file[..at], &file[at..]) };
        for agent in AGENTS {
            let file = super::file(agent);
            if let Ok(Edit::Write(after)) = file.install(Some(&spoiled), &wiring()) {
                prop_assert!(file.inspect(Some(&after), &wiring()).unwrap().is_current());
                prop_assert_eq!(
                    file.remove(Some(&after), Some(Original::Text(&spoiled))).unwrap(),
                    Edit::Write(spoiled.clone())
                );
            }
            drop(file.inspect(Some(&spoiled), &wiring()));
            prop_assert_eq!(file.remove(Some(&spoiled), None).unwrap_or(Edit::Keep), Edit::Keep);
        }
    }

    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        for agent in AGENTS {
            for file in agent.files {
                drop(file.install(Some(&text), &wiring()));
                drop(file.remove(Some(&text), Some(Original::Text(&text))));
                drop(file.inspect(Some(&text), &wiring()));
            }
            drop(agent.trust.map(|trust| trust("/h", &[Some(&text), Some(&text)])));
        }
    }
}
