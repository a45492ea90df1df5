use super::*;
use crate::generator::Generator;

struct Given<'a> {
    agent: &'a [u8],
    event: &'a [u8],
    argv: &'a [&'a [u8]],
    payload: &'a [u8],
}

fn encode(head: Head, given: &Given<'_>) -> Vec<u8> {
    let mut buffer = vec![0xa5; PREFIX_MAX_BYTES + given.payload.len()];
    let mut draft = draft(&mut buffer, head, given.agent, given.event, given.argv.iter().copied()).unwrap();
    let room = draft.payload_room();
    let kept = room.len().min(given.payload.len());
    room[..kept].copy_from_slice(&given.payload[..kept]);
    draft.seal(kept).to_vec()
}

fn check(given: &Given<'_>, expected_flags: Flags) {
    let head = Head { delivery: 7, wall_ms: -5, ..Head::default() };
    let frame = encode(head, given);
    let view = RequestRef::parse(&frame).unwrap();
    assert_eq!(view.head, Head { flags: expected_flags, ..head });
    assert_eq!(view.agent, &given.agent[..given.agent.len().min(AGENT_MAX_BYTES)]);
    assert_eq!(view.event, &given.event[..given.event.len().min(EVENT_MAX_BYTES)]);
    for (seen, wanted) in view.argv().zip(given.argv) {
        assert!(wanted.starts_with(seen));
    }
    if expected_flags == Flags::default() {
        assert_eq!(view.argv().collect::<Vec<_>>(), given.argv);
    }
    assert_eq!(view.payload, given.payload);
}

#[test]
fn what_goes_in_comes_out() {
    let plain = Given { agent: b"claude", event: b"Stop", argv: &[], payload: b"{}" };
    check(&plain, Flags::default());
    check(&Given { argv: &[b"", b"{\"type\":\"x\"}", b"\xff\0"], ..plain }, Flags::default());
    check(&Given { agent: b"", event: b"", argv: &[], payload: b"" }, Flags::default());
    check(
        &Given { agent: &[b'a'; 64], event: &[b'e'; 128], argv: &[&[][..]; 16], payload: b"" },
        Flags::default(),
    );
}

#[test]
fn over_long_arguments_are_cut_and_said() {
    let plain = Given { agent: b"claude", event: b"Stop", argv: &[], payload: b"{}" };
    check(&Given { agent: &[b'a'; 65], ..plain }, Flags::ARGS_CUT);
    check(&Given { event: &[b'e'; 129], ..plain }, Flags::ARGS_CUT);
    check(&Given { argv: &[&[7][..]; 17], ..plain }, Flags::ARGS_CUT);
    check(&Given { argv: &[&[b'x'; ARGV_MAX_BYTES - 4]], ..plain }, Flags::default());
    check(&Given { argv: &[&[b'x'; ARGV_MAX_BYTES - 3]], ..plain }, Flags::ARGS_CUT);
    check(&Given { argv: &[&[b'x'; ARGV_MAX_BYTES - 8], b"", b""], ..plain }, Flags::ARGS_CUT);
}

#[test]
fn a_payload_of_the_greatest_length_fits_and_no_more() {
    let payload = vec![b'p'; PAYLOAD_MAX_BYTES + 1];
    let given = Given { agent: b"claude", event: b"Stop", argv: &[], payload: &payload };
    let frame = encode(Head::default(), &given);
    assert_eq!(RequestRef::parse(&frame).unwrap().payload.len(), PAYLOAD_MAX_BYTES);
}

#[test]
fn the_header_has_the_documented_layout() {
    let head = Head {
        flags: Flags(0x0403_0201),
        delivery: 0x1011,
        started_boot_ns: 0x2021,
        boot_id: 0x3031,
        wall_ms: 0x4041,
        hook_pid: 0x5051,
        wait_ms: 0x6061,
        original_payload_bytes: 0x7071,
    };
    let frame = encode(head, &Given { agent: b"ab", event: b"cde", argv: &[b"f"], payload: b"gh" });
    let expected: &[(usize, &[u8])] = &[
        (0, b"WKHK\x01\0\x58\0\x01\x02\x03\x04\x51\x50\0\0\x11\x10"),
        (32, b"\x21\x20\0\0\0\0\0\0\x31\x30"),
        (56, b"\x41\x40\0\0\0\0\0\0\x61\x60\0\0\x02\x03\x01\0\x05\0\0\0\x02\0\0\0\x71\x70\0\0\0\0\0\0abcde\x01\0\0\0fgh"),
    ];
    for (at, bytes) in expected {
        assert_eq!(&frame[*at..*at + bytes.len()], *bytes, "at {at}");
    }
    assert_eq!(frame.len(), HEADER_BYTES + 2 + 3 + 5 + 2);
}

#[test]
fn a_longer_header_of_the_same_version_is_skipped() {
    let given = Given { agent: b"claude", event: b"Stop", argv: &[b"x"], payload: b"{}" };
    let mut frame = encode(Head::default(), &given);
    frame.splice(HEADER_BYTES..HEADER_BYTES, [9; 40]);
    frame[6] = 128;
    let view = RequestRef::parse(&frame).unwrap();
    assert_eq!((view.agent, view.event, view.payload), (&b"claude"[..], &b"Stop"[..], &b"{}"[..]));
}

#[test]
fn what_is_no_frame_is_named() {
    let frame = encode(Head::default(), &Given { agent: b"a", event: b"b", argv: &[b"xy"], payload: b"{}" });
    let changed = |at: usize, to: u8| {
        let mut bytes = frame.clone();
        bytes[at] = to;
        RequestRef::parse(&bytes).unwrap_err()
    };
    assert_eq!(changed(0, b'X'), FrameError::Magic);
    assert_eq!(changed(4, 2), FrameError::Version { found: 2 });
    assert_eq!(changed(6, 87), FrameError::Length { part: Part::Header, found: 87 });
    assert_eq!(changed(7, 3), FrameError::Length { part: Part::Header, found: 768 + 88 });
    assert_eq!(changed(68, 65), FrameError::Length { part: Part::Agent, found: 65 });
    assert_eq!(changed(69, 129), FrameError::Length { part: Part::Event, found: 129 });
    assert_eq!(changed(70, 17), FrameError::Length { part: Part::ArgvItems, found: 17 });
    assert_eq!(changed(70, 2), FrameError::Argv);
    assert_eq!(changed(70, 0), FrameError::Argv);
    assert_eq!(changed(HEADER_BYTES + 2, 3), FrameError::Argv);
    assert!(matches!(changed(76, 3), FrameError::Short { .. }));
    assert!(matches!(changed(76, 1), FrameError::Long { .. }));
    for len in 0..frame.len() {
        assert!(matches!(RequestRef::parse(&frame[..len]), Err(FrameError::Short { .. })), "cut at {len}");
    }
}

#[test]
fn a_small_buffer_is_refused() {
    assert!(draft(&mut [0; 100], Head::default(), b"a", b"b", []).is_none());
}

#[test]
fn random_frames_survive_the_round_trip() {
    for seed in 0..500 {
        let frame = Generator::new(seed).frame();
        let view = RequestRef::parse(&frame).unwrap();
        let argv: Vec<_> = view.argv().collect();
        let again = encode(
            view.head,
            &Given { agent: view.agent, event: view.event, argv: &argv, payload: view.payload },
        );
        assert_eq!(again, frame, "seed {seed}");
    }
}
