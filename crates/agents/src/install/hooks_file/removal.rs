//! Taking our entries out: the entry, then each container around it that is left empty, unless the file without us
//! had that container (then it gets back the very bytes it had) or somebody put a comment into it.

use jsonc_parser::ast::{Array, Object, Value};

use super::{EDITS_MAX, Hit, HooksFile, Nesting, inner_list, last_member};
use crate::install::{
    Refusal,
    jsonc::{Container, Document},
};

impl HooksFile {
    /// The text without any entry of ours. `original`: the file as it was without us, if known.
    pub(super) fn without_ours(&self, text: &str, original: Option<&str>) -> Result<String, Refusal> {
        // What cannot be read says nothing about containers.
        let original = original.and_then(|text| Document::parse(text).ok());
        let mut text = text.to_owned();
        for _ in 0..EDITS_MAX {
            let document = Document::parse(&text)?;
            let Some(root) = self.root(&document)? else { return Ok(text) };
            let edited = match self.hits(root).into_iter().next() {
                Some(hit) => self.remove_hit(&document, root, &hit, original.as_ref()),
                None => {
                    match original.as_ref().and_then(|original| self.remove_rest(&document, root, original)) {
                        Some(edited) => edited,
                        None => return Ok(text),
                    }
                }
            };
            if edited == text {
                return Err(Refusal::Unfaithful);
            }
            text = edited;
        }
        Err(Refusal::Unfaithful)
    }

    /// Beyond our entries: what a new file of ours starts with, and the root itself, where the file without us had
    /// neither. `None` when nothing is left to do.
    fn remove_rest(
        &self,
        document: &Document<'_>,
        root: &Object<'_>,
        original: &Document<'_>,
    ) -> Option<String> {
        let original_root = original.root.as_ref().and_then(Value::as_object);
        let members = Container::of_object(root);
        let held = |name: &str| original_root.is_some_and(|root| last_member(root, name).is_some());
        for (name, _) in self.preamble.iter().filter(|(name, _)| !held(name)) {
            if let Some((at, _)) = last_member(root, name) {
                let inner = original_root.map_or(Inner::Held, |root| inner_text(original, &of_object(root)));
                return empty_out(document, &members, at, Some(inner));
            }
        }
        let bare = original.root.is_none()
            && members.len() == 0
            && dense(document.text) == format!("{}{{}}", dense(original.text));
        bare.then(|| original.text.to_owned())
    }

    /// Whether a text holds nothing beyond an empty root and what a new file of ours starts with.
    pub(super) fn is_blank(&self, text: &str) -> Result<bool, Refusal> {
        let document = Document::parse(text)?;
        let Some(root) = self.root(&document)? else { return Ok(true) };
        let only_ours = root.properties.iter().all(|member| {
            let value = jsonc_parser::common::Ranged::text(&member.value, text);
            self.preamble.iter().any(|(name, ours)| *name == member.name.as_str() && *ours == value)
        });
        Ok(only_ours && !document.has_comments())
    }

    pub(super) fn remove_hit(
        &self,
        document: &Document<'_>,
        root: &Object<'_>,
        hit: &Hit<'_, '_>,
        original: Option<&Document<'_>>,
    ) -> String {
        let unchanged = || document.text.to_owned();
        let Some(hooks) = root.properties.get(hit.hooks_member).and_then(|member| member.value.as_object())
        else {
            return unchanged();
        };
        let Some(list) = hooks.properties.get(hit.event_member).and_then(|member| member.value.as_array())
        else {
            return unchanged();
        };

        // Within its group.
        if let (Nesting::Groups, Some(within)) = (self.nesting, hit.within) {
            let Some(group) = list.elements.get(hit.element).and_then(Value::as_object) else {
                return unchanged();
            };
            let Some(inner) = inner_list(group) else { return unchanged() };
            let inner = Container::of_array(inner);
            let goes_with_it = inner.len() == 1
                && !document.has_comments_beside(&Container::of_object(group), &inner.whole());
            if !goes_with_it || document.has_comments_beside(&inner, &inner.item(within)) {
                return document.remove(&inner, within);
            }
        }

        // Within the event's list.
        let original_hooks = original.and_then(original_hooks);
        let original_list = original_hooks
            .and_then(|hooks| last_member(hooks, hit.event))
            .and_then(|(_, list)| list.as_array());
        let events = Container::of_array(list);
        if let Some(edited) = empty_out(
            document,
            &events,
            hit.element,
            match original_list.zip(original) {
                Some((list, document)) => Some(inner_text(document, &of_array(list))),
                None => is_repeated(hooks, hit.event).then_some(Inner::Held),
            },
        ) {
            return edited;
        }

        // Within the hooks object.
        let members = Container::of_object(hooks);
        if let Some(edited) = empty_out(
            document,
            &members,
            hit.event_member,
            match original_hooks.zip(original) {
                Some((hooks, document)) => Some(inner_text(document, &of_object(hooks))),
                None => is_repeated(root, "hooks").then_some(Inner::Held),
            },
        ) {
            return edited;
        }

        // Within the root, which always stays.
        let members = Container::of_object(root);
        let original_root = original.and_then(|document| {
            let root = document.root.as_ref()?.as_object()?;
            Some(inner_text(document, &of_object(root)))
        });
        empty_out(document, &members, hit.hooks_member, Some(original_root.unwrap_or(Inner::Held)))
            .unwrap_or_else(|| document.remove(&members, hit.hooks_member))
    }
}

/// What a container of the file without us holds.
enum Inner<'t> {
    /// Nothing but this white space and these comments.
    Blank(&'t str),
    /// Items of somebody else.
    Held,
}

/// Whether a key stands there more than once: to take the last away would bring an earlier one into force.
fn is_repeated(object: &Object<'_>, name: &str) -> bool {
    object.properties.iter().filter(|member| member.name.as_str() == name).count() > 1
}

fn original_hooks<'d, 'a>(original: &'d Document<'a>) -> Option<&'d Object<'a>> {
    let root = original.root.as_ref()?.as_object()?;
    last_member(root, "hooks")?.1.as_object()
}

fn of_array(array: &Array<'_>) -> Container {
    Container::of_array(array)
}

fn of_object(object: &Object<'_>) -> Container {
    Container::of_object(object)
}

fn inner_text<'t>(document: &Document<'t>, container: &Container) -> Inner<'t> {
    match container.len() {
        0 => Inner::Blank(document.text.get(container.inner()).unwrap_or_default()),
        _ => Inner::Held,
    }
}

/// Removes one item of a container that stays: it has other items, or a comment, or was there without us. `None`
/// when the container itself is to go.
fn empty_out(
    document: &Document<'_>,
    container: &Container,
    item: usize,
    original: Option<Inner<'_>>,
) -> Option<String> {
    if container.len() > 1 {
        return Some(document.remove(container, item));
    }
    let commented = document.has_comments_beside(container, &container.item(item));
    match original {
        Some(Inner::Blank(inner)) if !commented => Some(document.replace(container.inner(), inner)),
        // The comments that stand there are those that stood there: the item alone goes.
        Some(Inner::Blank(inner)) => {
            let restored = document.replace(container.inner(), inner);
            let removed = document.remove(container, item);
            Some(if same_but_white_space(&restored, &removed) { restored } else { removed })
        }
        Some(Inner::Held) => Some(document.remove(container, item)),
        None if commented => Some(document.remove(container, item)),
        None => None,
    }
}

fn same_but_white_space(one: &str, other: &str) -> bool {
    dense(one) == dense(other)
}

fn dense(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}
