//! A file that is ours as a whole (OpenCode's plugin): written, replaced and deleted as one, recognised by its first
//! words. Somebody else's file of that name is refused.

use super::{ConfigFile, Edit, Inspection, Original, Refusal, Wiring};

#[derive(Debug)]
pub(crate) struct OwnFile {
    pub(crate) path: &'static str,
    /// What it is, in a word: stands where other files name events.
    pub(crate) what: &'static str,
    /// How every version of it begins.
    pub(crate) mark: &'static str,
    pub(crate) text: fn(&Wiring) -> String,
}

/// Whose a file is.
enum Owner {
    /// There is none, or nothing in it.
    Nobody,
    Us,
    SomebodyElse,
}

impl OwnFile {
    fn owner(&self, current: Option<&str>) -> Owner {
        match current {
            None => Owner::Nobody,
            Some(text) if text.trim().is_empty() => Owner::Nobody,
            Some(text) if text.starts_with(self.mark) => Owner::Us,
            Some(_) => Owner::SomebodyElse,
        }
    }
}

impl ConfigFile for OwnFile {
    fn path(&self) -> &'static str {
        self.path
    }

    fn install(&self, current: Option<&str>, wiring: &Wiring) -> Result<Edit, Refusal> {
        let wanted = (self.text)(wiring);
        match self.owner(current) {
            Owner::SomebodyElse => Err(Refusal::Foreign),
            Owner::Us if current == Some(&wanted) => Ok(Edit::Keep),
            Owner::Us | Owner::Nobody => Ok(Edit::Write(wanted)),
        }
    }

    fn remove(&self, current: Option<&str>, original: Option<Original<'_>>) -> Result<Edit, Refusal> {
        Ok(match (self.owner(current), original) {
            (Owner::Nobody | Owner::SomebodyElse, _) => Edit::Keep,
            (Owner::Us, Some(Original::Text(text))) => Edit::Write(text.to_owned()),
            (Owner::Us, Some(Original::Absent) | None) => Edit::Delete,
        })
    }

    fn inspect(&self, current: Option<&str>, wiring: &Wiring) -> Result<Inspection, Refusal> {
        let mut inspection = Inspection::default();
        let list = match self.owner(current) {
            Owner::SomebodyElse => return Err(Refusal::Foreign),
            Owner::Nobody => &mut inspection.missing,
            Owner::Us if current == Some(&(self.text)(wiring)) => &mut inspection.current,
            Owner::Us => &mut inspection.outdated,
        };
        list.push(self.what.to_owned());
        Ok(inspection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{Instance, Shell, Timeouts};
    use proptest::prelude::*;

    const FILE: OwnFile = OwnFile {
        path: "x.js",
        what: "plugin",
        mark: "// ours",
        text: |wiring| format!("// ours 2\n{}\n", wiring.program),
    };

    fn wiring() -> Wiring {
        Wiring {
            program: "/w".to_owned(),
            instance: Instance::Default,
            state: "/state".to_owned(),
            timeouts: Timeouts::default(),
            shell: Shell::Posix,
            mcp: None,
        }
    }

    #[test]
    fn an_older_one_is_replaced_and_goes_as_a_whole() {
        let Edit::Write(text) = FILE.install(Some("// ours 1\n"), &wiring()).unwrap() else { panic!() };
        assert_eq!(FILE.inspect(Some("// ours 1\n"), &wiring()).unwrap().outdated, ["plugin"]);
        assert_eq!(FILE.inspect(Some(&text), &wiring()).unwrap().current, ["plugin"]);
        assert_eq!(FILE.install(Some(&text), &wiring()).unwrap(), Edit::Keep);
        assert_eq!(FILE.remove(Some(&text), None).unwrap(), Edit::Delete);
        assert_eq!(FILE.inspect(None, &wiring()).unwrap().missing, ["plugin"]);
    }

    proptest! {
        #[test]
        fn what_was_there_comes_back_or_is_left_alone(before in "[ \n]{0,3}|\\PC{0,60}") {
            match FILE.install(Some(&before), &wiring()) {
                Ok(Edit::Write(after)) => {
                    prop_assert!(before.trim().is_empty() || before.starts_with(FILE.mark));
                    let removed = FILE.remove(Some(&after), Some(Original::Text(&before))).unwrap();
                    prop_assert_eq!(removed, Edit::Write(before));
                }
                Ok(other) => prop_assert!(false, "{:?}", other),
                Err(refusal) => {
                    prop_assert_eq!(refusal, Refusal::Foreign);
                    prop_assert_eq!(FILE.remove(Some(&before), None).unwrap(), Edit::Keep);
                }
            }
        }
    }
}
