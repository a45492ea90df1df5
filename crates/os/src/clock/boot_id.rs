//! The name of this boot, read once.

use std::sync::OnceLock;

use watchkeeper_core::time::BootId;

static BOOT: OnceLock<BootId> = OnceLock::new();

/// Names the running boot. Zero, which means "unknown" and equals nothing, when the system does not tell.
///
/// Read once in a process: a machine cannot boot under a running process, but a checkpointed one may be restored on
/// another boot; such a process is not supported.
#[must_use]
pub fn boot_id() -> BootId {
    *BOOT.get_or_init(super::platform::read_boot_id)
}

/// Parses a UUID as text, with or without hyphens, into its 128 bits; `None` for anything else.
#[cfg(any(target_os = "linux", target_os = "macos", test))]
pub(crate) fn parse_uuid(text: &str) -> Option<BootId> {
    let mut value: u128 = 0;
    let mut digits = 0_u32;
    for c in text.trim().chars().filter(|c| *c != '-') {
        value = (value << 4) | u128::from(c.to_digit(16)?);
        digits += 1;
        if digits > 32 {
            return None;
        }
    }
    (digits == 32).then_some(BootId(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<u128>) {
        assert_eq!(parse_uuid(text), expected.map(BootId), "{text:?}");
    }

    #[test]
    fn uuids_are_read_with_and_without_hyphens() {
        check("0f3a2b1c-4d5e-6f70-8192-a3b4c5d6e7f8\n", Some(0x0f3a_2b1c_4d5e_6f70_8192_a3b4_c5d6_e7f8));
        check("0F3A2B1C4D5E6F708192A3B4C5D6E7F8", Some(0x0f3a_2b1c_4d5e_6f70_8192_a3b4_c5d6_e7f8));
        check("", None);
        check("0f3a2b1c-4d5e-6f70-8192-a3b4c5d6e7f", None);
        check("0f3a2b1c-4d5e-6f70-8192-a3b4c5d6e7f8a", None);
        check("0f3a2b1c-4d5e-6f70-8192-a3b4c5d6e7fé", None);
    }

    #[test]
    fn this_machine_names_its_boot() {
        assert_ne!(boot_id(), BootId(0));
    }
}
