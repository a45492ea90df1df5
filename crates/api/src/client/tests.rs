//! The client against a small server on a real socket.
#![cfg(unix)]

use super::*;
use crate::method::{Call, Changed, GetWhy, Nothing, SessionParams, SessionRemove, Why};
use std::{
    io::{BufRead, BufReader, Write},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    thread::{self, JoinHandle},
};

/// Long enough for a busy machine; a test that waits that long fails.
const PATIENCE: Duration = Duration::from_secs(20);

struct Server {
    directory: tempfile::TempDir,
    thread: JoinHandle<()>,
}

impl Server {
    /// Serves one connection with `answer`, which gets each line and the stream.
    fn start(mut answer: impl FnMut(&str, &mut UnixStream) + Send + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("api.sock")).unwrap();
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            for line in lines.map_while(Result::ok) {
                answer(&line, &mut stream);
            }
        });
        Self { directory, thread }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("api.sock")
    }

    fn connect(&self, answer_within: Duration) -> Result<Client, ClientError> {
        Client::connect(&self.path(), &ClientOptions { answer_within, ..ClientOptions::new("test") })
    }

    fn end(self, client: impl Sized) {
        drop(client);
        self.thread.join().unwrap();
    }
}

fn request(line: &str) -> (RequestId, Call) {
    let Ok(Message::Request { id, method, params }) = Message::parse(line.as_bytes()) else {
        panic!("not a request: {line}")
    };
    (id, Call::parse(&method, params).unwrap())
}

fn reply(stream: &mut UnixStream, id: RequestId, outcome: Result<serde_json::Value, Failure>) {
    stream.write_all(&Message::Response { id: Some(id), outcome }.to_line().unwrap()).unwrap();
}

fn push(stream: &mut UnixStream, revision: u64) {
    let message = Pushed::Changed(Changed { revision }).to_message().unwrap();
    stream.write_all(&message.to_line().unwrap()).unwrap();
}

fn hello() -> serde_json::Value {
    serde_json::json!({"protocol": 1, "version": "0.0.1", "capabilities": {"events": 1}, "scope": "machine", "new": 0})
}

#[test]
fn calls_and_errors_come_back_typed() {
    let server = Server::start(|line, stream| {
        let (id, call) = request(line);
        if let Call::Initialize(params) = call {
            assert_eq!(params.protocol, PROTOCOL);
            reply(stream, id, Ok(hello()));
        } else if matches!(call, Call::GetWhy(_)) {
            // A stray notification and somebody else's answer before the real one.
            push(stream, 1);
            reply(stream, RequestId::Text("other".into()), Ok(serde_json::Value::Null));
            reply(stream, id, Ok(serde_json::json!({"awake": null, "why": "not known", "code": "unknown"})));
        } else {
            let failure =
                Failure::new(ErrorCode::UnknownSession, "no session matches 'x'").with_hint("Look.");
            reply(stream, id, Err(failure));
        }
    });
    let mut client = server.connect(PATIENCE).unwrap();
    assert_eq!(client.hello().version, "0.0.1");
    let why = client.call::<GetWhy>(&Nothing {}).unwrap();
    assert_eq!(why, Why { awake: None, why: "not known".into(), code: "unknown".into() });
    let error = client.call::<SessionRemove>(&SessionParams { session: "x".into() }).unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UnknownSession));
    assert_eq!(error.to_string(), "no session matches 'x'");
    // A refusal leaves the connection in use.
    client.call::<GetWhy>(&Nothing {}).unwrap();
    server.end(client);
}

#[test]
fn pushes_arrive_in_order_and_the_end_is_told() {
    let server = Server::start(|line, stream| {
        let (id, call) = request(line);
        if matches!(call, Call::Subscribe(_)) {
            reply(stream, id, Ok(serde_json::json!({"revision": 1, "seq": 7})));
            push(stream, 1);
            push(stream, 2);
            stream.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"later\"}\n").unwrap();
            stream.shutdown(std::net::Shutdown::Both).unwrap();
        } else {
            reply(stream, id, Ok(hello()));
        }
    });
    let client = server.connect(PATIENCE).unwrap();
    let mut subscription = client.subscribe(&SubscribeParams::default()).unwrap();
    assert_eq!(subscription.start.seq, 7);
    let mut pushed = || subscription.next(Some(PATIENCE));
    assert_eq!(pushed().unwrap(), Some(Pushed::Changed(Changed { revision: 1 })));
    assert_eq!(pushed().unwrap(), Some(Pushed::Changed(Changed { revision: 2 })));
    assert_eq!(pushed().unwrap(), Some(Pushed::Other("later".into())));
    assert!(matches!(pushed(), Err(ClientError::Closed { .. })));
    server.end(subscription);
}

#[test]
fn a_silent_server_costs_no_more_than_the_limit() {
    let server = Server::start(|_, _| ());
    let error = server.connect(Duration::from_millis(30)).unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { method: "initialize", .. }), "{error}");
    server.end(());
}

#[test]
fn garbage_and_endless_frames_are_refused() {
    let server = Server::start(|_, stream| stream.write_all(b"HTTP/1.1 400 Bad Request\n").unwrap());
    let error = server.connect(PATIENCE).unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error}");
    server.end(());

    let server = Server::start(|_, stream| {
        // The client hangs up in the middle.
        drop(stream.write_all(&vec![b' '; crate::rpc::FRAME_BYTES_MAX + 100]));
    });
    let error = server.connect(PATIENCE).unwrap_err();
    assert!(matches!(error, ClientError::Broken { .. }), "{error}");
    server.end(());
}

#[test]
fn nobody_there_is_told_apart_from_somebody_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("api.sock");
    let connect = || Client::connect(&path, &ClientOptions::new("test")).unwrap_err();
    assert!(connect().is_unreachable());
    drop(UnixListener::bind(&path).unwrap());
    assert!(connect().is_unreachable(), "a socket that nobody listens on any more");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let error = connect();
    assert!(matches!(error, ClientError::Untrusted { .. }), "{error}");
}
