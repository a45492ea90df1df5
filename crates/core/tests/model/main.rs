//! The model from outside: stories of single rules, and arbitrary inputs with every invariant checked after each.

mod field;
mod hostile;
mod pools;
mod rules;
mod sleep;
mod world;

use watchkeeper_core::{
    AgentKind, AgentTrait, AgentTraits, Boot, BootId, Core, Mono, Now, ProcessRef, Settings, Wall,
};

pub(crate) const BOOT: BootId = BootId(7);

pub(crate) fn traits() -> AgentTraits {
    let mut traits = AgentTraits::new();
    traits.insert(AgentKind::Claude, AgentTrait { wakes_model: true });
    traits
}

pub(crate) fn core() -> Core {
    Core::new(Settings::default(), traits())
}

/// All clocks at so many milliseconds.
pub(crate) fn at(ms: u64) -> Now {
    Now {
        mono: Mono(ms * 1_000_000),
        boot: Boot(ms * 1_000_000),
        wall: Wall(1_700_000_000_000_i64.saturating_add_unsigned(ms)),
        boot_id: BOOT,
    }
}

pub(crate) fn process(pid: u32) -> ProcessRef {
    ProcessRef { pid, start: 100, boot: BOOT }
}
