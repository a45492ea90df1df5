//! Writes a journal until it is killed, and prints every completion: the child of the crash test.
//!
//! Usage: `store-crash-writer DIR SEED`. Lines: `through N` and `duplicate N`, each in one write.
#![expect(clippy::unwrap_used, reason = "dying loudly is what a test's child is for")]

use std::{
    io::Write,
    sync::{Arc, Condvar, Mutex},
};
use watchkeeper_core::{AgentKind, DeliveryId, Incarnation, SessionKey, Wall};
use watchkeeper_store::{Cursor, Entry, FileIdentity, Limits, Seq, Store, Urgency};

/// Entries that may wait for their completion, as hooks would.
const IN_FLIGHT: u64 = 32;
const SNAPSHOT_EVERY: u64 = 300;
const LIMITS: Limits = Limits { rows_max: 2000, trim_above_bytes: 1 << 30, bytes_max: 1 << 30 };

fn main() {
    // A panic of the writing thread, such as for a parent that is gone, must not leave the rest waiting for ever.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::abort();
    }));
    let mut args = std::env::args().skip(1);
    let dir = std::path::PathBuf::from(args.next().unwrap());
    let mut random: u64 = args.next().unwrap().parse().unwrap();
    let store = Store::open_with(&dir, LIMITS).unwrap().store;
    let last = store.last_seq().0;
    let completed = Arc::new((Mutex::new(last), Condvar::new()));
    let shared = Arc::clone(&completed);
    let writer = store
        .start_writer(move |report| {
            assert_eq!(report.failed, None);
            let mut lines = String::new();
            for duplicate in &report.duplicates {
                lines += &format!("duplicate {duplicate}\n");
            }
            lines += &format!("through {}\n", report.through);
            std::io::stdout().lock().write_all(lines.as_bytes()).unwrap();
            *shared.0.lock().unwrap() = report.through.0;
            shared.1.notify_one();
        })
        .unwrap();

    for seq in last + 1.. {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let roll = random >> 40;
        // Now and then a delivery that came before.
        let delivery = if roll.is_multiple_of(50) && seq > 10 { seq - 1 - roll % 7 } else { seq };
        let entry = Entry {
            delivery: Some(DeliveryId(
                u128::from(delivery).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835),
            )),
            key: Some(SessionKey::new(AgentKind::Codex, format!("{}", roll % 5))),
            incarnation: Some(Incarnation(1)),
            kind: "activity".to_owned(),
            wall: Wall(0),
            body: format!("{seq}:{}", "x".repeat(usize::try_from(roll % 900).unwrap())).into_bytes(),
        };
        let urgency = if roll.is_multiple_of(20) { Urgency::SyncFirst } else { Urgency::Normal };
        writer.submit(Seq(seq), entry, urgency).unwrap();
        if seq.is_multiple_of(SNAPSHOT_EVERY) {
            writer.save_snapshot(Seq(seq), format!("state {seq} ").repeat(2000).into_bytes()).unwrap();
            let cursor = Cursor {
                key: SessionKey::new(AgentKind::Codex, "0"),
                path: "/transcript".into(),
                file: FileIdentity { device: 1, inode: 2 },
                offset: seq,
                state_json: "{}".to_owned(),
            };
            writer.save_cursor(cursor).unwrap();
        }
        let waiting = completed.0.lock().unwrap();
        drop(completed.1.wait_while(waiting, |through| seq - *through >= IN_FLIGHT).unwrap());
    }
}
