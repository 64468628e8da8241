//! Running other programs, with errors that say which program it was.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a program with our own output; an exit code other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("`{shown}` did not start"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Runs a program and gives what it printed; an exit code other than 0 is an error with its own message.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.output().with_context(|| format!("`{shown}` did not start"))?;
    if !output.status.success() {
        bail!("`{shown}` failed ({})\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed invalid UTF-8"))
}

/// Runs a program and gives what it printed to stdout; what it says on stderr is shown as it comes.
pub(crate) fn stdout(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("`{shown}` did not start"))?;
    if !output.status.success() {
        bail!("`{shown}` failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed invalid UTF-8"))
}

/// Whether a program runs and is content, whatever it prints.
pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    words.join(" ")
}
