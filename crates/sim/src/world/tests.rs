use super::{
    schedule::{Step, schedule},
    shell::play,
};

#[test]
fn a_few_hundred_worlds_hold() {
    for seed in 1..=200 {
        let (outcome, ..) = play(&schedule(seed, 120));
        assert_eq!(outcome, Ok(()), "seed {seed}");
    }
}

#[test]
fn a_schedule_survives_being_written_down() {
    let steps = schedule(7, 300);
    let text = serde_json::to_string(&steps).unwrap_or_default();
    let again: Vec<Step> = serde_json::from_str(&text).unwrap_or_default();
    assert_eq!(steps, again);
    assert_eq!(play(&steps).0, play(&again).0);
}
