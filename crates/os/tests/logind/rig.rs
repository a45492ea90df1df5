//! The rig, and an observer of logind's own list that is not our code (`busctl`).

use std::{
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Anything that must happen soon has happened by then; tests say themselves what is in time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// One test's turn with the rig.
pub(crate) struct Rig {
    _turn: MutexGuard<'static, ()>,
}

impl Rig {
    pub(crate) fn take() -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        for name in ["DBUS_SYSTEM_BUS_ADDRESS", "RIG_CTL", "RIG_RUN"] {
            assert!(
                std::env::var_os(name).is_some(),
                "{name} is not set: run this by tests/power/with-rig.sh"
            );
        }
        let rig = Self { _turn: turn };
        rig.open_lid();
        rig.turn("ResetSleeps", None);
        rig
    }

    /// Asks logind for a sleep, as a person does.
    pub(crate) fn suspend(&self) {
        run(Command::new("busctl").args([
            "call",
            "org.freedesktop.login1",
            "/org/freedesktop/login1",
            "org.freedesktop.login1.Manager",
            "Suspend",
            "b",
            "false",
        ]));
    }

    /// Shuts the lid; logind has handled that when this returns.
    pub(crate) fn shut_lid(&self) {
        self.turn("SetLid", Some("true"));
        wait_logind("LidClosed", "b true\n");
    }

    /// Opens the lid. When this returns logind knows it and has ended every sleep that the shut lid caused, so that nothing
    /// of it reaches whoever has the next turn.
    pub(crate) fn open_lid(&self) {
        self.turn("SetLid", Some("false"));
        wait_logind("LidClosed", "b false\n");
        wait_logind("PreparingForSleep", "b false\n");
    }

    /// The lid is shut and nobody holds it any more: waits for the sleep that logind owes, then opens the lid.
    pub(crate) fn sleep_by_lid(&self) {
        let begun = Instant::now();
        while self.sleeps() == NO_SLEEPS {
            assert!(begun.elapsed() < PATIENCE, "the lid is shut, nobody holds, and the machine is awake");
        }
        self.open_lid();
    }

    pub(crate) fn turn(&self, knob: &str, value: Option<&str>) -> String {
        run(Command::new(std::env::var_os("RIG_CTL").unwrap()).arg(knob).args(value))
    }

    pub(crate) fn sleeps(&self) -> String {
        self.turn("Sleeps", None)
    }

    /// As [`listed`].
    pub(crate) fn listed(&self, pid: u32) -> Vec<String> {
        listed(pid)
    }

    /// How long it took until logind listed exactly this; looked at without pause.
    #[track_caller]
    pub(crate) fn wait_listed(&self, pid: u32, expected: &[&str]) -> Duration {
        let begun = Instant::now();
        loop {
            let listed = self.listed(pid);
            if listed == expected {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < PATIENCE, "logind lists {listed:?} for {pid}, not {expected:?}");
        }
    }
}

/// Kinds that logind lists under this pid, with their modes.
pub(crate) fn listed(pid: u32) -> Vec<String> {
    let text = run(Command::new("busctl").args([
        "--json=short",
        "call",
        "org.freedesktop.login1",
        "/org/freedesktop/login1",
        "org.freedesktop.login1.Manager",
        "ListInhibitors",
    ]));
    let reply: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = reply["data"][0].as_array().unwrap();
    let mut kinds: Vec<String> = rows
        .iter()
        .filter(|row| row[5] == pid)
        .map(|row| {
            format!("{} {} {}", row[1].as_str().unwrap(), row[0].as_str().unwrap(), row[3].as_str().unwrap())
        })
        .collect();
    kinds.sort();
    kinds
}

/// Waits until a property of logind's manager reads so.
#[track_caller]
fn wait_logind(property: &str, expected: &str) {
    let begun = Instant::now();
    loop {
        let value = run(Command::new("busctl").args([
            "get-property",
            "org.freedesktop.login1",
            "/org/freedesktop/login1",
            "org.freedesktop.login1.Manager",
            property,
        ]));
        if value == expected {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "logind's {property} is {value}, not {expected}");
    }
}

/// What [`Rig::sleeps`] says before the first sleep.
pub(crate) const NO_SLEEPS: &str = "as 0\n";

pub(crate) const BOTH: [&str; 2] = ["Watchkeeper handle-lid-switch block", "Watchkeeper idle block"];

#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
