//! Edits of JSON with comments that leave every other byte as it was: a parse that keeps positions, and four edits
//! (replace, insert a member, append an element, remove an item), each one text to text.
//!
//! The parser is the `jsonc-parser` crate; its own editable tree re-indents what it touches, so only its positions
//! are used and all text is cut and joined here. Not known here: hooks, agents, files.

use std::ops::Range;

use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions,
    ast::{Array, Object, Value},
    common::Ranged as _,
    tokens::{Token, TokenAndRange},
};

use super::Refusal;

/// Largest file that is edited; a larger one is refused (no agent's configuration comes near it).
pub(crate) const FILE_MAX_BYTES: usize = 2 * 1024 * 1024;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// One parsed state of a text. All positions are byte offsets into `text`, which has no byte order mark.
pub(crate) struct Document<'a> {
    pub(crate) text: &'a str,
    pub(crate) root: Option<Value<'a>>,
    tokens: Vec<TokenAndRange<'a>>,
    layout: Layout,
}

/// How the file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Layout {
    newline: &'static str,
    /// One step of indentation.
    unit: String,
    /// All of the document stands on one line.
    one_line: bool,
}

/// An object or array, as the edits see it.
#[derive(Debug, Clone)]
pub(crate) struct Container {
    /// From its opening bracket to behind its closing one.
    range: Range<usize>,
    items: Vec<Range<usize>>,
}

impl Container {
    pub(crate) fn of_object(object: &Object<'_>) -> Self {
        Self { range: range(object), items: object.properties.iter().map(range).collect() }
    }

    pub(crate) fn of_array(array: &Array<'_>) -> Self {
        Self { range: range(array), items: array.elements.iter().map(range).collect() }
    }

    /// The text between its brackets.
    pub(crate) fn inner(&self) -> Range<usize> {
        self.range.start + 1..self.range.end - 1
    }

    pub(crate) fn whole(&self) -> Range<usize> {
        self.range.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The range of one item; an empty one when there is no such item.
    pub(crate) fn item(&self, index: usize) -> Range<usize> {
        self.items.get(index).cloned().unwrap_or(self.range.start..self.range.start)
    }
}

fn range(node: &impl jsonc_parser::common::Ranged) -> Range<usize> {
    node.start()..node.end()
}

fn is_comment(token: &TokenAndRange<'_>) -> bool {
    matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
}

/// Splits a byte order mark from the rest.
pub(crate) fn split_mark(text: &str) -> (&str, &str) {
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => (BYTE_ORDER_MARK, rest),
        None => ("", text),
    }
}

