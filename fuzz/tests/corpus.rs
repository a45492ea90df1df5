//! Every input that was ever worth keeping, through its door.

use std::{fs, path::Path};
use watchkeeper_fuzz::DOORS;

#[test]
fn every_kept_input_passes_its_door() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for door in DOORS {
        let folder = corpus.join(door.name);
        let mut knocked = 0;
        for file in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = file.unwrap().path();
            (door.knock)(&fs::read(&path).unwrap());
            knocked += 1;
        }
        assert!(knocked > 0, "{} has no inputs", door.name);
    }
    let folders = fs::read_dir(&corpus).unwrap().count();
    assert_eq!(folders, DOORS.len(), "a folder of inputs without a door");
}
