//! UPower for lid, mains and battery (logind knows the lid, too, but announces no change of it), logind for sleep,
//! the kernel for displays. Facts measured on systemd 252 and UPower 0.99.20.

use std::{
    collections::VecDeque,
    os::fd::OwnedFd,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use watchkeeper_core::{input::Known, time::Now};
use zbus::{Connection, MatchRule, Message, OwnedVariant};

use super::{
    change::{Change, Seen, percent},
    linux_displays, linux_supplies,
    linux_uevents::{Subsystem, Uevents},
};
use crate::{
    clock,
    power::{
        inhibit::WHO,
        system_bus::{BusEvent, SystemBus, describe},
    },
};

const LOGIND: &str = "org.freedesktop.login1";
const LOGIND_PATH: &str = "/org/freedesktop/login1";
const LOGIND_MANAGER: &str = "org.freedesktop.login1.Manager";
const UPOWER: &str = "org.freedesktop.UPower";
const UPOWER_PATH: &str = "/org/freedesktop/UPower";
const BATTERIES_PATH: &str = "/org/freedesktop/UPower/devices/DisplayDevice";
const BATTERIES: &str = "org.freedesktop.UPower.Device";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

const DRM: &str = "/sys/class/drm";
const POWER_SUPPLY: &str = "/sys/class/power_supply";

/// Watches the machine. One task waits on it.
#[derive(Debug)]
pub struct Observer {
    bus: SystemBus,
    /// `None`: the kernel's notices are kept from us, so displays are unknown.
    uevents: Option<Uevents>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    seen: Seen,
    /// Must be read again before anything is waited for.
    stale: bool,
    pending: VecDeque<Change>,
    /// Makes logind wait for us before it sleeps.
    delay: Option<OwnedFd>,
    sleeping_since: Option<Now>,
}

impl Observer {
    /// Starts to listen; nothing is read yet. Must be called inside a tokio runtime with its IO driver on.
    #[must_use]
    pub fn new() -> Self {
        let uevents = Uevents::open()
            .inspect_err(
                |e| tracing::info!(error = %e, "no device notices from the kernel; displays are unknown"),
            )
            .ok();
        let state = State { stale: true, ..State::default() };
        Self { bus: SystemBus::new(None, rules().unwrap_or_default()), uevents, state: Mutex::new(state) }
    }

    /// What is known; all unknown until the first [`next`](Self::next) has looked.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.state().seen
    }

    /// Waits for the next change; the first calls tell everything that is known at the start. Cancel-safe: a read
    /// that was cut off is begun again, and a change is only taken by returning it. A machine without a bus tells of
    /// displays and, from sysfs, of mains and battery; its lid is unknown.
    pub async fn next(&self) -> Change {
        loop {
            if let Some(change) = self.state().pending.pop_front() {
                return change;
            }
            if self.state().stale {
                let then = self.look().await;
                self.see(then);
                continue;
            }
            let event = tokio::select! {
                event = self.bus.next() => Event::Bus(event),
                subsystem = self.device() => Event::Device(subsystem),
            };
            match event {
                Event::Bus(BusEvent::Signal(message)) => self.signalled(&message),
                Event::Bus(BusEvent::Back) | Event::Device(Subsystem::Lost) => self.state().stale = true,
                Event::Bus(BusEvent::Lost) => {
                    // Nobody tells of changes any more, so what was seen is worth nothing.
                    let seen = self.seen();
                    self.see(Seen { external_displays: seen.external_displays, ..without_bus() });
                    self.state().delay = None;
                }
                Event::Device(Subsystem::Displays) => {
                    let displays = self.displays();
                    self.see(Seen { external_displays: displays, ..self.seen() });
                }
                Event::Device(Subsystem::Supplies) => self.state().stale = true,
                Event::Device(Subsystem::Other) => {}
            }
        }
    }

    /// Lets a sleep that was announced by [`Change::SleepBegan`] happen. Without this call logind waits for its
    /// `InhibitDelayMaxSec` (5 s by default).
    pub fn ready_to_sleep(&self) {
        self.state().delay = None;
    }

    async fn device(&self) -> Subsystem {
        let Some(uevents) = &self.uevents else { return std::future::pending().await };
        match uevents.next().await {
            Ok(subsystem) => subsystem,
            Err(e) => {
                tracing::warn!(error = %e, "the kernel's device notices failed");
                std::future::pending().await
            }
        }
    }

    fn displays(&self) -> Known<u32> {
        match self.uevents {
            Some(_) => linux_displays::external_on(Path::new(DRM)),
            None => Known::Unknown,
        }
    }

    /// Reads everything, and takes the delay lock if there is none.
    async fn look(&self) -> Seen {
        let external_displays = self.displays();
        let Ok(connection) = self.bus.connection().await else {
            return Seen { external_displays, ..without_bus() };
        };
        let needs_delay = {
            let state = self.state();
            state.delay.is_none() && state.sleeping_since.is_none()
        };
        if needs_delay {
            match take_delay(&connection).await {
                Ok(lock) => self.state().delay = Some(lock),
                Err(e) => tracing::info!(error = %describe(&e), "no delay lock: sleeps will not wait for us"),
            }
        }
        let Ok(on_battery) = bool_of(&connection, UPOWER_PATH, UPOWER, "OnBattery").await else {
            return Seen { external_displays, ..without_bus() };
        };
        let present = bool_of(&connection, BATTERIES_PATH, BATTERIES, "IsPresent").await;
        let battery_percent = match present {
            Ok(true) => charge(&connection).await,
            Ok(false) | Err(_) => Known::Unknown,
        };
        let lid_closed = match bool_of(&connection, UPOWER_PATH, UPOWER, "LidIsPresent").await {
            Ok(false) => Known::Is(false),
            Ok(true) => bool_of(&connection, UPOWER_PATH, UPOWER, "LidIsClosed")
                .await
                .map_or(Known::Unknown, Known::Is),
            Err(_) => Known::Unknown,
        };
        Seen { lid_closed, external_displays, on_battery: Known::Is(on_battery), battery_percent }
    }

    fn see(&self, then: Seen) {
        let mut state = self.state();
        let changes = state.seen.changes_to(&then);
        state.pending.extend(changes);
        state.seen = then;
        state.stale = false;
    }

    fn signalled(&self, message: &Message) {
        let header = message.header();
        let is_sleep = header.member().is_some_and(|member| member.as_str() == "PrepareForSleep");
        let mut state = self.state();
        if !is_sleep {
            state.stale = true;
            return;
        }
        match message.body().deserialize::<bool>() {
            Ok(true) => {
                state.sleeping_since = Some(clock::now());
                state.pending.push_back(Change::SleepBegan);
            }
            Ok(false) => {
                let slept =
                    state.sleeping_since.take().map_or(Duration::ZERO, |since| slept(&since, &clock::now()));
                state.pending.push_back(Change::SleepEnded { slept });
                // Anything may have happened meanwhile; the look also takes the next delay lock.
                state.stale = true;
            }
            Err(e) => tracing::debug!(error = %describe(&e), "PrepareForSleep cannot be read"),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Observer {
    fn default() -> Self {
        Self::new()
    }
}

enum Event {
    Bus(BusEvent),
    Device(Subsystem),
}

fn without_bus() -> Seen {
    let (on_battery, battery_percent) = linux_supplies::read(Path::new(POWER_SUPPLY));
    Seen { on_battery, battery_percent, ..Seen::default() }
}

/// Time in which the boot clock ran and the monotonic one did not; where the kernel lets both run (s2idle), the time
/// between the notices.
fn slept(since: &Now, now: &Now) -> Duration {
    let passed = now.boot.since(since.boot);
    let stood_still = passed.saturating_sub(now.mono.since(since.mono));
    // Two clocks read one after the other differ by less than this without any sleep.
    const NOISE: Duration = Duration::from_millis(5);
    if stood_still > NOISE { stood_still } else { passed }
}

async fn take_delay(connection: &Connection) -> Result<OwnedFd, zbus::Error> {
    let body = ("sleep", WHO, "Notes that the machine sleeps", "delay");
    let reply =
        connection.call_method(Some(LOGIND), LOGIND_PATH, Some(LOGIND_MANAGER), "Inhibit", &body).await?;
    let lock: zbus::OwnedFd = reply.body().deserialize()?;
    Ok(lock.into())
}

async fn property(
    connection: &Connection,
    path: &str,
    interface: &str,
    name: &str,
) -> Result<OwnedVariant, zbus::Error> {
    let reply =
        connection.call_method(Some(UPOWER), path, Some(PROPERTIES), "Get", &(interface, name)).await?;
    reply.body().deserialize()
}

async fn bool_of(
    connection: &Connection,
    path: &str,
    interface: &str,
    name: &str,
) -> Result<bool, zbus::Error> {
    bool::try_from(property(connection, path, interface, name).await?)
}

async fn charge(connection: &Connection) -> Known<u8> {
    match property(connection, BATTERIES_PATH, BATTERIES, "Percentage").await.and_then(f64::try_from) {
        Ok(value) => percent(value),
        Err(_) => Known::Unknown,
    }
}

/// What is listened to.
fn rules() -> Result<Vec<MatchRule<'static>>, zbus::Error> {
    let signal = || MatchRule::builder().msg_type(zbus::message::Type::Signal);
    let changed =
        |path| signal().sender(UPOWER).path(path).interface(PROPERTIES).member("PropertiesChanged").build();
    let owner = |name| {
        signal()
            .sender("org.freedesktop.DBus")
            .path("/org/freedesktop/DBus")
            .interface("org.freedesktop.DBus")
            .member("NameOwnerChanged")
            .add_arg(name)
            .build()
    };
    Ok(vec![
        signal()
            .sender(LOGIND)
            .path(LOGIND_PATH)
            .interface(LOGIND_MANAGER)
            .member("PrepareForSleep")
            .build()?,
        changed(UPOWER_PATH)?,
        changed(BATTERIES_PATH)?,
        owner(UPOWER)?,
        owner(LOGIND)?,
    ])
}

#[cfg(test)]
mod tests {
    use watchkeeper_core::time::{Boot, Mono};

    use super::*;

    #[test]
    fn the_match_rules_are_valid() {
        assert_eq!(rules().map(|rules| rules.len()), Ok(5));
    }

    #[track_caller]
    fn check(boot_s: u64, mono_s: u64, expected_s: u64) {
        let at = |boot: u64, mono: u64| Now {
            boot: Boot(boot * 1_000_000_000),
            mono: Mono(mono * 1_000_000_000),
            ..Now::default()
        };
        assert_eq!(slept(&at(100, 50), &at(100 + boot_s, 50 + mono_s)), Duration::from_secs(expected_s));
    }

    #[test]
    fn the_length_of_a_sleep_is_what_the_clocks_show_or_the_time_between_the_notices() {
        check(3600, 2, 3598);
        check(30, 30, 30);
        check(0, 0, 0);
    }
}
