//! Locks that outlive their taker: by an exec of the successor, or by descriptors passed over a socket.
//!
//! Releasing the lid lock while the lid is shut suspends the machine at once, so an orderly restart must not let go
//! in between. The successor takes locks of its own before it drops the handed ones ([`super::Keeper::with_handed`]).

use std::{
    collections::BTreeSet,
    fmt::Write,
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
    process::Command,
};

use rustix::{
    fs::{FileType, fstat},
    io::{Errno, FdFlags, fcntl_setfd},
};

use super::{Held, Kind, sys_linux::Disposition};

/// Locks in one hand-over; a text with more is refused.
pub const MAX_HANDED_OVER: usize = 16;

/// Locks on their way from one life of the daemon to the next.
#[derive(Debug, Default)]
pub struct HandOver {
    parts: Vec<(Kind, OwnedFd, u32)>,
    companion: Option<File>,
}

/// While it lives a signal that asks for an end (TERM, INT) ends the process at once, and the system releases what it holds.
/// For the time between the last look at what the handlers heard and the exec: what they hear then, nobody would learn. A
/// hangup (HUP) is ignored, and stays so over the exec: there a handler would become the default, which ends the process.
#[derive(Debug)]
#[must_use = "dropped, it does nothing"]
pub struct EndsAtOnce(Vec<Disposition>);

impl EndsAtOnce {
    /// From here on; look at what the handlers heard afterwards.
    pub fn begin() -> Self {
        let mut before = Disposition::of_ends_replaced();
        before.extend(Disposition::of_hangup_ignored());
        Self(before)
    }
}

impl Drop for EndsAtOnce {
    fn drop(&mut self) {
        self.0.iter().for_each(Disposition::restore);
    }
}

/// What a companion is called in a description, in the place of a kind; its pid is always 0.
const COMPANION: &str = "file";

/// Handed locks that cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    #[error("the handed-over locks are not described as kind:pid:descriptor")]
    Malformed,
    #[error("the handed-over descriptor {raw} is not open or not what it is said to be")]
    NotALock { raw: RawFd },
    #[error("making descriptor {raw} survive the exec: {errno}")]
    Keep { raw: RawFd, errno: Errno },
    #[error("cannot become {}", program.display())]
    Exec { program: PathBuf, source: io::Error },
    #[error("a lock in the hand-over could not be closed to children again: {errno}")]
    Withdraw { errno: Errno },
}

impl HandOver {
    /// Prepares locks for a successor. They are released if this is dropped.
    #[must_use]
    pub fn new(held: impl IntoIterator<Item = Held>) -> Self {
        let parts = held.into_iter().take(MAX_HANDED_OVER).map(Held::into_parts).collect();
        Self { parts, companion: None }
    }

    /// Sends a file along, such as the lock of the one who may hold all this. It replaces an earlier one.
    #[must_use]
    pub fn with_companion(self, file: File) -> Self {
        Self { companion: Some(file), ..self }
    }

    /// The file that came along.
    pub fn take_companion(&mut self) -> Option<File> {
        self.companion.take()
    }

    /// The locks with their kinds and listed pids, to pass over a socket (`SCM_RIGHTS`).
    #[must_use]
    pub fn into_parts(self) -> Vec<(Kind, OwnedFd, u32)> {
        self.parts
    }

    /// Locks received over a socket.
    ///
    /// # Errors
    /// When a descriptor is no pipe, which logind's locks are.
    pub fn from_parts(parts: Vec<(Kind, OwnedFd, u32)>) -> Result<Self, HandOverError> {
        for (_, fd, _) in &parts {
            let is_fifo = fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
            if !is_fifo {
                return Err(HandOverError::NotALock { raw: fd.as_raw_fd() });
            }
        }
        Ok(Self { parts, companion: None })
    }

    /// Makes the locks survive an exec of this process and describes them in one word for
    /// [`from_text`](Self::from_text), e.g. in an environment variable. Between this call and the exec no other child
    /// may be started: it would inherit the locks. Keep `self` alive until the exec.
    ///
    /// # Errors
    /// When the system refuses; the locks are unharmed.
    pub fn keep_over_exec(&self) -> Result<String, HandOverError> {
        let mut text = String::new();
        for (kind, fd, pid) in &self.parts {
            let raw = fd.as_raw_fd();
            fcntl_setfd(fd, FdFlags::empty()).map_err(|errno| HandOverError::Keep { raw, errno })?;
            let comma = if text.is_empty() { "" } else { "," };
            // Writing to a String cannot fail.
            _ = write!(text, "{comma}{}:{pid}:{raw}", kind.name());
        }
        if let Some(file) = &self.companion {
            let raw = file.as_raw_fd();
            fcntl_setfd(file, FdFlags::empty()).map_err(|errno| HandOverError::Keep { raw, errno })?;
            let comma = if text.is_empty() { "" } else { "," };
            _ = write!(text, "{comma}{COMPANION}:0:{raw}");
        }
        Ok(text)
    }

