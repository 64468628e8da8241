//! The processor time of processes, from `/proc`. It depends less on a busy machine than the time that passes.

use std::fs;

use anyhow::{Context, Result};

/// The ticks of a second in `/proc/PID/stat`: 100 on every Linux that Strata runs on.
const TICKS: f64 = 100.0;

/// The seconds of this process.
pub(crate) fn own() -> Result<f64> {
    let stat = Stat::read("self").context("this process has no `/proc/self/stat`")?;
    Ok(stat.own / TICKS)
}

/// The seconds of a process and of all its children, also of those that have ended.
pub(crate) fn of_family(parent: u32) -> Result<f64> {
    let stat = Stat::read(&parent.to_string()).context("the process has ended")?;
    let mut ticks = stat.own + stat.ended_children;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        // A process may end while the folder is read.
        let child = Stat::read(&name.to_string_lossy()).filter(|child| child.parent == parent);
        ticks += child.map_or(0.0, |child| child.own);
    }
    Ok(ticks / TICKS)
}

struct Stat {
    parent: u32,
    own: f64,
    ended_children: f64,
}

impl Stat {
    fn read(process: &str) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name of the program stands in parentheses and may hold blanks.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |place: usize| fields.get(place)?.parse::<f64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            own: number(11)? + number(12)?,
            ended_children: number(13)? + number(14)?,
        })
    }
}