impl<'a> Document<'a> {
    /// Comments and trailing commas are read, nothing looser: what else the agent itself would refuse is refused.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Refusal> {
        if text.len() > FILE_MAX_BYTES {
            return Err(Refusal::TooLarge { bytes: text.len(), max_bytes: FILE_MAX_BYTES });
        }
        let parsed = jsonc_parser::parse_to_ast(
            text,
            &CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true },
            &ParseOptions {
                allow_comments: true,
                allow_trailing_commas: true,
                allow_loose_object_property_names: false,
                allow_missing_commas: false,
                allow_single_quoted_strings: false,
                allow_hexadecimal_numbers: false,
                allow_unary_plus_numbers: false,
                allow_bare_decimal_point_numbers: false,
                allow_non_finite_numbers: false,
                allow_extended_string_escapes: false,
            },
        )
        .map_err(|error| Refusal::Broken {
            format: "JSON",
            line: error.line_display(),
            column: error.column_display(),
            why: error.kind().to_string(),
        })?;
        let layout = Layout::of(text, parsed.value.as_ref());
        Ok(Self { text, root: parsed.value, tokens: parsed.tokens.unwrap_or_default(), layout })
    }

    /// The text with an empty object as its root; for a text that holds no value yet.
    pub(crate) fn with_empty_root(&self) -> String {
        let newline = self.layout.newline;
        let gap = if self.text.is_empty() || self.text.ends_with('\n') { "" } else { newline };
        format!("{}{gap}{{}}{newline}", self.text)
    }

    pub(crate) fn replace(&self, range: Range<usize>, with: &str) -> String {
        let mut out = String::with_capacity(self.text.len() + with.len());
        out.push_str(&self.text[..range.start]);
        out.push_str(with);
        out.push_str(&self.text[range.end..]);
        out
    }

    /// Appends an item (a member with its key, or an element) behind the last one.
    pub(crate) fn append(&self, container: &Container, item: &str) -> String {
        match container.items.last() {
            Some(last) => self.append_behind(container, last, item),
            None => self.append_first(container, item),
        }
    }

    fn append_behind(&self, container: &Container, last: &Range<usize>, item: &str) -> String {
        let first = container.items.first().unwrap_or(last);
        let spread = self.text[container.range.start..first.start].contains('\n');
        let trailing_comma = self
            .tokens_within(last.end..container.inner().end)
            .find(|token| matches!(token.token, Token::Comma))
            .map(|token| token.range.end);
        let behind = trailing_comma.unwrap_or(last.end);
        let (anchor, gap) = if spread {
            let indent = self.indent_of(first.start).unwrap_or_else(|| self.indent_inside(container));
            (self.behind_comments_on_line(behind, container), format!("{}{indent}", self.layout.newline))
        } else {
            (behind, " ".to_owned())
        };
        let mut out = String::with_capacity(self.text.len() + item.len() + 16);
        out.push_str(&self.text[..last.end]);
        if trailing_comma.is_none() {
            out.push(',');
        }
        out.push_str(&self.text[last.end..anchor]);
        out.push_str(&gap);
        out.push_str(item);
        if trailing_comma.is_some() {
            out.push(',');
        }
        out.push_str(&self.text[anchor..]);
        out
    }

    fn append_first(&self, container: &Container, item: &str) -> String {
        let inner = container.inner();
        let comments_end = self.tokens_within(inner.clone()).last().map(|token| token.range.end);
        let anchor = comments_end.unwrap_or(inner.start);
        let rest = &self.text[anchor..inner.end];
        // Behind a line comment only a new line is safe.
        let one_line = self.layout.one_line && comments_end.is_none();
        let (before, after) = if one_line {
            (String::new(), String::new())
        } else {
            let newline = self.layout.newline;
            let base = self.line_indent(container.range.start);
            let after = if rest.contains('\n') { String::new() } else { format!("{newline}{base}") };
            (format!("{newline}{base}{}", self.layout.unit), after)
        };
        let (head, tail) = (&self.text[..anchor], &self.text[anchor..]);
        format!("{head}{before}{item}{after}{tail}")
    }

    /// Removes one item with the white space before it and the one comma that its going makes superfluous: the
    /// exact reverse of [`Self::append`].
    pub(crate) fn remove(&self, container: &Container, index: usize) -> String {
        let Some(item) = container.items.get(index) else { return self.text.to_owned() };
        let end_of_previous = self
            .tokens_within(container.range.start..item.start)
            .last()
            .map_or(container.inner().start, |token| token.range.end);
        let behind_line_comment = self
            .tokens_within(container.range.start..item.start)
            .last()
            .is_some_and(|token| matches!(token.token, Token::CommentLine(_)));
        let next = container.items.get(index + 1).map_or(container.inner().end, |next| next.start);
        let comma_after = self.comma_within(item.end..next);
        let mut cuts = Vec::with_capacity(2);
        let mut start = end_of_previous;
        let end = match &comma_after {
            // Nothing but white space stands between the item and its comma; else the comment there stays.
            Some(comma) if self.text[item.end..comma.start].trim().is_empty() => {
                let behind = &self.text[comma.end..];
                let spaces = behind.len() - behind.trim_start_matches([' ', '\t']).len();
                // The first on a line of several: the next takes its very place.
                let close = end_of_previous == item.start && index == 0;
                comma.end + if close { spaces } else { 0 }
            }
            Some(comma) => {
                cuts.push(comma.clone());
                item.end
            }
            None => {
                if let Some(previous) = index.checked_sub(1).and_then(|before| container.items.get(before))
                    && let Some(comma) = self.comma_within(previous.end..item.start)
                {
                    cuts.push(comma);
                }
                item.end
            }
        };
        let rest = &self.text[end..];
        let line_ends = rest.trim_start_matches([' ', '\t', '\r']).starts_with('\n');
        if behind_line_comment && !line_ends {
            // The comment must not swallow what follows.
            let gap = &self.text[start..item.start];
            start += gap.find('\n').map_or(0, |at| at + 1);
        }
        cuts.push(start..end);
        cuts.sort_by_key(|cut| cut.start);
        let mut out = String::with_capacity(self.text.len());
        let mut from = 0;
        for cut in cuts {
            // The comma before the item ends where the white space before the item starts.
            out.push_str(self.text.get(from..cut.start).unwrap_or_default());
            from = from.max(cut.end);
        }
        out.push_str(&self.text[from..]);
        out
    }

    pub(crate) fn has_comments(&self) -> bool {
        self.tokens.iter().any(is_comment)
    }

    /// Whether comments stand in a container outside of one part of it.
    pub(crate) fn has_comments_beside(&self, container: &Container, part: &Range<usize>) -> bool {
        self.tokens_within(container.inner()).any(|token| {
            is_comment(token) && (token.range.end <= part.start || token.range.start >= part.end)
        })
    }

    fn comma_within(&self, within: Range<usize>) -> Option<Range<usize>> {
        self.tokens_within(within)
            .find(|token| matches!(token.token, Token::Comma))
            .map(|token| token.range.start..token.range.end)
    }

    /// Tokens, comments included, that lie wholly within a range, without the brackets at its very start.
    fn tokens_within(&self, within: Range<usize>) -> impl Iterator<Item = &TokenAndRange<'a>> {
        let from = self.tokens.partition_point(|token| token.range.start < within.start);
        self.tokens[from..].iter().take_while(move |token| token.range.end <= within.end)
    }

    /// The end of the comments that follow `from` on its own line, if nothing else does.
    fn behind_comments_on_line(&self, from: usize, container: &Container) -> usize {
        let mut end = from;
        for token in self.tokens_within(from..container.inner().end) {
            if !is_comment(token) || self.text[end..token.range.start].contains('\n') {
                break;
            }
            end = token.range.end;
        }
        end
    }

    /// The white space before a position if nothing else stands before it on its line.
    fn indent_of(&self, position: usize) -> Option<String> {
        let line = self.text[..position].rfind('\n').map_or(0, |at| at + 1);
        let before = &self.text[line..position];
        before.chars().all(|c| c == ' ' || c == '\t').then(|| before.to_owned())
    }

    fn indent_inside(&self, container: &Container) -> String {
        format!("{}{}", self.line_indent(container.range.start), self.layout.unit)
    }

    /// The white space that the line of a position begins with.
    fn line_indent(&self, position: usize) -> &'a str {
        let line = self.text[..position].rfind('\n').map_or(0, |at| at + 1);
        let text = &self.text[line..position];
        let width = text.len() - text.trim_start_matches([' ', '\t']).len();
        &text[..width]
    }
}

impl Layout {
    fn of(text: &str, root: Option<&Value<'_>>) -> Self {
        let newline = match text.find('\n') {
            Some(at) if text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let first_item = root.and_then(Value::as_object).and_then(|object| object.properties.first());
        let unit = first_item
            .and_then(|item| {
                let line = text[..item.start()].rfind('\n')? + 1;
                let before = &text[line..item.start()];
                (!before.is_empty() && before.chars().all(|c| c == ' ' || c == '\t')).then_some(before)
            })
            .unwrap_or("  ");
        Self { newline, unit: unit.to_owned(), one_line: first_item.is_some() && !text.trim().contains('\n') }
    }
}

#[cfg(test)]
#[path = "jsonc/tests.rs"]
mod tests;
