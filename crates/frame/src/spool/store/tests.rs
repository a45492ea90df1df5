use super::*;
use crate::{
    generator::Generator,
    spool::SPOOL_MAX_FILES,
    wire::{self, Head, PREFIX_MAX_BYTES},
};

/// A directory of this test alone, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("watchkeeper-spool-{}-{test}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        Self(path)
    }

    fn spool(&self) -> Spool {
        Spool::at(self.0.join("state/spool"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn frame(boot: u32, started_boot_ns: u64, wall_ms: i64, event: &str) -> Vec<u8> {
    let delivery = u128::from(started_boot_ns) << 32 | u128::from(boot);
    let head =
        Head { boot_id: u128::from(boot) << 96, started_boot_ns, wall_ms, delivery, ..Head::default() };
    let mut buffer = vec![0; PREFIX_MAX_BYTES];
    let mut draft = wire::draft(&mut buffer, head, b"claude", event.as_bytes(), []).unwrap();
    draft.seal(0).to_vec()
}

fn written(spool: &Spool, frame: &[u8]) -> PathBuf {
    written_with(spool, frame, b"")
}

fn written_with(spool: &Spool, frame: &[u8], ancestry: &[u8]) -> PathBuf {
    match spool.write(frame, ancestry).unwrap() {
        Spooled::Written { path, .. } => path,
        Spooled::Dropped => panic!("dropped"),
    }
}

#[test]
fn what_is_written_is_read() {
    let scratch = Scratch::new("read");
    let spool = scratch.spool();
    for seed in 0..20 {
        let mut random = Generator::new(seed);
        let frame = random.frame();
        // Without a block as earlier hooks wrote it, and with one, whatever it says.
        let ancestry = if seed % 2 == 0 { Vec::new() } else { random.bytes(300) };
        let path = written_with(&spool, &frame, &ancestry);
        let event = Spool::read(&path).unwrap();
        assert_eq!((event.request.as_frame(), event.ancestry), (frame.as_slice(), ancestry), "seed {seed}");
        let name = SpoolName::parse(path.file_name().unwrap().as_encoded_bytes()).unwrap();
        assert_eq!(u64::from(name.file_bytes), fs::metadata(&path).unwrap().len());
        Spool::remove(&path).unwrap();
        Spool::remove(&path).unwrap();
    }
    assert_eq!(spool.drain_order(1).unwrap(), Listing::default());
    assert!(spool.write(b"no frame", b"").is_err());
}

#[test]
fn order_is_that_of_the_starts_whatever_the_wall_clock_did() {
    let scratch = Scratch::new("order");
    let spool = scratch.spool();
    // Boot 9 is this one; its wall clock was set back before everything else. Boot 5 was before boot 2.
    let wanted =
        [(5, 70, 1_000), (5, 80, 900), (2, 10, 2_000), (2, 11, 2_001), (9, 1, 500), (9, 2, 100), (9, 3, 300)];
    let mut paths = BTreeMap::new();
    for at in [3, 6, 0, 2, 5, 1, 4] {
        let (boot, ns, wall) = wanted[at];
        paths.insert(at, written(&spool, &frame(boot, ns, wall, "Stop")));
    }
    fs::write(spool.directory().join("notes.txt"), "x").unwrap();
    fs::write(spool.directory().join("tmp-1"), "x").unwrap();
    let listing = spool.drain_order(9 << 96 | 77).unwrap();
    assert_eq!(listing.files, paths.into_values().collect::<Vec<_>>());
    assert_eq!((listing.foreign, listing.more), (1, false));
}

#[test]
fn torn_and_rotten_files_are_set_aside() {
    let scratch = Scratch::new("bad");
    let spool = scratch.spool();
    let check = |change: &dyn Fn(&mut Vec<u8>), expected: Option<Corruption>| {
        let path = written(&spool, &frame(1, 1, 1, "Stop"));
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
        match (Spool::read(&path), expected) {
            (Ok(_), None) => Spool::remove(&path).unwrap(),
            (Err(SpoolError::Corrupt { why, .. }), Some(expected)) => {
                assert_eq!(why, expected);
                spool.set_aside(&path).unwrap();
                assert!(spool.directory().join("bad").join(path.file_name().unwrap()).exists());
            }
            (other, expected) => panic!("{other:?} instead of {expected:?}"),
        }
        assert!(spool.drain_order(0).unwrap().files.is_empty());
    };
    let resealed = |bytes: &mut Vec<u8>, at: usize, to: u8| {
        bytes.truncate(bytes.len() - TRAILER_BYTES);
        bytes[at] = to;
        let trailer = trailer(bytes, b"");
        bytes.extend_from_slice(&trailer);
    };
    check(&|_| {}, None);
    check(&|bytes| bytes.truncate(50), Some(Corruption::Checksum));
    check(&|bytes| bytes.clear(), Some(Corruption::Checksum));
    check(&|bytes| bytes[30] ^= 1, Some(Corruption::Checksum));
    check(&|bytes| bytes.resize(FILE_MAX_BYTES + 1, 0), Some(Corruption::TooLong));
    check(&|bytes| resealed(bytes, 0, b'X'), Some(Corruption::Frame(FrameError::Magic)));
    let path = written(&spool, &frame(1, 1, 1, "Stop"));
    let mut bytes = fs::read(&path).unwrap();
    resealed(&mut bytes, 4, 2);
    fs::write(&path, bytes).unwrap();
    assert!(matches!(Spool::read(&path), Err(SpoolError::Newer { version: 2, .. })));
    assert!(matches!(Spool::read(&scratch.0.join("none")), Err(SpoolError::Io { .. })));
    assert!(matches!(Spool::read(&scratch.0), Err(SpoolError::Corrupt { why: Corruption::Kind, .. })));
}

#[test]
fn the_heap_of_bad_files_is_bounded() {
    let scratch = Scratch::new("heap");
    let spool = scratch.spool();
    create_private(spool.directory()).unwrap();
    for number in 0..BAD_MAX_FILES + 3 {
        let path = spool.directory().join(format!("f{number}"));
        fs::write(&path, "x").unwrap();
        spool.set_aside(&path).unwrap();
        assert!(!path.exists());
    }
    assert_eq!(fs::read_dir(spool.directory().join("bad")).unwrap().count(), BAD_MAX_FILES);
}

#[test]
fn a_full_spool_gives_up_the_oldest_ordinary_event_and_counts() {
    let scratch = Scratch::new("full");
    let spool = scratch.spool();
    create_private(spool.directory()).unwrap();
    for number in 0..SPOOL_MAX_FILES as u64 {
        let event = if number == 10 || number == 20 { "PreToolUse" } else { "Stop" };
        let frame = frame(1, number, 5, event);
        let head = RequestRef::parse(&frame).unwrap().head;
        let name = SpoolName::new(&head, EventClass::of(event.as_bytes()), 100);
        fs::write(spool.path_of(&name), "").unwrap();
    }
    let started = |listing: &Listing| -> Vec<u64> {
        let names = listing.files.iter().map(|path| path.file_name().unwrap().as_encoded_bytes().to_vec());
        names.map(|name| SpoolName::parse(&name).unwrap().started_boot_ns).collect()
    };
    let late = u64::MAX;
    written(&spool, &frame(1, late - 3, 5, "Stop"));
    written(&spool, &frame(1, late - 2, 5, "PreToolUse"));
    let seen = started(&spool.drain_order(0).unwrap());
    assert!(!seen.contains(&10) && !seen.contains(&20) && seen.contains(&0));
    assert_eq!(seen.len(), SPOOL_MAX_FILES);
    written(&spool, &frame(1, late - 1, 5, "Stop"));
    assert!(matches!(spool.write(&frame(1, late, 5, "PreToolUse"), b"").unwrap(), Spooled::Dropped));
    written(&spool, &frame(1, late, 5, "SessionStart"));
    let seen = started(&spool.drain_order(0).unwrap());
    assert!(!seen.contains(&(late - 2)) && !seen.contains(&0) && seen.contains(&late));
    assert_eq!(spool.take_dropped().unwrap(), 5);
    assert_eq!(spool.take_dropped().unwrap(), 0);
}

#[test]
fn only_old_half_written_files_are_swept() {
    let scratch = Scratch::new("sweep");
    let spool = scratch.spool();
    assert_eq!(spool.sweep_temporary(SystemTime::now()).unwrap(), 0);
    let event = written(&spool, &frame(1, 1, 1, "Stop"));
    fs::write(spool.directory().join("tmp-1"), "x").unwrap();
    assert_eq!(spool.sweep_temporary(SystemTime::now()).unwrap(), 0);
    let later = SystemTime::now() + TEMPORARY_MAX_AGE * 2;
    assert_eq!(spool.sweep_temporary(later).unwrap(), 1);
    assert!(event.exists());
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new("mode");
    let spool = scratch.spool();
    let path = written(&spool, &frame(1, 1, 1, "Stop"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(spool.directory()), 0o700);
    assert_eq!(mode(spool.directory().parent().unwrap()), 0o700);
}
