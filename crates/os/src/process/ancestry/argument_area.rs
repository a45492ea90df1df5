//! The layout of macOS's `KERN_PROCARGS2`: the argument count, the executable's path, padding, then the arguments
//! (and the environment, which is not read). Pure.

/// The arguments; empty for a layout that is not this one. The last may be cut when the area was.
pub(super) fn arguments(area: &[u8]) -> Vec<String> {
    let Some((count, rest)) = area.split_first_chunk::<4>() else { return Vec::new() };
    let Ok(count) = usize::try_from(i32::from_ne_bytes(*count)) else { return Vec::new() };
    let Some(end_of_path) = rest.iter().position(|byte| *byte == 0) else { return Vec::new() };
    let rest = rest.get(end_of_path..).unwrap_or_default();
    let Some(begin) = rest.iter().position(|byte| *byte != 0) else { return Vec::new() };
    let rest = rest.get(begin..).unwrap_or_default();
    rest.split(|byte| *byte == 0).take(count).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(count: i32, rest: &[u8], expected: &[&str]) {
        let area = [&count.to_ne_bytes(), rest].concat();
        assert_eq!(arguments(&area), expected);
    }

    #[test]
    fn arguments_follow_the_path_and_its_padding() {
        check(2, b"/usr/bin/node\0\0\0\0node\0cli.js\0HOME=/Users/a\0", &["node", "cli.js"]);
        check(1, b"/bin/cat\0cat\0PATH=x\0", &["cat"]);
        check(3, b"/bin/cat\0\0a\0\0b\0X=1\0", &["a", "", "b"]);
        check(5, b"/bin/cat\0\0a\0cu", &["a", "cu"]);
    }

    #[test]
    fn anything_else_is_empty() {
        check(-1, b"/bin/cat\0cat\0", &[]);
        check(1, b"/bin/cat", &[]);
        check(1, b"/bin/cat\0\0\0", &[]);
        check(0, b"/bin/cat\0cat\0", &[]);
        assert!(arguments(b"").is_empty() && arguments(b"\x01\0").is_empty());
    }
}
