//! What has to be loaded before a hook's first instruction. What it takes then is a matter of `cargo xtask bench hook`.

use std::fs;

use crate::rig::hooks;

#[test]
fn what_is_shipped_is_one_small_file_that_needs_no_other() {
    const SIZE_MAX: usize = 600 * 1024;
    /// `PT_DYNAMIC` and `PT_INTERP` of the kernel's headers: libraries, and the program that loads them.
    const NEEDS_OTHERS: [u32; 2] = [2, 3];
    for hook in hooks().iter().filter(|hook| hook.name == "shipped") {
        let file = fs::read(&hook.program).unwrap();
        assert!(file.starts_with(b"\x7fELF\x02\x01") && file.len() <= SIZE_MAX, "{} bytes", file.len());
        let number = |at: usize, len: usize| {
            file[at..at + len].iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte))
        };
        // The table of program headers of a 64-bit file: where it is, how long each is, how many there are.
        let (table, length, count) = (number(32, 8), number(54, 2), number(56, 2));
        assert!(count > 0);
        for header in 0..count {
            let kind = u32::try_from(number(table + header * length, 4)).unwrap();
            assert!(!NEEDS_OTHERS.contains(&kind), "a program header of kind {kind}");
        }
    }
}
