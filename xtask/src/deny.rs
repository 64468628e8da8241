//! `cargo deny` over the dependencies: licences, sources, duplicate versions and advisories, as `deny.toml` says.

use std::process::Command;

use anyhow::Result;

use crate::cargo_tools::DENY;
use crate::process;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let program = DENY.program(workspace)?;
    let deny = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.current_dir(workspace.root()).arg("deny").args(arguments);
        command
    };
    process::run(&mut deny(&["check", "licenses", "sources", "bans"]))?;
    // The database is a git repository on a host of its own, which not every machine reaches.
    match process::output(&mut deny(&["fetch", "db"])) {
        Ok(_) => process::run(&mut deny(&["check", "advisories"])),
        Err(error) => {
            let error = format!("{error:#}");
            let reason = error.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            println!("\nWARNING: advisories are NOT checked: their database cannot be fetched ({reason})\n");
            Ok(())
        }
    }
}
