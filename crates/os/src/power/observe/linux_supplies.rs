//! Mains and batteries from sysfs, for machines without UPower.

use std::{fs, path::Path};

use watchkeeper_core::input::Known;

/// Supplies looked at; more are not counted.
const MAX_SUPPLIES: usize = 64;

/// Whether the machine lives off its battery, and its charge.
pub(super) fn read(power_supply: &Path) -> (Known<bool>, Known<u8>) {
    let Ok(listing) = fs::read_dir(power_supply) else { return (Known::Unknown, Known::Unknown) };
    let (mut mains_on, mut batteries, mut discharging, mut charges) = (false, 0_u32, false, Vec::new());
    for entry in listing.filter_map(Result::ok).take(MAX_SUPPLIES) {
        let read =
            |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default().trim().to_owned();
        // Batteries of mice and keyboards have the scope "Device".
        if read("scope") == "Device" {
            continue;
        }
        match read("type").as_str() {
            "Mains" | "USB" => mains_on |= read("online") == "1",
            "Battery" if read("present") != "0" => {
                batteries += 1;
                discharging |= read("status") == "Discharging";
                charges.extend(read("capacity").parse::<u32>().ok().filter(|percent| *percent <= 100));
            }
            _ => {}
        }
    }
    let count = u32::try_from(charges.len()).unwrap_or(u32::MAX);
    let mean = charges.iter().sum::<u32>().checked_div(count);
    let percent = mean.and_then(|mean| u8::try_from(mean).ok()).map_or(Known::Unknown, Known::Is);
    (Known::Is(batteries > 0 && discharging && !mains_on), percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(supplies: &[&[(&str, &str)]], expected: (Known<bool>, Known<u8>)) {
        let folder = tempfile::tempdir().unwrap();
        for (number, files) in supplies.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            fs::create_dir(&path).unwrap();
            for (name, text) in *files {
                fs::write(path.join(name), format!("{text}\n")).unwrap();
            }
        }
        assert_eq!(read(folder.path()), expected);
    }

    #[test]
    fn mains_and_batteries_are_read() {
        let plugged: &[(&str, &str)] = &[("type", "Mains"), ("online", "1")];
        let unplugged: &[(&str, &str)] = &[("type", "Mains"), ("online", "0")];
        let battery: &[(&str, &str)] = &[("type", "Battery"), ("status", "Discharging"), ("capacity", "40")];
        let second: &[(&str, &str)] = &[("type", "Battery"), ("status", "Full"), ("capacity", "100")];
        let mouse: &[(&str, &str)] =
            &[("type", "Battery"), ("scope", "Device"), ("status", "Discharging"), ("capacity", "5")];
        let junk: &[(&str, &str)] = &[("type", "Battery"), ("status", "Discharging"), ("capacity", "4000")];
        check(&[], (Known::Is(false), Known::Unknown));
        check(&[mouse], (Known::Is(false), Known::Unknown));
        check(&[unplugged, battery], (Known::Is(true), Known::Is(40)));
        check(&[plugged, battery], (Known::Is(false), Known::Is(40)));
        check(&[battery, second], (Known::Is(true), Known::Is(70)));
        check(&[junk], (Known::Is(true), Known::Unknown));
        assert_eq!(read(Path::new("/nonexistent")), (Known::Unknown, Known::Unknown));
    }
}
