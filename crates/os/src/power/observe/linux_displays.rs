//! External displays from the DRM connectors in sysfs.

use std::{fs, path::Path};

use watchkeeper_core::input::Known;

/// Connectors looked at; more are not counted (a card has a handful).
const MAX_CONNECTORS: usize = 256;

/// Built-in panels, by connector type (`drm_connector_enum_list` of the kernel).
const BUILT_IN: [&str; 4] = ["eDP-", "LVDS-", "DSI-", "DPI-"];

/// Counts the external connectors that are connected and driven. Unknown when no connector is listed at all: a
/// driver without kernel mode setting shows none, whatever is plugged in.
pub(super) fn external_on(drm: &Path) -> Known<u32> {
    let Ok(listing) = fs::read_dir(drm) else { return Known::Unknown };
    let mut connectors = 0_u32;
    let mut external_on = 0_u32;
    for entry in listing.filter_map(Result::ok).take(MAX_CONNECTORS) {
        let name = entry.file_name();
        let Some((_card, connector)) = name.to_str().and_then(|name| name.split_once('-')) else { continue };
        let Ok(status) = fs::read_to_string(entry.path().join("status")) else { continue };
        connectors += 1;
        let is_built_in = BUILT_IN.iter().any(|prefix| connector.starts_with(prefix));
        if is_built_in || connector.starts_with("Writeback-") {
            continue;
        }
        match status.trim() {
            "connected" => match fs::read_to_string(entry.path().join("enabled")).as_deref().map(str::trim) {
                Ok("enabled") => external_on += 1,
                Ok("disabled") => {}
                Ok(_) | Err(_) => return Known::Unknown,
            },
            "disconnected" => {}
            // "unknown" is the kernel's own word for outputs that cannot be sensed; they are never driven unasked.
            _ => {}
        }
    }
    if connectors == 0 { Known::Unknown } else { Known::Is(external_on) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(connectors: &[(&str, &str, &str)], expected: Known<u32>) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("card0")).unwrap();
        fs::write(folder.path().join("version"), "drm 1.1.0").unwrap();
        for (name, status, enabled) in connectors {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("status"), format!("{status}\n")).unwrap();
            fs::write(path.join("enabled"), format!("{enabled}\n")).unwrap();
        }
        assert_eq!(external_on(folder.path()), expected);
    }

    #[test]
    fn external_displays_that_are_on_are_counted() {
        let panel = ("card0-eDP-1", "connected", "enabled");
        check(&[], Known::Unknown);
        check(&[panel], Known::Is(0));
        check(&[panel, ("card0-HDMI-A-1", "connected", "enabled")], Known::Is(1));
        check(
            &[panel, ("card0-HDMI-A-1", "connected", "disabled"), ("card0-DP-1", "disconnected", "disabled")],
            Known::Is(0),
        );
        check(
            &[("card0-DP-1", "connected", "enabled"), ("card1-DP-1", "connected", "enabled")],
            Known::Is(2),
        );
        check(&[panel, ("card0-DP-1", "connected", "?")], Known::Unknown);
        check(
            &[("card0-Writeback-1", "unknown", "disabled"), ("card0-VGA-1", "unknown", "disabled")],
            Known::Is(0),
        );
        assert_eq!(external_on(Path::new("/nonexistent")), Known::Unknown);
    }
}