    /// Becomes the program that `command` makes of the description of the locks (see
    /// [`keep_over_exec`](Self::keep_over_exec)); same process, same pid. Returns only when that fails, with the locks
    /// as they were: held, and closed to children again. No other thread may start a child meanwhile.
    #[must_use]
    pub fn exec(self, command: impl FnOnce(&str) -> Command) -> (Self, HandOverError) {
        let mut error = match self.keep_over_exec() {
            Ok(text) => {
                let mut command = command(&text);
                // The exec gives the successor the default. Left here, the first client to hang up would end us.
                let sigpipe = Disposition::of_pipe();
                let source = command.exec();
                if let Some(sigpipe) = sigpipe {
                    sigpipe.restore();
                }
                HandOverError::Exec { program: command.get_program().into(), source }
            }
            Err(error) => error,
        };
        let locks = self.parts.iter().map(|(_, fd, _)| fd.as_fd());
        for fd in locks.chain(self.companion.as_ref().map(AsFd::as_fd)) {
            if let Err(errno) = fcntl_setfd(fd, FdFlags::CLOEXEC) {
                error = HandOverError::Withdraw { errno };
            }
        }
        (self, error)
    }

    /// Takes over what [`keep_over_exec`](Self::keep_over_exec) of the program's former self left open. To be called
    /// once, before anything else in the process opens descriptors.
    ///
    /// # Errors
    /// When the text is malformed or a descriptor is not an open pipe; everything described is closed then.
    pub fn from_text(text: &str) -> Result<Self, HandOverError> {
        let (mut handed, mut error) = (Self::default(), None);
        let mut taken = BTreeSet::new();
        // To the end also after an error: what is described was left open, and nobody else would close it.
        for entry in text.split(',').filter(|entry| !entry.is_empty()) {
            if let Err(wrong) = handed.take_described(entry, &mut taken) {
                error.get_or_insert(wrong);
            }
        }
        error.map_or(Ok(handed), Err)
    }

    /// Takes what one entry describes, or closes it.
    fn take_described(&mut self, entry: &str, taken: &mut BTreeSet<RawFd>) -> Result<(), HandOverError> {
        let (_, raw) = entry.rsplit_once(':').ok_or(HandOverError::Malformed)?;
        let raw = raw.parse().map_err(|_| HandOverError::Malformed)?;
        // One descriptor has one owner.
        if !taken.insert(raw) {
            return Err(HandOverError::Malformed);
        }
        let fd = super::sys_linux::take_inherited(raw).map_err(|_| HandOverError::NotALock { raw })?;
        let (kind, pid, _) = parse(entry).ok_or(HandOverError::Malformed)?;
        let is = |expected| fstat(&fd).is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == expected);
        match kind {
            Some(_) if !is(FileType::Fifo) => return Err(HandOverError::NotALock { raw }),
            Some(_) if self.parts.len() == MAX_HANDED_OVER => return Err(HandOverError::Malformed),
            Some(kind) => self.parts.push((kind, fd, pid)),
            None if !is(FileType::RegularFile) || self.companion.is_some() => {
                return Err(HandOverError::NotALock { raw });
            }
            None => self.companion = Some(File::from(fd)),
        }
        Ok(())
    }

    /// Whether no lock is handed over.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The locks, for [`super::Keeper::with_handed`].
    #[must_use]
    pub fn into_held(self) -> Vec<Held> {
        self.parts.into_iter().map(|(kind, fd, pid)| Held::adopted(kind, fd, pid)).collect()
    }
}

