//! What the kernel counts of a process.

use anyhow::{Context as _, Result};
use std::{collections::BTreeMap, fs};

/// What the kernel knows of a process at one moment.
#[derive(Debug)]
pub(super) struct Reading {
    /// By thread: name and voluntary context switches.
    pub(super) switches: BTreeMap<u32, (String, u64)>,
    pub(super) resident_kib: f64,
    /// The most that was resident at once, since the start or since [`forget_peak`].
    pub(super) peak_kib: f64,
    pub(super) anonymous_kib: f64,
    pub(super) file_kib: f64,
    pub(super) cpu_ms: f64,
}

impl Reading {
    pub(super) fn of(pid: u32) -> Result<Self> {
        let mut switches = BTreeMap::new();
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let task = task?;
            let status = fs::read_to_string(task.path().join("status"))?;
            let thread = task.file_name().to_string_lossy().parse()?;
            let name = field(&status, "Name:")?.to_owned();
            switches.insert(thread, (name, field(&status, "voluntary_ctxt_switches:")?.parse()?));
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let ticks = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        // A tick is 10 ms on every Linux that people use.
        let cpu_ms = ticks.map(|ticks| ticks.parse::<f64>().unwrap_or(f64::NAN)).sum::<f64>() * 10.0;
        Ok(Self {
            switches,
            resident_kib: field(&status, "VmRSS:")?.parse()?,
            peak_kib: field(&status, "VmHWM:")?.parse()?,
            anonymous_kib: field(&status, "RssAnon:")?.parse()?,
            file_kib: field(&status, "RssFile:")?.parse()?,
            cpu_ms,
        })
    }

    pub(super) fn wakes(&self) -> f64 {
        let sum: u64 = self.switches.values().map(|(_, count)| count).sum();
        u32::try_from(sum).map_or(f64::INFINITY, f64::from)
    }
}

fn field<'a>(status: &'a str, name: &str) -> Result<&'a str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next())
        .with_context(|| format!("the kernel tells no {name}"))
}

/// From now on the peak is that of what follows.
pub(super) fn forget_peak(pid: u32) -> Result<()> {
    // proc(5): "5" resets the peak resident set to what is resident now.
    fs::write(format!("/proc/{pid}/clear_refs"), "5").context("the peak cannot be reset")
}
