//! `docs/field-cases.md` says of reports from the field what Watchkeeper does, and which test shows it. What it names is
//! there, and no section loses a case without a word.

use anyhow::{Context as _, Result};
use std::fs;

use crate::root;

const PAGE: &str = "docs/field-cases.md";
/// The sections, and how many cases each has.
const SECTIONS: [(&str, usize); 5] = [
    ("Wrong states", 14),
    ("Background work and subagents", 12),
    ("Background sessions of the agents themselves", 5),
    ("Ends and identities", 8),
    ("Hook cost and installers", 8),
];
/// What a case begins with that no test can show.
const EXCEPTIONS: [&str; 2] = ["no such surface:", "not available here:"];
/// At most one case in so many is an exception.
const EXCEPTION_ONE_IN: usize = 10;

/// One row of the page.
#[derive(Debug, PartialEq, Eq)]
struct Case<'a> {
    section: &'a str,
    case: &'a str,
    /// What Watchkeeper does, or why there is nothing that it could do.
    does: &'a str,
    /// Each as `path::function`.
    tests: Vec<&'a str>,
}

/// Appends what is wrong with the page.
pub(crate) fn check(problems: &mut Vec<String>) -> Result<()> {
    let page = fs::read_to_string(root().join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    judge(&page, &|path| fs::read_to_string(root().join(path)).ok(), problems);
    Ok(())
}

/// `read`: the text of a file of the project.
fn judge(page: &str, read: &dyn Fn(&str) -> Option<String>, problems: &mut Vec<String>) {
    let mut say = |what: String| problems.push(format!("{PAGE}: {what}"));
    let cases = cases(page, &mut say);
    for (section, expected) in SECTIONS {
        let found = cases.iter().filter(|case| case.section == section).count();
        if found != expected {
            say(format!("'{section}' has {found} cases instead of {expected}"));
        }
    }
    let mut exceptions = 0;
    for Case { section, case, does, tests } in &cases {
        if SECTIONS.iter().all(|(known, _)| known != section) {
            say(format!("'{case}' stands in no section that is known"));
        }
        let is_exception = EXCEPTIONS.iter().any(|words| does.starts_with(words));
        exceptions += usize::from(is_exception);
        if tests.is_empty() && !is_exception {
            say(format!("'{case}' names no test"));
        }
        for test in tests {
            if let Err(why) = is_test(test, read) {
                say(format!("'{case}': {test}: {why}"));
            }
        }
    }
    if exceptions * EXCEPTION_ONE_IN > cases.len() {
        say(format!("{exceptions} of {} cases have no test", cases.len()));
    }
}

fn cases<'a>(page: &'a str, say: &mut dyn FnMut(String)) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    let mut section = "";
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading.trim();
        }
        let Some(row) = line.strip_prefix('|').and_then(|rest| rest.strip_suffix('|')) else { continue };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        match cells.as_slice() {
            ["Case", ..] | ["---", ..] => {}
            [case, does, tests] => {
                let tests = tests.split('`').skip(1).step_by(2).collect();
                cases.push(Case { section, case, does, tests });
            }
            _ => say(format!("a row has {} cells instead of 3: {line}", cells.len())),
        }
    }
    cases
}

/// Whether a function of that name stands in that file, and is a test.
fn is_test(test: &str, read: &dyn Fn(&str) -> Option<String>) -> std::result::Result<(), &'static str> {
    let (path, function) = test.split_once("::").ok_or("it has no function")?;
    let text = read(path).ok_or("there is no such file")?;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declares = |line: &str| {
        let rest = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        rest.and_then(|rest| rest.strip_prefix(function)).is_some_and(|rest| rest.starts_with('('))
    };
    let found = lines.iter().position(|line| declares(line)).ok_or("there is no such function")?;
    let above =
        lines[..found].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    let mut attributes = above.filter(|line| line.starts_with("#["));
    let marks = |line: &&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    attributes.any(marks).then_some(()).ok_or("that function is no test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_tests_that_are_there() {
        let mut problems = Vec::new();
        check(&mut problems).unwrap();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let code = "#[test]\n/// Why.\n#[cfg(unix)]\nfn here() {\n}\n\n#[tokio::test(start_paused = true)]\nasync fn later() {}\n\nfn helper() {}\n";
        let read = |path: &str| (path == "a.rs").then(|| code.to_owned());
        assert_eq!(is_test("a.rs::here", &read), Ok(()));
        assert_eq!(is_test("a.rs::later", &read), Ok(()));
        assert_eq!(is_test("a.rs::her", &read), Err("there is no such function"));
        assert_eq!(is_test("a.rs::helper", &read), Err("that function is no test"));
        assert_eq!(is_test("b.rs::here", &read), Err("there is no such file"));
        assert_eq!(is_test("a.rs", &read), Err("it has no function"));
    }

    #[test]
    fn cases_without_a_test_are_few_and_have_a_reason() {
        let page = |rows: usize, exceptions: usize| {
            let mut page = String::from("## Wrong states\n\n| Case | Does | Test |\n|---|---|---|\n");
            for _ in 0..rows {
                page += "| c | d | `a.rs::here` |\n";
            }
            for _ in 0..exceptions {
                page += "| c | no such surface: r | – |\n";
            }
            page
        };
        let said = |page: &str| {
            let mut problems = Vec::new();
            judge(page, &|_| Some("#[test]\nfn here() {}".to_owned()), &mut problems);
            problems.retain(|problem| !problem.contains("instead of"));
            problems
        };
        assert_eq!(said(&page(9, 1)), Vec::<String>::new());
        assert_eq!(said(&page(18, 2)), Vec::<String>::new());
        assert_eq!(said(&page(8, 1)), ["docs/field-cases.md: 1 of 9 cases have no test"]);
        assert_eq!(said("## Wrong states\n| c | d | – |\n"), ["docs/field-cases.md: 'c' names no test"]);
        assert_eq!(
            said("## Other\n| c | d | `a.rs::here` |\n"),
            ["docs/field-cases.md: 'c' stands in no section that is known"]
        );
    }
}
