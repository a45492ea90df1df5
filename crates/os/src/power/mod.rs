//! The machine's power: what keeps it awake, and what can be seen of lid, displays, mains, battery and sleep.
//!
//! Built: [`inhibit`] (the hold) and [`observe`] (what happens to the machine). Not built: asking the machine to sleep, the lid action of
//! Windows and macOS, temperature, memory pressure, desktops' own inhibitors.

pub mod inhibit;
pub mod observe;

#[cfg(target_os = "linux")]
mod system_bus;
