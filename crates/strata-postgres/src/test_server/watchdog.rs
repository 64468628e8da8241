//! Processes that end a server: the shared one when nobody has used it for a while, and one of a test, or a pooler, when the test has
//! ended. They outlive a test that is killed.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Server, is_root};

/// The seconds after the last test at which the shared server ends.
const IDLE_SECONDS: u32 = 90;

/// Watches the shared server, by the time of its file `used`.
pub(super) fn watch_use(server: &Server) {
    let folder = server.folder.display();
    start(&format!(
        "while sleep 5; do
           age=$(( $(date +%s) - $(stat -c %Y '{folder}/used' 2>/dev/null || echo 0) ))
           [ $age -lt {IDLE_SECONDS} ] && continue
           users=$({psql} -h '{folder}' -p {port} -U test -Atc \
             \"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'\" postgres)
           [ \"${{users:-0}}\" -gt 1 ] && touch '{folder}/used' && continue
           exec 9>'{lock}'; flock 9
           age=$(( $(date +%s) - $(stat -c %Y '{folder}/used' 2>/dev/null || echo 0) ))
           if [ $age -ge {IDLE_SECONDS} ]; then {end}; fi
           exec 9>&-
         done",
        lock = server.folder.with_extension("lock").display(),
        psql = server.programs.join("psql").display(),
        port = server.port,
        end = end(server),
    ));
}

/// Watches a server of this process.
pub(super) fn watch_test(server: &Server) {
    when_this_ends(&server.folder, &end(server));
}

/// Watches another program of this process.
pub(super) fn watch_program(folder: &Path, process: u32) {
    when_this_ends(folder, &format!("kill {process}; rm -rf '{}'; exit", folder.display()));
}

/// Runs commands when this process has ended, unless the folder was removed before: the watchdog then ends too.
fn when_this_ends(folder: &Path, commands: &str) {
    start(&format!(
        "while [ -d '{folder}' ]; do
           if ! kill -0 {this} 2>/dev/null; then {commands}; fi
           sleep 2
         done",
        folder = folder.display(),
        this = std::process::id(),
    ));
}

/// The commands that end a server, remove its data and end the watchdog.
fn end(server: &Server) -> String {
    let folder = server.folder.display();
    let pg_ctl = server.programs.join("pg_ctl");
    let stop = if is_root() { "setpriv --reuid=postgres --regid=postgres --clear-groups " } else { "" };
    format!(
        "{stop}{pg_ctl} -D '{folder}/data' -s -m immediate stop; rm -rf '{folder}'; exit",
        pg_ctl = pg_ctl.display()
    )
}

fn start(script: &str) {
    let started = Command::new("setsid")
        .args(["--fork", "sh", "-c", script])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(started.unwrap().success(), "the watchdog cannot be started");
}
