//! The programs under test, private instances for them, and servers that behave in a given way.

use std::{
    cell::Cell,
    fs,
    io::{ErrorKind, Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    panic,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use watchkeeper_frame::{
    Flags, Place, Reply, Request, RequestDecoder,
    spool::{Event, Spool},
};

/// Far above the hook's own 250 ms, so that a loaded machine does not fail a test, and far below "for ever".
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// One build of the hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
}

/// All builds that this machine can make: the one of this profile, the shipped one, and what other systems get.
pub(crate) fn hooks() -> &'static [Hook] {
    static HOOKS: OnceLock<Vec<Hook>> = OnceLock::new();
    HOOKS.get_or_init(|| {
        let mut hooks = vec![Hook { name: "here", program: alone() }];
        if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            let bare = ["--profile", "hook", "--no-default-features"];
            hooks.push(Hook {
                name: "shipped",
                program: built("watchkeeper_bare", &bare).join("hook/watchkeeper-hook"),
            });
            let portable = built("watchkeeper_portable", &[]).join("debug/watchkeeper-hook");
            hooks.push(Hook { name: "portable", program: portable });
        }
        hooks
    })
}

/// Runs a case with each build. A case that fails although the machine was quick enough for the hook's deadlines has
/// failed; on a machine that was too slow just then it is tried again, a few times. `planned` is the time that the
/// case itself takes.
pub(crate) fn each_hook(planned: Duration, case: impl Fn(&Hook)) {
    /// Below the hook's own time for its input, the shortest of its deadlines.
    const QUICK: Duration = Duration::from_millis(120);
    const TRIES: u32 = 8;
    for hook in hooks() {
        for left in (0..TRIES).rev() {
            SLOWEST.set(Duration::ZERO);
            match panic::catch_unwind(panic::AssertUnwindSafe(|| case(hook))) {
                Ok(()) => break,
                Err(_) if left > 0 && SLOWEST.get() >= planned + QUICK => {}
                Err(failure) => panic::resume_unwind(failure),
            }
        }
    }
}

thread_local! {
    /// The longest run of a hook since this was last reset.
    static SLOWEST: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A copy of this profile's build that has no daemon beside it: where that was built, too, a start would start it, and it
/// would take what the tests look for.
fn alone() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("alone");
    fs::create_dir_all(&folder).unwrap();
    let (staged, program) = (folder.join(std::process::id().to_string()), folder.join("watchkeeper-hook"));
    fs::copy(env!("CARGO_BIN_EXE_watchkeeper-hook"), &staged).unwrap();
    fs::rename(&staged, &program).unwrap();
    program
}

fn built(cfg: &str, arguments: &[&str]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(cfg);
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "watchkeeper-hook", "--target-dir"])
        .arg(&target)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RUSTFLAGS", format!("--cfg {cfg}"))
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .unwrap();
    assert!(status.success(), "cannot build the hook with --cfg {cfg}");
    target
}

/// A private instance, removed at the end.
pub(crate) struct Home {
    pub(crate) dir: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wk-hook-{}-{number}", std::process::id()));
        fs::create_dir_all(dir.join("run")).unwrap();
        Self { dir }
    }

    pub(crate) fn place(&self) -> Place {
        Place::of_home(&self.dir)
    }

    pub(crate) fn spooled(&self) -> Vec<Request> {
        self.spooled_events().into_iter().map(|event| event.request).collect()
    }

    /// So many events, which may come a little after their hooks have left.
    pub(crate) fn all_spooled(&self, count: usize) -> Vec<Request> {
        self.until_spooled(count);
        self.spooled()
    }

    /// With what they say about the hooks' ancestors.
    pub(crate) fn spooled_events(&self) -> Vec<Event> {
        let listing = Spool::at(self.place().spool()).drain_order(0).unwrap();
        assert_eq!(listing.foreign, 0);
        listing.files.iter().map(|path| Spool::read(path).unwrap()).collect()
    }

    /// The one event in the spool.
    pub(crate) fn one_spooled(&self) -> Request {
        self.one_spooled_event().request
    }

    pub(crate) fn one_spooled_event(&self) -> Event {
        self.until_spooled(1);
        let mut all = self.spooled_events();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    fn until_spooled(&self, count: usize) {
        let spool = Spool::at(self.place().spool());
        until("the event is in the spool", || spool.drain_order(0).unwrap().files.len() >= count);
    }

    pub(crate) fn command(&self, hook: &Hook, arguments: &[&str]) -> Command {
        let mut command = Command::new(&hook.program);
        command.arg("--home").arg(&self.dir).args(arguments);
        command
    }

    /// Through a shell that first does what `prelude` says, such as closing descriptors.
    pub(crate) fn shell(&self, hook: &Hook, prelude: &str, redirections: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{prelude} exec \"$0\" --home \"$1\" claude Stop {redirections}")]);
        command.arg(&hook.program).arg(&self.dir);
        command
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.dir));
    }
}

