//! `watchkeeper-fuzz doors`, `watchkeeper-fuzz seeds RECORDINGS INTO`.

#![expect(clippy::print_stdout, reason = "a program for people")]

use anyhow::bail;
use std::{env, path::Path};

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["doors"] => {
            for door in watchkeeper_fuzz::DOORS {
                println!("{}\t{}", door.name, door.covers.join(" "));
            }
            Ok(())
        }
        ["seeds", recordings, into] => watchkeeper_fuzz::seeds::write(Path::new(recordings), Path::new(into)),
        _ => bail!("usage: watchkeeper-fuzz doors | seeds RECORDINGS INTO"),
    }
}
