//! The rules by which the hook (without an allocator) and everybody else name the same files. Slices only.

use crate::decimal::decimal;

/// Holds the users' runtime directories on Linux, each named by the user id.
pub const LINUX_RUN_PARENT: &str = "/run/user";
/// Runtime directory of the default instance below the user's own on Linux and macOS.
pub const RUN_NAME: &str = "watchkeeper";
/// State directory of the default instance below the home directory on Linux.
pub const LINUX_STATE: &str = ".local/state/watchkeeper";
/// Runtime directory below the home directory on Linux, where the user has none in [`LINUX_RUN_PARENT`].
pub const LINUX_RUN_FALLBACK: &str = ".local/state/watchkeeper/run";
/// Configuration directory below the home directory on Linux.
pub const LINUX_CONFIG: &str = ".config/watchkeeper";
/// Where Linux names the users' home directories.
pub const PASSWD: &str = "/etc/passwd";
/// How much of [`PASSWD`] is read; an entry behind it is not found, and the installer then names the directories on
/// the hook's command line.
pub const PASSWD_MAX_BYTES: usize = 256 * 1024;
/// The hook's socket in the runtime directory.
pub const HOOK_SOCKET: &str = "hook.sock";
/// The local interface's socket in the runtime directory.
pub const API_SOCKET: &str = "api.sock";
/// The spool in the state directory.
pub const SPOOL: &str = "spool";
/// Longest path of a Unix socket, its closing zero not counted (`sun_path`; Linux 108, macOS and the BSDs 104).
pub const SOCKET_PATH_MAX_BYTES: usize =
    if cfg!(any(target_os = "linux", target_os = "android")) { 107 } else { 103 };

/// The home directory of `uid` in the text of `/etc/passwd`; `None` when there is no entry or it is not absolute.
/// A last line without its newline is not read when the text was cut: pass whole lines, or the whole file.
#[must_use]
pub fn passwd_home(text: &[u8], uid: u32) -> Option<&[u8]> {
    text.split(|b| *b == b'\n').find_map(|line| {
        let mut fields = line.split(|b| *b == b':');
        let id = fields.nth(2)?;
        let home = fields.nth(2)?;
        (decimal(id) == Some(uid.into()) && home.first() == Some(&b'/')).then_some(home)
    })
}

/// A boot id as one number from the kernel's text (a UUID); zero when it is none.
#[must_use]
pub fn boot_id(text: &[u8]) -> u128 {
    let mut value: u128 = 0;
    let mut digits = 0;
    for byte in text.trim_ascii().iter().filter(|b| **b != b'-') {
        let Some(digit) = char::from(*byte).to_digit(16) else { return 0 };
        digits += 1;
        value = value << 4 | u128::from(digit);
    }
    if digits == 32 { value } else { 0 }
}

/// The bytes of a directory's name mixed into 64 bits (FNV-1a), for the names of Windows' pipes. Case and the kind of
/// slash do not count, nor do slashes at the end.
#[must_use]
pub fn directory_hash(directory: &[u8]) -> u64 {
    let end = directory.iter().rposition(|b| !matches!(b, b'/' | b'\\')).map_or(0, |last| last + 1);
    directory.iter().take(end).fold(crate::spool::CHECKSUM_SEED, |hash, byte| {
        let byte = if *byte == b'/' { b'\\' } else { byte.to_ascii_lowercase() };
        crate::spool::checksum(hash, &[byte])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_found_by_user_id() {
        let text = b"root:x:0:0:root:/root:/bin/bash\n# note\n\nbad\nu:x:1000:1000:A, B:/home/u:/bin/sh\nrel:x:7:7::home:\nw:x:12:12::/w";
        let check = |uid: u32, expected: Option<&str>| {
            assert_eq!(passwd_home(text, uid), expected.map(str::as_bytes), "{uid}");
        };
        check(0, Some("/root"));
        check(1000, Some("/home/u"));
        check(7, None);
        check(12, Some("/w"));
        check(100, None);
        assert_eq!(passwd_home(b"x:x:42949672960:0::/h:", 0), None);
        assert_eq!(passwd_home(b"x:x::0::/h:", 0), None);
    }

    #[test]
    fn boot_ids_are_numbers() {
        assert_eq!(boot_id(b"00000000-0000-0000-0000-0000000000ff\n"), 255);
        assert_eq!(boot_id(b"f0000000-0000-0000-0000-000000000000"), 0xf << 124);
        assert_eq!(boot_id(b"f0000000-0000-0000-0000-0000000000zz"), 0);
        assert_eq!(boot_id(b"f0"), 0);
        assert_eq!(boot_id(&[b'f'; 33]), 0);
    }

    #[test]
    fn one_directory_has_one_hash() {
        let hash = directory_hash(br"C:\Users\U\run");
        assert_eq!(hash, directory_hash(b"c:/users/u/RUN/"));
        assert_ne!(hash, directory_hash(br"C:\Users\V\run"));
        assert_eq!(directory_hash(b""), directory_hash(b"//"));
    }
}