/// Looks until something has come about; it must within the bound.
pub(crate) fn until(what: &str, mut look: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !look() {
        assert!(begun.elapsed() < BOUND, "{what}: not within {BOUND:?}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A server on the instance's socket that treats each connection, in a thread of its own, as told.
pub(crate) struct Server<T> {
    results: Receiver<T>,
}

impl<T: Send + 'static> Server<T> {
    pub(crate) fn start(home: &Home, treat: impl Fn(UnixStream) -> T + Send + Clone + 'static) -> Self {
        let listener = UnixListener::bind(home.place().hook_socket()).unwrap();
        let (sender, results) = mpsc::channel();
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (sender, treat) = (sender.clone(), treat.clone());
                thread::spawn(move || drop(sender.send(treat(stream))));
            }
        });
        Self { results }
    }

    /// What came of the next connection that was treated to its end.
    pub(crate) fn next(&self) -> T {
        self.results.recv_timeout(BOUND).unwrap()
    }

    /// The next one, if there is any within the bound.
    pub(crate) fn try_next(&self) -> Option<T> {
        self.results.recv_timeout(BOUND).ok()
    }
}

/// A daemon that takes everything.
pub(crate) fn taking(home: &Home) -> Server<Request> {
    answering(home, vec![Reply::Taken.to_bytes().unwrap()])
}

/// Reads one request, then writes these bytes and closes.
pub(crate) fn answering(home: &Home, parts: Vec<Vec<u8>>) -> Server<Request> {
    Server::start(home, move |mut stream| {
        let request = request(&mut stream);
        for part in &parts {
            // A hook that left early has its reasons; the test looks at those.
            drop(stream.write_all(part));
        }
        request
    })
}

/// Reads one whole request.
pub(crate) fn request(stream: &mut UnixStream) -> Request {
    let mut decoder = RequestDecoder::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let len = stream.read(&mut chunk).unwrap();
        assert_ne!(len, 0, "the hook left in the middle of its frame");
        let (taken, request) = decoder.feed(&chunk[..len]).unwrap();
        if let Some(request) = request {
            assert_eq!(taken, len, "bytes behind the frame");
            return request;
        }
    }
}

/// What one run of the hook looked like from outside.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) pid: u32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) elapsed: Duration,
}

/// A fork becomes another program within milliseconds.
const BUSY_MAX: Duration = Duration::from_secs(10);

/// Runs the hook with this input. Checks what holds always: exit code 0, in time, nothing on standard error.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Ran {
    let started = Instant::now();
    let mut child = spawn(command);
    let mut stdin = child.stdin.take();
    let input = input.to_vec();
    // The hook need not read all of it.
    let writer = thread::spawn(move || drop(stdin.as_mut().map(|stdin| stdin.write_all(&input))));
    let ran = finish(child, started);
    writer.join().unwrap();
    ran
}

pub(crate) fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    loop {
        match command.spawn() {
            // A program that was copied here stays busy while a test beside this one, which forked during the copy, has not
            // yet become another program.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && begun.elapsed() < BUSY_MAX => {
                thread::yield_now();
            }
            spawned => return spawned.unwrap(),
        }
    }
}

pub(crate) fn finish(child: Child, started: Instant) -> Ran {
    let pid = child.id();
    let (sender, done) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let output = done.recv_timeout(BOUND).expect("the hook did not end").unwrap();
    let elapsed = started.elapsed();
    SLOWEST.set(SLOWEST.get().max(elapsed));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    Ran { pid, stdout: output.stdout, elapsed }
}

/// Checks agent, event, payload and flags of a request.
pub(crate) fn check(request: &Request, agent: &str, event: &str, payload: &[u8], flags: Flags) {
    let view = request.view().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!((text(view.agent), text(view.event)), (agent.to_owned(), event.to_owned()));
    assert!(view.payload == payload, "{} bytes instead of {}", view.payload.len(), payload.len());
    assert_eq!(view.head.flags, flags);
}
