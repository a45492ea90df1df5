//! What the tests of this crate share: entries, and a writer whose reports can be waited for.

use std::{
    path::Path,
    sync::mpsc::{Receiver, channel},
    time::Duration,
};
use watchkeeper_core::{AgentKind, DeliveryId, Incarnation, SessionKey, Wall};
use watchkeeper_store::{
    Committed, Deliveries, Entry, JournalWriter, Limits, Reader, Recovery, Seq, Store, Urgency,
};

/// Longest wait for a report; reaching it fails the test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A journal with everything that can be opened of it.
pub(crate) struct Journal {
    pub(crate) writer: JournalWriter,
    pub(crate) reader: Reader,
    pub(crate) deliveries: Deliveries,
    pub(crate) reports: Receiver<Committed>,
    pub(crate) recovery: Recovery,
    pub(crate) last: Seq,
}

impl Journal {
    pub(crate) fn open(dir: &Path) -> Self {
        Self::open_with(dir, Limits::default())
    }

    pub(crate) fn open_with(dir: &Path, limits: Limits) -> Self {
        let opened = Store::open_with(dir, limits).unwrap();
        let (reader, deliveries) = (opened.store.reader().unwrap(), opened.store.deliveries());
        let last = opened.store.last_seq();
        let (tell, reports) = channel();
        let writer = opened.store.start_writer(move |c| tell.send(c).unwrap_or_default()).unwrap();
        Self { writer, reader, deliveries, reports, recovery: opened.recovery, last }
    }

    /// Submits entries `from..=to` and waits until all are reported.
    pub(crate) fn write(&self, from: u64, to: u64) {
        for seq in from..=to {
            loop {
                match self.writer.submit(Seq(seq), entry(seq), Urgency::Normal) {
                    Ok(()) => break,
                    Err(watchkeeper_store::SubmitError::Full { .. }) => {
                        self.reports.recv_timeout(PATIENCE).unwrap();
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }
        self.writer.flush(PATIENCE).unwrap();
    }

    /// The first report that covers `seq`.
    pub(crate) fn wait_for(&self, seq: u64) -> Committed {
        loop {
            let report = self.reports.recv_timeout(PATIENCE).unwrap();
            if report.through >= Seq(seq) {
                return report;
            }
        }
    }

    /// The first report of a failure.
    pub(crate) fn wait_for_failure(&self) -> Committed {
        loop {
            let report = self.reports.recv_timeout(PATIENCE).unwrap();
            if report.failed.is_some() {
                return report;
            }
        }
    }

    pub(crate) fn rows(&self) -> Vec<(u64, Vec<u8>)> {
        let mut rows = Vec::new();
        self.reader.replay(Seq(0), |seq, body| rows.push((seq.0, body.to_owned()))).unwrap();
        rows
    }

    pub(crate) fn seqs(&self) -> Vec<u64> {
        self.rows().into_iter().map(|(seq, _)| seq).collect()
    }

    pub(crate) fn close(self) {
        drop((self.reader, self.deliveries));
        self.writer.close(PATIENCE).unwrap();
    }
}

pub(crate) fn key(n: u64) -> SessionKey {
    SessionKey::new(AgentKind::Claude, format!("session-{n}"))
}

pub(crate) fn delivery(seq: u64) -> DeliveryId {
    // Spread over the index as random ids are.
    DeliveryId(u128::from(seq).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
}

pub(crate) fn entry(seq: u64) -> Entry {
    Entry {
        delivery: Some(delivery(seq)),
        key: Some(key(seq % 7)),
        incarnation: Some(Incarnation(1)),
        kind: "activity".to_owned(),
        wall: Wall(1_700_000_000_000 + i64::try_from(seq).unwrap()),
        body: body(seq),
    }
}

/// Differs from row to row in content and length (40 to 1,100 bytes).
pub(crate) fn body(seq: u64) -> Vec<u8> {
    let pad = usize::try_from(seq * 7919 % 1060).unwrap();
    let mut body = format!("{{\"seq\":{seq},\"pad\":\"").into_bytes();
    body.extend((0..pad).map(|i| b'a' + u8::try_from((i + pad) % 26).unwrap()));
    body.extend(b"\"}");
    body
}
