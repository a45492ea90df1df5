//! The ancestors of a hook that spools, written down by itself: nobody is there to take its peer credentials, and by the
//! time a daemon comes its agent may be gone.
//!
//! ```text
//!  0  magic "WKAN"             4  version u8          5  ancestors u8        6  reserved, 0
//!  8  pid namespace u64       16  time namespace u64
//! then each ancestor, nearest first:
//!  0  pid u32                  4  start u64          12  executable length u16
//! 14  name length u16         16  arguments length u16
//! then executable, name, arguments
//! ```
//!
//! All numbers are little endian. Owns the block and the reading of Linux's `/proc/PID/stat`, both on slices. Must not
//! know which ancestor is an agent, nor who lives.

use crate::decimal::decimal;

/// Most ancestors; those further up are left out. Between a hook and its agent stand a shell or two.
pub const ANCESTORS_MAX: usize = 8;
/// Longest executable path; a longer one is left out, and the short name then has to do.
pub const EXECUTABLE_MAX_BYTES: usize = 1024;
/// Longest short name; the rest is cut. The kernel's own limit is 15, or 63 for its threads.
pub const NAME_MAX_BYTES: usize = 64;
/// Most bytes of arguments; the one that crosses it and those behind are left out. The rules that tell an agent by its
/// arguments look at the first few.
pub const ARGUMENTS_MAX_BYTES: usize = 1024;
/// Longest block.
pub const BLOCK_MAX_BYTES: usize = HEADER_BYTES
    + ANCESTORS_MAX * (ANCESTOR_BYTES + EXECUTABLE_MAX_BYTES + NAME_MAX_BYTES + ARGUMENTS_MAX_BYTES);

const MAGIC: [u8; 4] = *b"WKAN";
/// A reader that does not know the version takes the event without the ancestors.
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 24;
const ANCESTOR_BYTES: usize = 18;

/// One ancestor as the hook saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ancestor<'a> {
    pub pid: u32,
    /// Start identity: on Linux clock ticks since boot, as in `/proc/PID/stat`.
    pub start: u64,
    /// Path of the executable as the system names it; empty when it could not be read.
    pub executable: &'a [u8],
    /// The kernel's short name.
    pub name: &'a [u8],
    /// Each closed by a zero.
    pub arguments: &'a [u8],
}

/// Where pids and starts count, as the inode numbers of Linux's namespaces. Zero is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Namespaces {
    pub pid: u64,
    /// Zero also where the kernel has no such namespaces.
    pub time: u64,
}

#[cfg(feature = "std")]
impl Namespaces {
    /// Those of this process; all unknown on systems other than Linux.
    #[must_use]
    pub fn own() -> Self {
        let of = |name: &str| {
            let link = std::fs::read_link(format!("/proc/self/ns/{name}"));
            link.map_or(0, |link| namespace(link.as_os_str().as_encoded_bytes()))
        };
        Self { pid: of("pid"), time: of("time") }
    }

    /// Whether a pid and a start of there mean the same here.
    #[must_use]
    pub fn count_as(self, other: Self) -> bool {
        self.pid != 0 && self == other
    }
}

/// A block under construction, in memory of the caller's.
#[derive(Debug)]
pub struct Writer<'a> {
    room: &'a mut [u8],
    len: usize,
    count: u8,
    /// Start of the process whose parent comes next.
    child_start: u64,
}

impl<'a> Writer<'a> {
    /// Begins a block for the ancestors of a process that started at `own_start`. Without room for a header it stays empty.
    pub fn new(room: &'a mut [u8], namespaces: Namespaces, own_start: u64) -> Self {
        let mut header = [0; HEADER_BYTES];
        let [m0, m1, m2, m3] = MAGIC;
        let (first, rest) = header.split_at_mut(8);
        first.copy_from_slice(&[m0, m1, m2, m3, VERSION, 0, 0, 0]);
        let (pid, time) = rest.split_at_mut(8);
        pid.copy_from_slice(&namespaces.pid.to_le_bytes());
        time.copy_from_slice(&namespaces.time.to_le_bytes());
        let mut writer = Self { room, len: 0, count: 0, child_start: own_start };
        writer.put(&header);
        writer
    }

    /// Adds the next ancestor, cut to the limits; `false` when it is none (it started after its child: the pid has another
    /// owner) or when there is no more room. The walk is then over.
    pub fn push(&mut self, ancestor: &Ancestor<'_>) -> bool {
        if self.len == 0 || usize::from(self.count) == ANCESTORS_MAX || ancestor.start > self.child_start {
            return false;
        }
        let executable = Some(ancestor.executable).filter(|path| path.len() <= EXECUTABLE_MAX_BYTES);
        let executable = executable.unwrap_or_default();
        let name = ancestor.name.get(..NAME_MAX_BYTES).unwrap_or(ancestor.name);
        let arguments = whole_arguments(ancestor.arguments);
        let need = ANCESTOR_BYTES + executable.len() + name.len() + arguments.len();
        if self.room.len() - self.len < need {
            return false;
        }
        self.put(&ancestor.pid.to_le_bytes());
        self.put(&ancestor.start.to_le_bytes());
        for part in [executable, name, arguments] {
            let [low, high, ..] = part.len().to_le_bytes();
            self.put(&[low, high]);
        }
        for part in [executable, name, arguments] {
            self.put(part);
        }
        self.child_start = ancestor.start;
        self.count += 1;
        true
    }

