//! A daemon of its own in a folder of its own, and hooks as bytes.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use watchkeeper_api::{
    Client, Status,
    client::{ClientError, ClientOptions},
    method::{DaemonStop, GetDaemonStatus, GetStatus, Nothing},
};
use watchkeeper_daemon::{Origin, Place, RunError, run};
use watchkeeper_frame::{Head, Reply, wire};
use watchkeeper_os::clock;

/// Waiting for anything takes at most this; a machine under load is slow, a broken daemon is slower.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

const LOOK_EVERY: Duration = Duration::from_millis(10);
/// So much of a log's end is shown when something failed.
const TAIL_BYTES: usize = 4096;

pub(crate) struct Daemon {
    pub(crate) place: Place,
    thread: Option<JoinHandle<Result<(), RunError>>>,
}

impl Daemon {
    /// Starts a daemon in `home` without power, and waits until it answers.
    pub(crate) fn start(home: &Path) -> Self {
        let place = Place::of_home(home);
        std::fs::create_dir_all(&place.config).unwrap();
        let config = place.config.join("config.toml");
        if !config.exists() {
            std::fs::write(config, "keep_awake = \"off\"\ncleanup_delay = \"off\"\n").unwrap();
        }
        let own = place.clone();
        let thread = std::thread::spawn(move || run(own, true, Origin::default()));
        let mut daemon = Self { place, thread: Some(thread) };
        daemon.wait_until_it_answers();
        daemon
    }

    fn wait_until_it_answers(&mut self) {
        let begun = Instant::now();
        while let Err(error) = self.connect() {
            if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
                // A panic is the thread's error.
                panic!("the daemon ended instead of answering: {:?}\n{}", thread.join(), self.logs());
            }
            let waited = begun.elapsed();
            assert!(waited < PATIENCE, "no answer within {waited:?}, last {error:?}\n{}", self.logs());
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// How its logs end. The ordinary one is that of the process's first daemon.
    fn logs(&self) -> String {
        let tail = |name: &str| {
            let text = std::fs::read(self.place.state.join(name)).unwrap_or_default();
            let tail = &text[text.len().saturating_sub(TAIL_BYTES)..];
            format!("--- {name}\n{}\n", String::from_utf8_lossy(tail))
        };
        ["daemon.log", "exceptions.log"].map(tail).concat()
    }

    fn connect(&self) -> Result<Client, ClientError> {
        Client::connect(&self.place.api_socket(), &ClientOptions::new("test"))
    }

    pub(crate) fn client(&self) -> Client {
        until("a client connects", || self.connect().ok())
    }

    pub(crate) fn status(&self) -> Status {
        self.client().call::<GetStatus>(&Nothing {}).unwrap()
    }

    pub(crate) fn state_of(&self, id: &str) -> Option<&'static str> {
        self.status().sessions.iter().find(|s| s.id == id).map(|s| s.state.name())
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        let status = self.client().call::<GetDaemonStatus>(&Nothing {}).unwrap();
        status.counters.get(name).copied().unwrap_or(0)
    }

    /// Stops it in an orderly way and waits for its end.
    pub(crate) fn stop(mut self) {
        self.client().call::<DaemonStop>(&Nothing {}).unwrap();
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

/// Polls for something that another thread brings about.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// One event of Claude Code as a frame.
pub(crate) fn frame(delivery: u128, event: &str, payload: &Value) -> Vec<u8> {
    raw_frame(delivery, "claude", event, payload.to_string().as_bytes())
}

pub(crate) fn raw_frame(delivery: u128, agent: &str, event: &str, payload: &[u8]) -> Vec<u8> {
    let now = clock::now();
    let head = Head {
        delivery,
        started_boot_ns: now.boot.0,
        boot_id: now.boot_id.0,
        wall_ms: now.wall.0,
        hook_pid: std::process::id(),
        wait_ms: 250,
        original_payload_bytes: payload.len() as u64,
        ..Head::default()
    };
    let mut buffer = vec![0; wire::PREFIX_MAX_BYTES + payload.len()];
    let mut draft = wire::draft(&mut buffer, head, agent.as_bytes(), event.as_bytes(), []).unwrap();
    draft.payload_room()[..payload.len()].copy_from_slice(payload);
    draft.seal(payload.len()).to_vec()
}

/// What Claude Code sends with `event` in session `id`.
pub(crate) fn payload(id: &str, event: &str, more: Value) -> Value {
    let mut payload = json!({ "session_id": id, "cwd": "/somewhere", "hook_event_name": event });
    let fields = payload.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    payload
}

/// Sends bytes as a hook would and gives the answer's kind; `None`: no answer came.
pub(crate) fn send(place: &Place, bytes: &[u8]) -> Option<String> {
    let mut stream = UnixStream::connect(place.hook_socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        if let Ok(Some((reply, _))) = Reply::parse(&answer) {
            return Some(format!("{reply:?}"));
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(read) => answer.extend_from_slice(&chunk[..read]),
        }
    }
}

/// Sends one event and insists on its being taken.
pub(crate) fn tell(daemon: &Daemon, delivery: u128, id: &str, event: &str, more: Value) {
    let answer = send(&daemon.place, &frame(delivery, event, &payload(id, event, more)));
    assert_eq!(answer.as_deref(), Some("Taken"), "{event}");
}
