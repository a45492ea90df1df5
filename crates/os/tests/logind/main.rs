//! The hold against the real logind and polkit. Run by `tests/power/with-rig.sh`; without the rig every test fails.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod bus_lost;
mod gone_after_kill;
mod handed_over;
mod held_and_released;
mod holder;
mod logind_restarted;
mod machine_observed;
mod refused_user;
mod rig;
