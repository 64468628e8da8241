//! Opens an address in a person's browser.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// Opens an address, where a person sits at a terminal of a desktop. A browser that cannot be started is no failure, because
/// the address is printed too.
pub(super) fn open(address: &str) {
    let is_watched = io::stdout().is_terminal();
    if let Some(program) = strata::config::browser().filter(|_| is_watched)
        && let Err(error) = start(&program, address)
    {
        tracing::debug!(%error, ?program, "no browser can be started");
    }
}

/// Starts a program in a process group of its own, so that Ctrl-C ends the demo and not the browser.
fn start(program: &OsString, address: &str) -> io::Result<()> {
    let mut command = Command::new(program);
    command.arg(address).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
}
