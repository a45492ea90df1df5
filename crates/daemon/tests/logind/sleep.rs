use std::time::{Duration, Instant};

use watchkeeper_api::method::{EventsParams, GetEvents};

use crate::{
    rig::{NO_SLEEPS, Rig},
    under_test::{UnderTest, until},
};

/// Below `InhibitDelayMaxSec` of the rig, which is 2 s.
const BARRED_FOR: Duration = Duration::from_millis(1000);

#[test]
fn a_sleep_waits_until_the_journal_says_so() {
    let rig = Rig::take();
    let daemon = UnderTest::start();
    // It has its delay lock.
    until("the delay lock", || crate::rig::listed(daemon.pid()) == ["Watchkeeper sleep delay"]);
    let database = rusqlite::Connection::open(daemon.place().state.join("journal.db")).unwrap();
    database.busy_timeout(Duration::from_secs(5)).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    rig.suspend();
    while begun.elapsed() < BARRED_FOR {
        let sleeps = rig.sleeps();
        assert!(sleeps == NO_SLEEPS, "it slept after {:?}, before the row was stored", begun.elapsed());
    }
    database.execute_batch("ROLLBACK").unwrap();
    let freed = Instant::now();
    until("the machine sleeps", || rig.sleeps() != NO_SLEEPS);
    println!("slept {:?} after the journal was free", freed.elapsed());
    let rows = daemon.ask::<GetEvents>(&EventsParams::default()).rows;
    assert!(rows.iter().any(|row| row.input == "sleep_began"), "{rows:?}");
    rig.open_lid();
    daemon.stop();
}
