//! A Windows command line split into arguments, as the C runtime of the started program does it. Pure.

/// Splits at blanks outside quotes. Backslashes are literal unless they precede a quote: each pair is one, and an odd
/// one makes the quote literal. Two quotes within quotes are a literal one.
pub(super) fn split(line: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut rest = line.chars().peekable();
    loop {
        while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        if rest.peek().is_none() {
            return arguments;
        }
        let mut argument = String::new();
        let mut quoted = false;
        // The program's own path knows no escapes.
        let escapes = !arguments.is_empty();
        while let Some(c) = rest.next_if(|c| quoted || !matches!(c, ' ' | '\t')) {
            match c {
                '\\' if escapes => {
                    let mut slashes = 1;
                    while rest.next_if_eq(&'\\').is_some() {
                        slashes += 1;
                    }
                    if rest.peek() == Some(&'"') {
                        argument.extend(std::iter::repeat_n('\\', slashes / 2));
                        if slashes % 2 == 1 {
                            rest.next();
                            argument.push('"');
                        }
                    } else {
                        argument.extend(std::iter::repeat_n('\\', slashes));
                    }
                }
                '"' if escapes && quoted && rest.next_if_eq(&'"').is_some() => argument.push('"'),
                '"' => quoted = !quoted,
                other => argument.push(other),
            }
        }
        arguments.push(argument);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        assert_eq!(split(line), expected, "{line}");
    }

    #[test]
    fn lines_are_split_as_the_c_runtime_does() {
        check("", &[]);
        check("  ", &[]);
        check(
            r#""C:\Program Files\nodejs\node.exe" cli.js --a "b c""#,
            &[r"C:\Program Files\nodejs\node.exe", "cli.js", "--a", "b c"],
        );
        check(r#"a "b\"c" d\\e "f\\" g"#, &["a", "b\"c", r"d\\e", r"f\", "g"]);
        check(r#"a "" b"#, &["a", "", "b"]);
        check(r#"a "x""y""#, &["a", "x\"y"]);
        check(r#"a "open end"#, &["a", "open end"]);
        check(r"C:\dir\a.exe \\server\share", &[r"C:\dir\a.exe", r"\\server\share"]);
    }
}
