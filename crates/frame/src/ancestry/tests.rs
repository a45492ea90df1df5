use super::*;
use crate::generator::Generator;

/// pid, start, and executable, name and arguments.
type Given = (u32, u64, [Vec<u8>; 3]);

/// Ancestors within the limits, each older than its child.
fn ancestors(random: &mut Generator) -> Vec<Given> {
    let mut start = u64::MAX / 2;
    let one = |_| {
        start -= random.next() % 1000;
        let pid = u32::try_from(random.next() >> 32).unwrap();
        let mut arguments = random.bytes(ARGUMENTS_MAX_BYTES - 1);
        arguments.push(0);
        (pid, start, [random.bytes(EXECUTABLE_MAX_BYTES), random.bytes(NAME_MAX_BYTES), arguments])
    };
    (0..ANCESTORS_MAX).map(one).collect()
}

fn block(random: &mut Generator) -> (Vec<u8>, Vec<Given>, Namespaces) {
    let mut given = ancestors(random);
    given.truncate(random.below(ANCESTORS_MAX + 1));
    let namespaces = Namespaces { pid: random.next(), time: random.next() };
    let mut room = vec![0xa5; BLOCK_MAX_BYTES];
    let mut writer = Writer::new(&mut room, namespaces, u64::MAX);
    for (pid, start, [executable, name, arguments]) in &given {
        assert!(writer.push(&Ancestor { pid: *pid, start: *start, executable, name, arguments }));
    }
    (writer.finish().to_vec(), given, namespaces)
}

#[test]
fn what_is_written_is_read() {
    for seed in 0..300 {
        let mut random = Generator::new(seed);
        let (block, given, namespaces) = block(&mut random);
        if given.is_empty() {
            assert_eq!(block, b"", "seed {seed}");
            continue;
        }
        let read = Ancestry::parse(&block).unwrap();
        assert_eq!(read.namespaces, namespaces);
        let seen: Vec<_> = read
            .ancestors()
            .map(|a| (a.pid, a.start, [a.executable.to_vec(), a.name.to_vec(), a.arguments.to_vec()]))
            .collect();
        assert_eq!(seen, given, "seed {seed}");
    }
}

#[test]
fn hostile_bytes_give_nothing_or_something_bounded() {
    for seed in 0..3_000 {
        let mut random = Generator::new(seed);
        let (mut noise, ..) = block(&mut random);
        match random.below(5) {
            0 => noise = random.bytes(600),
            1 => noise.truncate(random.below(noise.len().max(1))),
            2 => noise.extend(random.bytes(40)),
            3 => noise.resize(BLOCK_MAX_BYTES + random.below(3), 0),
            _ => {
                for _ in 0..=random.below(6) {
                    let at = random.below(noise.len().max(1));
                    if let Some(byte) = noise.get_mut(at) {
                        *byte = random.next().to_le_bytes()[0];
                    }
                }
            }
        }
        let Some(read) = Ancestry::parse(&noise) else { continue };
        let mut total = HEADER_BYTES;
        for ancestor in read.ancestors() {
            total +=
                ANCESTOR_BYTES + ancestor.executable.len() + ancestor.name.len() + ancestor.arguments.len();
        }
        assert_eq!(total, noise.len(), "seed {seed}: every byte has an owner");
        assert!(read.ancestors().count() <= ANCESTORS_MAX, "seed {seed}");
    }
}

#[test]
fn every_cut_and_every_other_version_is_refused() {
    let mut random = Generator::new(7);
    let (block, given, _) = (0..).map(|_| block(&mut random)).find(|(_, given, _)| given.len() > 2).unwrap();
    assert!(given.len() > 2);
    for len in 0..block.len() {
        assert_eq!(Ancestry::parse(&block[..len]), None, "cut at {len}");
    }
    for (at, to) in [(0, b'X'), (4, 2), (5, 0), (5, 9)] {
        let mut other = block.clone();
        other[at] = to;
        assert_eq!(Ancestry::parse(&other), None, "byte {at}");
    }
}

#[test]
fn limits_leave_out_and_cut() {
    let mut room = [0; BLOCK_MAX_BYTES];
    let long = [b'x'; 2000];
    let mut arguments = [b'a'; 1500];
    arguments[3] = 0;
    arguments[900] = 0;
    let mut writer = Writer::new(&mut room, Namespaces::default(), 50);
    assert!(writer.push(&Ancestor {
        pid: 9,
        start: 50,
        executable: &long,
        name: &long,
        arguments: &arguments
    }));
    assert!(!writer.push(&Ancestor { pid: 8, start: 51, ..Ancestor::default() }), "younger than its child");
    for _ in 1..ANCESTORS_MAX {
        assert!(writer.push(&Ancestor { pid: 7, start: 40, arguments: b"unclosed", ..Ancestor::default() }));
    }
    assert!(!writer.push(&Ancestor { pid: 6, start: 1, ..Ancestor::default() }), "one too many");
    let block = writer.finish();
    let mut read = Ancestry::parse(block).unwrap().ancestors();
    let first = read.next().unwrap();
    assert_eq!((first.executable, first.name), (&b""[..], &long[..NAME_MAX_BYTES]));
    assert_eq!(first.arguments, &arguments[..=900]);
    assert_eq!(read.next().unwrap().arguments, b"");
    let mut small = [0; HEADER_BYTES + ANCESTOR_BYTES - 1];
    let mut writer = Writer::new(&mut small, Namespaces::default(), 50);
    assert!(!writer.push(&Ancestor::default()));
    assert_eq!(writer.finish(), b"");
    let mut writer = Writer::new(&mut [], Namespaces::default(), 50);
    assert!(!writer.push(&Ancestor::default()));
}

#[test]
fn lines_of_the_kernel() {
    const TAIL: &str = "0 -1 4194560 1245 8093 0 11 7 3 20 5 20 0 1 0 4711 2543616 241 0 0\n";
    let check = |line: &str, expected: Option<(&str, u32, u64)>| {
        let expected = expected.map(|(name, parent, start)| Descent { name: name.as_bytes(), parent, start });
        assert_eq!(descent(line.as_bytes()), expected, "{line:?}");
    };
    check(&format!("1234 (bash) S 1200 1234 1234 {TAIL}"), Some(("bash", 1200, 4711)));
    check(&format!("7 (a) R 1 (b\n) T 2 7 7 {TAIL}"), Some(("a) R 1 (b\n", 2, 4711)));
    for line in ["", "7", "7 (x", "7 )x(", "7 (x) S", "7 (x) S 1 2 3", "7 (x) S -1 7 7 0 -1"] {
        check(line, None);
    }
    let whole = format!("7 (a) T 2 7 7 {TAIL}");
    for end in 0..whole.len() {
        _ = descent(&whole.as_bytes()[..end]);
    }
    for (link, expected) in [("pid:[4026531836]", 4_026_531_836), ("pid:[]", 0), ("pid:[1", 0), ("", 0)] {
        assert_eq!(namespace(link.as_bytes()), expected, "{link}");
    }
}
