//! The spool's writing side without an allocator; `watchkeeper_frame::spool::store` is its twin with one, and reads
//! what is written here.
//!
//! A busy disk makes each of its calls wait, and none of them can be interrupted. So a child does the work: we wait for its
//! end, but not beyond our own time, and it goes on without us, in a process group of its own, so that nothing that happens
//! to the agent or to us stops it.

use watchkeeper_frame::spool::{
    Census, DROPPED_FILE, DROPPED_MAX, NAME_BYTES, Room, SpoolName, TEMPORARY_PREFIX, TRAILER_BYTES, trailer,
};

use super::{
    path::{self, Path},
    sys::{self, Errno, Fd, Open},
};
use crate::{args::Instance, flow::Leaving};

/// Files given up for one new event; if that does not make room, the new event is dropped.
const EVICTIONS_MAX: usize = 4;
/// Reads of directory entries in one count; what is beyond is not counted. At least 16,384 entries.
const LISTING_READS_MAX: usize = 64;

/// Leaves the event for a later daemon. Silent when it cannot: the daemon notices the gap.
pub(crate) fn spool(instance: &Instance<'_>, event: &Leaving<'_>, scratch: &mut [u8], deadline_ns: u64) {
    let Some((ours, childs)) = sys::pipe().ok() else { return without_child(instance, event, scratch) };
    match sys::fork() {
        Ok(None) => {
            sys::leave_everything_but(&childs);
            if let Some(file) = try_spool(instance, event, scratch) {
                // Told to nobody: what the kernel has is all that can be had then.
                _ = sys::sync_data(&file);
            }
            sys::exit()
        }
        Ok(Some(child)) => {
            drop(childs);
            // Its end closes the other side. Without the wait for its end it would stay a zombie where the first process of
            // a container is no good parent.
            if let Ok(Some(_)) = super::wait(ours.number(), sys::POLL_IN, deadline_ns) {
                sys::reap(child);
            }
        }
        Err(_) => without_child(instance, event, scratch),
    }
}

/// There is no process or no descriptor to be had: written by us, and not synced, which could take any time.
fn without_child(instance: &Instance<'_>, event: &Leaving<'_>, scratch: &mut [u8]) {
    // Nobody can be told: the agent must not be disturbed.
    _ = try_spool(instance, event, scratch);
}

/// Writes the event under its name; the file is not synced yet.
fn try_spool(instance: &Instance<'_>, event: &Leaving<'_>, scratch: &mut [u8]) -> Option<Fd> {
    // A limit on file sizes that the agent inherited to us must not end us.
    sys::ignore(sys::WriteSignal::FileTooLarge);
    let mut path = Path::new();
    path::state(instance, scratch, &mut path)?;
    path.push_name(watchkeeper_frame::place_rules::SPOOL);
    let directory = open_or_make(&path)?;
    let file_bytes = event.frame.len() + event.ancestry.len() + TRAILER_BYTES;
    let name = SpoolName::new(event.head, event.class, file_bytes);
    if !make_room(&directory, &path, &name, scratch)? {
        count_dropped(&directory)?;
        return None;
    }
    let written = name.write();
    let (mut temporary, mut last) = (Path::new(), Path::new());
    temporary.push(TEMPORARY_PREFIX.as_bytes());
    temporary.push(delivery_digits(&written));
    last.push(&written);
    let file = write_and_rename(&directory, &temporary, &last, event);
    if file.is_none() {
        // Best effort: a file that stays is swept by its age.
        _ = sys::unlink(&directory, &temporary.c());
    }
    file
}

fn write_and_rename(directory: &Fd, temporary: &Path, last: &Path, event: &Leaving<'_>) -> Option<Fd> {
    let file = sys::open(Some(directory), &temporary.c(), Open::CreateNew).ok()?;
    let trailer = trailer(event.frame, event.ancestry);
    let mut parts = [event.frame, event.ancestry, &trailer[..]];
    while parts.iter().any(|part| !part.is_empty()) {
        match sys::write_all_of(&file, &parts) {
            Ok(0) => return None,
            Ok(mut len) => {
                for part in &mut parts {
                    let of_this = len.min(part.len());
                    *part = part.get(of_this..)?;
                    len -= of_this;
                }
            }
            Err(Errno::INTERRUPTED) => {}
            Err(_) => return None,
        }
    }
    sys::rename(directory, &temporary.c(), &last.c()).ok()?;
    Some(file)
}

/// Opens the directory, making what is missing of its path, for the owner only.
fn open_or_make(path: &Path) -> Option<Fd> {
    match sys::open(None, &path.c(), Open::Directory) {
        Ok(directory) => return Some(directory),
        Err(Errno::NO_ENTRY) => {}
        Err(_) => return None,
    }
    let mut part = Path::new();
    for name in path.bytes().split_inclusive(|b| *b == b'/') {
        part.push(name);
        match sys::make_directory(&part.c()) {
            Ok(()) | Err(Errno::EXISTS) => {}
            // What cannot be made may exist (`/`, a read-only parent): opening tells.
            Err(_) => {}
        }
    }
    sys::open(None, &path.c(), Open::Directory).ok()
}

/// Gives up older events until the new one fits; `false` when it does not.
fn make_room(directory: &Fd, path: &Path, new: &SpoolName, scratch: &mut [u8]) -> Option<bool> {
    for round in 0..=EVICTIONS_MAX {
        // Each count reads the directory from its start, so each needs its own descriptor.
        let again = if round == 0 { None } else { Some(sys::open(None, &path.c(), Open::Directory).ok()?) };
        match count(again.as_ref().unwrap_or(directory), scratch).room_for(new) {
            Room::Free => return Some(true),
            Room::None => return Some(false),
            Room::After(oldest) => {
                let mut name = Path::new();
                name.push(&oldest.write());
                match sys::unlink(directory, &name.c()) {
                    Ok(()) => count_dropped(directory)?,
                    Err(Errno::NO_ENTRY) => {}
                    Err(_) => return Some(false),
                }
            }
        }
    }
    Some(false)
}

fn count(directory: &Fd, scratch: &mut [u8]) -> Census {
    let mut census = Census::default();
    for _ in 0..LISTING_READS_MAX {
        let Ok(len) = sys::directory_entries(directory, scratch) else { break };
        let mut rest = scratch.get(..len).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        // `struct linux_dirent64`: 16 length of this entry u16, 19 the name, closed by a zero.
        while let Some(&[low, high]) = rest.get(16..18).and_then(|length| length.first_chunk::<2>()) {
            let length = usize::from(u16::from_le_bytes([low, high]));
            let name = rest.get(19..length).unwrap_or_default();
            census.see(name.split(|b| *b == 0).next().unwrap_or_default());
            rest = rest.get(length.max(1)..).unwrap_or_default();
        }
    }
    census
}

fn count_dropped(directory: &Fd) -> Option<()> {
    let mut name = Path::new();
    name.push(DROPPED_FILE.as_bytes());
    let file = sys::open(Some(directory), &name.c(), Open::Append).ok()?;
    if sys::facts_of(&file).ok()?.bytes < DROPPED_MAX {
        sys::write(file.number(), b"x").ok()?;
    }
    Some(())
}

/// The delivery id inside a name.
fn delivery_digits(name: &[u8; NAME_BYTES]) -> &[u8] {
    name.rsplit(|b| *b == b'-').next().unwrap_or_default().get(..32).unwrap_or_default()
}
