//! What differs between systems about files: modes and owners, programs, and making a rename last.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(not(unix), path = "other.rs")]
mod platform;

pub(super) use platform::{
    Attributes, is_executable, is_read_only, other_names, private_folder, private_options, program_names,
    sync_folder,
};
