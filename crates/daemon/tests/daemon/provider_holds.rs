//! Holds of MCP providers: so many for each, so many for all of them, and the rest of the room is a person's.

use watchkeeper_api::{
    Client, ErrorCode,
    client::{ClientError, ClientOptions},
    mcp::{PROVIDER_HOLDS_MAX, PROVIDERS_HOLDS_MAX},
    method::{HoldRelease, HoldReleaseParams, HoldTake, HoldTakeParams},
};

use crate::rig::Daemon;

fn provider(daemon: &Daemon, name: usize) -> Client {
    let options = ClientOptions { provider: Some(format!("p{name}")), ..ClientOptions::new("test") };
    Client::connect(&daemon.place.api_socket(), &options).unwrap()
}

fn take(client: &mut Client, id: &str) -> Result<(), ClientError> {
    let params = HoldTakeParams {
        id: Some(id.to_owned()),
        owner: "somebody".to_owned(),
        reason: "a long build".to_owned(),
        length_s: Some(600),
    };
    client.call::<HoldTake>(&params).map(drop)
}

#[track_caller]
fn refused(taken: Result<(), ClientError>, part: &str) {
    let Err(ClientError::Remote { failure, .. }) = taken else { panic!("{taken:?}") };
    assert_eq!(failure.code, ErrorCode::Busy);
    assert!(failure.message.contains(part) && failure.hint.is_some(), "{failure:?}");
}

#[test]
fn providers_under_any_number_of_names_leave_room_for_a_person_s_holds() {
    let home = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    let names = PROVIDERS_HOLDS_MAX / PROVIDER_HOLDS_MAX;
    for name in 0..names {
        let mut client = provider(&daemon, name);
        for id in 0..PROVIDER_HOLDS_MAX {
            take(&mut client, &format!("{name}-{id}")).unwrap();
        }
        if name == 0 {
            refused(take(&mut client, "one-more"), "this provider has 32 holds already");
        }
    }
    let mut late = provider(&daemon, names);
    refused(take(&mut late, "late"), "all providers together have 128 holds already");
    // There is room for a person's own; what a provider has is renewed, and what it lets go is another's to take.
    take(&mut daemon.client(), "mine").unwrap();
    let mut first = provider(&daemon, 0);
    take(&mut first, "0-0").unwrap();
    let id = Some("0-0".to_owned());
    first.call::<HoldRelease>(&HoldReleaseParams { id, all: false }).unwrap();
    take(&mut late, "late").unwrap();
    drop((first, late));
    daemon.stop();
}