    /// The finished block; empty when nothing was added.
    #[must_use]
    pub fn finish(self) -> &'a [u8] {
        if self.count == 0 {
            return &[];
        }
        if let Some(count) = self.room.get_mut(5) {
            *count = self.count;
        }
        self.room.get(..self.len).unwrap_or_default()
    }

    /// Nothing is put where it does not fit.
    fn put(&mut self, bytes: &[u8]) {
        if let Some(target) = self.room.get_mut(self.len..self.len + bytes.len()) {
            target.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }
}

/// The arguments that end within the limit.
fn whole_arguments(arguments: &[u8]) -> &[u8] {
    let within = arguments.get(..ARGUMENTS_MAX_BYTES).unwrap_or(arguments);
    if within.last().is_none_or(|last| *last == 0) {
        return within;
    }
    let end = within.iter().rposition(|b| *b == 0).map_or(0, |zero| zero + 1);
    within.get(..end).unwrap_or_default()
}

/// A whole block, borrowed from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ancestry<'a> {
    pub namespaces: Namespaces,
    ancestors: Ancestors<'a>,
}

impl<'a> Ancestry<'a> {
    /// Reads a block; `None` for anything but exactly one whole block of this version within the limits.
    #[must_use]
    pub fn parse(block: &'a [u8]) -> Option<Self> {
        if block.len() > BLOCK_MAX_BYTES {
            return None;
        }
        let (magic, rest) = block.split_first_chunk::<4>()?;
        let ([version, count, _, _], rest) = rest.split_first_chunk::<4>()?;
        if *magic != MAGIC || *version != VERSION || usize::from(*count) > ANCESTORS_MAX {
            return None;
        }
        let (pid, rest) = rest.split_first_chunk::<8>()?;
        let (time, rest) = rest.split_first_chunk::<8>()?;
        let namespaces = Namespaces { pid: u64::from_le_bytes(*pid), time: u64::from_le_bytes(*time) };
        let ancestors = Ancestors { rest };
        let mut walked = ancestors;
        let whole = walked.by_ref().take(ANCESTORS_MAX + 1).count() == usize::from(*count);
        (whole && walked.rest.is_empty()).then_some(Self { namespaces, ancestors })
    }

    /// Nearest first; at most [`ANCESTORS_MAX`].
    #[must_use]
    pub const fn ancestors(&self) -> Ancestors<'a> {
        self.ancestors
    }
}

/// Walks a block; ends early at a length that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ancestors<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Ancestors<'a> {
    type Item = Ancestor<'a>;

    fn next(&mut self) -> Option<Ancestor<'a>> {
        let (pid, rest) = self.rest.split_first_chunk::<4>()?;
        let (start, rest) = rest.split_first_chunk::<8>()?;
        let ([e0, e1, n0, n1, a0, a1], rest) = rest.split_first_chunk::<6>()?;
        let part = |rest: &'a [u8], length: [u8; 2], max: usize| {
            let length = usize::from(u16::from_le_bytes(length));
            rest.split_at_checked(length).filter(|_| length <= max)
        };
        let (executable, rest) = part(rest, [*e0, *e1], EXECUTABLE_MAX_BYTES)?;
        let (name, rest) = part(rest, [*n0, *n1], NAME_MAX_BYTES)?;
        let (arguments, rest) = part(rest, [*a0, *a1], ARGUMENTS_MAX_BYTES)?;
        self.rest = rest;
        let (pid, start) = (u32::from_le_bytes(*pid), u64::from_le_bytes(*start));
        Some(Ancestor { pid, start, executable, name, arguments })
    }
}

/// What a line of `/proc/PID/stat` says of a process's descent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descent<'a> {
    pub name: &'a [u8],
    pub parent: u32,
    /// Clock ticks between boot and the process's start (field 22).
    pub start: u64,
}

/// Reads one line; `None` for anything that is not one. The name may hold blanks and parentheses, so the fields are counted
/// from the last one that closes.
#[must_use]
pub fn descent(line: &[u8]) -> Option<Descent<'_>> {
    let open = line.iter().position(|b| *b == b'(')?;
    let close = line.iter().rposition(|b| *b == b')')?;
    let name = line.get(open + 1..close)?;
    let mut fields =
        line.get(close + 1..)?.split(|b| b.is_ascii_whitespace()).filter(|field| !field.is_empty());
    // Field 3 is the state, 4 the parent, 22 the start.
    let parent = u32::try_from(decimal(fields.nth(1)?)?).ok()?;
    Some(Descent { name, parent, start: decimal(fields.nth(17)?)? })
}

/// The number in the name of a namespace, as in `pid:[4026531836]`; zero when there is none.
#[must_use]
pub fn namespace(link: &[u8]) -> u64 {
    let digits = link.iter().position(|b| *b == b'[').and_then(|open| link.get(open + 1..));
    digits.and_then(|digits| digits.strip_suffix(b"]")).and_then(decimal).unwrap_or(0)
}

#[cfg(feature = "std")]
#[cfg(test)]
mod tests;
