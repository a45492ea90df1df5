//! A small deterministic generator for tests: the same seed gives the same frames on every machine.

use crate::wire::{self, AGENT_MAX_BYTES, EVENT_MAX_BYTES, Flags, HEADER_BYTES, Head, PREFIX_MAX_BYTES};

pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `n`; `n` must not be zero.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap() % n
    }

    pub(crate) fn bytes(&mut self, max: usize) -> Vec<u8> {
        let len = self.below(max + 1);
        (0..len).map(|_| self.next().to_le_bytes()[3]).collect()
    }

    pub(crate) fn head(&mut self) -> Head {
        Head {
            flags: Flags(u32::from_le_bytes(self.next().to_le_bytes()[..4].try_into().unwrap())),
            delivery: u128::from(self.next()) << 64 | u128::from(self.next()),
            started_boot_ns: self.next(),
            boot_id: u128::from(self.next()),
            wall_ms: self.next().cast_signed(),
            hook_pid: u32::from_le_bytes(self.next().to_le_bytes()[..4].try_into().unwrap()),
            wait_ms: 250,
            original_payload_bytes: self.next(),
        }
    }

    pub(crate) fn frame(&mut self) -> Vec<u8> {
        let head = self.head();
        let (agent, event) = (self.bytes(AGENT_MAX_BYTES), self.bytes(EVENT_MAX_BYTES));
        let argv: Vec<Vec<u8>> = (0..self.below(5)).map(|_| self.bytes(200)).collect();
        let payload = self.bytes(3_000);
        let mut buffer = vec![0xa5; PREFIX_MAX_BYTES + payload.len()];
        let mut draft =
            wire::draft(&mut buffer, head, &agent, &event, argv.iter().map(Vec::as_slice)).unwrap();
        draft.payload_room()[..payload.len()].copy_from_slice(&payload);
        draft.seal(payload.len()).to_vec()
    }

    /// A frame with a few bytes changed, cut off or repeated, or plain noise.
    pub(crate) fn noisy_frame(&mut self) -> Vec<u8> {
        let mut frame = self.frame();
        match self.below(4) {
            0 => frame = self.bytes(400),
            1 => frame.truncate(self.below(frame.len())),
            2 => {
                for _ in 0..=self.below(4) {
                    let at = self.below(HEADER_BYTES);
                    frame[at] = self.next().to_le_bytes()[0];
                }
            }
            _ => {
                let at = self.below(frame.len());
                frame[at] ^= 1 << self.below(8);
                frame.extend(self.bytes(20));
            }
        }
        frame
    }
}