/// Kind, pid and descriptor; no kind is the companion.
fn parse(entry: &str) -> Option<(Option<Kind>, u32, RawFd)> {
    let mut fields = entry.split(':');
    let name = fields.next()?;
    let kind = if name == COMPANION { None } else { Some(Kind::of_name(name)?) };
    let parsed = (kind, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    fields.next().is_none().then_some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(Option<Kind>, u32, RawFd)>) {
        assert_eq!(parse(text), expected, "{text:?}");
    }

    #[test]
    fn entries_are_kind_pid_descriptor() {
        check("idle:12:5", Some((Some(Kind::Idle), 12, 5)));
        check("handle-lid-switch:12:5", Some((Some(Kind::LidSwitch), 12, 5)));
        check("file:0:5", Some((None, 0, 5)));
        for text in
            ["", "idle", "idle:12", "idle:12:", "idle:12:5:6", "shutdown:1:5", "idle:-1:5", "idle:1:x"]
        {
            check(text, None);
        }
    }

    #[test]
    fn an_exec_that_fails_leaves_the_locks_closed_to_children_and_signals_as_they_were() {
        let (lock, _other) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let raw = lock.as_raw_fd();
        let ignored = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
            u64::from_str_radix(mask.trim(), 16).unwrap()
        };
        let ignored_before = ignored();
        assert_ne!(ignored_before & (1 << (libc::SIGPIPE - 1)), 0, "as every program of ours begins");
        let file = File::open("/proc/self/status").unwrap();
        let raw_file = file.as_raw_fd();
        let handed = HandOver::from_parts(vec![(Kind::Idle, lock, 7)]).unwrap().with_companion(file);
        let mut described = String::new();
        let hangup = 1 << (libc::SIGHUP - 1);
        assert_eq!(ignored_before & hangup, 0);
        let ends_at_once = EndsAtOnce::begin();
        let (mut handed, error) = handed.exec(|text| {
            assert_eq!(ignored(), ignored_before | hangup, "what is ignored stays so over the exec");
            described.push_str(text);
            Command::new("/nonexistent/program")
        });
        assert_eq!(described, format!("idle:7:{raw},file:0:{raw_file}"));
        assert!(
            matches!(&error, HandOverError::Exec { program, .. } if program.ends_with("program")),
            "{error:?}"
        );
        assert_eq!(ignored(), ignored_before | hangup, "who hangs up ends nobody");
        drop(ends_at_once);
        assert_eq!(ignored(), ignored_before);
        let (_, fd, _) = &handed.parts[0];
        assert_eq!(rustix::io::fcntl_getfd(fd), Ok(FdFlags::CLOEXEC));
        assert!(!handed.is_empty());
        let file = handed.take_companion().unwrap();
        assert_eq!(rustix::io::fcntl_getfd(&file), Ok(FdFlags::CLOEXEC));
    }

    #[test]
    fn descriptors_that_are_no_locks_are_refused() {
        let file = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        assert!(HandOver::from_parts(vec![(Kind::Idle, file, 1)]).is_err());
        assert!(HandOver::from_text("idle:1:0").is_err());
        assert!(HandOver::from_text("idle:1:-1").is_err());
        assert!(HandOver::from_text("idle:1:1000000").is_err());
        assert!(HandOver::from_text("idle:1").is_err());
        assert!(HandOver::from_text("file:0:1000000").is_err());
        assert!(HandOver::from_text("").is_ok_and(|handed| handed.into_held().is_empty()));
    }

    /// A pipe's end as a predecessor leaves it open, and the end at which its closing is seen.
    fn left_open() -> (RawFd, std::io::PipeReader) {
        let (reader, writer) = std::io::pipe().unwrap();
        (std::os::fd::IntoRawFd::into_raw_fd(writer), reader)
    }

    #[test]
    fn what_a_refused_description_names_is_closed() {
        use std::io::Read as _;
        let ends: Vec<(RawFd, std::io::PipeReader)> = (0..6).map(|_| left_open()).collect();
        let raw: Vec<RawFd> = ends.iter().map(|end| end.0).collect();
        let refused = HandOver::from_text(&format!(
            "idle:1:{},shutdown:1:{},idle,idle:1:{},file:0:{},idle:x:{},handle-lid-switch:1:{}",
            raw[0], raw[1], raw[2], raw[3], raw[4], raw[5]
        ));
        assert!(matches!(refused, Err(HandOverError::Malformed)), "the first that is wrong: {refused:?}");
        for (raw, mut seen) in ends {
            assert_eq!(seen.read(&mut [0]).unwrap(), 0, "{raw} is closed");
        }
        let (raw, mut seen) = left_open();
        assert!(HandOver::from_text(&format!("idle:1:{raw},sleep:1:{raw}")).is_err(), "one lock, two owners");
        assert_eq!(seen.read(&mut [0]).unwrap(), 0);
        let (raw, mut seen) = left_open();
        let handed = HandOver::from_text(&format!("idle:1:{raw}")).unwrap();
        assert_eq!(handed.parts.len(), 1);
        drop(handed);
        assert_eq!(seen.read(&mut [0]).unwrap(), 0);
    }
}
