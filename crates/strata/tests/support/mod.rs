//! Shared parts of the end-to-end tests: the real binary, and a small HTTP client that sends valid and invalid requests.
#![allow(dead_code, unused_imports, reason = "each test uses its part")]

mod apis;
mod client;
pub(crate) mod model;
pub(crate) mod outage;
mod shim;
mod store;
mod upstream;

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub(crate) use apis::Apis;
pub(crate) use client::{Answer, Client, Framing};
use serde_json::Value;
pub(crate) use shim::Shim;
pub(crate) use store::{TestStore, on_each_store};
pub(crate) use upstream::{Received, Upstream, reply_to};

/// A small seeded generator (SplitMix64), so that a failing run can be reproduced.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// A word that occurs nowhere else, of letters alone.
pub(crate) fn made_up_word(start: &str, number: u64) -> String {
    let syllables = ["ba", "ke", "lo", "mi", "nu", "ra", "so", "ti", "vu", "ze"];
    let digits = number.to_string();
    let rest = digits.bytes().map(|digit| syllables[usize::from(digit - b'0')]);
    format!("{start}{}nor", rest.collect::<String>())
}

/// The number of rounds of a test that repeats itself: `STRATA_TEST_ROUNDS`, or the test's own number.
pub(crate) fn rounds(usual: u64) -> u64 {
    let rounds = std::env::var_os("STRATA_TEST_ROUNDS");
    rounds.map_or(usual, |rounds| rounds.to_string_lossy().parse().expect("a number of rounds"))
}

/// The seed of a test that repeats itself: the test's own, or another one for each `STRATA_TEST_SEED`.
pub(crate) fn seed(own: u64) -> u64 {
    let given = std::env::var_os("STRATA_TEST_SEED");
    own ^ given.map_or(0, |seed| seed.to_string_lossy().parse().expect("a number as a seed")) << 16
}

/// Counts a process that is killed, for `cargo xtask torture`: one byte in the file `STRATA_TEST_KILLS`.
fn note_kill() {
    if let Some(file) = std::env::var_os("STRATA_TEST_KILLS") {
        let mut file = File::options().create(true).append(true).open(file).expect("the file of kills opens");
        std::io::Write::write_all(&mut file, b"k").expect("a kill is counted");
    }
}

/// Kills a process with SIGKILL, and waits until it has ended.
pub(crate) fn kill(mut child: Child) {
    note_kill();
    child.kill().expect("the process was started by this test");
    child.wait().expect("the process ends");
}

/// The binary of this build, without the settings of the machine.
pub(crate) fn strata() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strata"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("STRATA_") {
            command.env_remove(name);
        }
    }
    // Most tests are about other things than the networks, and words and rules are faster.
    command.env("STRATA_EMBEDDER", "words").env("STRATA_LEARN_READER", "off");
    command.env("XDG_CONFIG_HOME", "no-such-directory").env("RUST_BACKTRACE", "0").stdin(Stdio::null());
    command
}

/// The virtual environment with Python clients and fuzzers that `cargo xtask check` creates.
pub(crate) fn venv() -> PathBuf {
    match std::env::var_os("STRATA_TEST_VENV") {
        Some(path) => path.into(),
        None => [env!("CARGO_MANIFEST_DIR"), "../../target/venv"].iter().collect(),
    }
}

/// The virtual environment with the clients of the providers' APIs that `cargo xtask check` creates.
pub(crate) fn api_venv() -> PathBuf {
    match std::env::var_os("STRATA_TEST_API_VENV") {
        Some(path) => path.into(),
        None => [env!("CARGO_MANIFEST_DIR"), "../../target/venv-apis"].iter().collect(),
    }
}

/// The folder with the Node packages that `cargo xtask check` creates.
pub(crate) fn node_folder() -> PathBuf {
    match std::env::var_os("STRATA_TEST_NODE") {
        Some(path) => path.into(),
        None => [env!("CARGO_MANIFEST_DIR"), "../../target/node"].iter().collect(),
    }
}

/// The store's address for `--store`.
pub(crate) fn store_url(file: &Path) -> String {
    format!("sqlite:{}", file.display())
}

/// The number of users, sessions, turns and memories of a store, from `strata doctor`.
pub(crate) fn counts(file: &Path) -> Value {
    let output =
        strata().args(["doctor", "--json", "--store", &store_url(file)]).output().expect("the binary runs");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("doctor prints JSON ({error}): {}", show(&output)));
    let mut store = report["store"].clone();
    let store = store.as_object_mut().unwrap_or_else(|| panic!("doctor looks at the store: {report}"));
    // The contents must not change; the size on disk and the progress of the index may.
    store.retain(|name, _| matches!(name.as_str(), "users" | "sessions" | "turns" | "memories"));
    assert_eq!(store.len(), 4, "doctor counts what the store holds: {report}");
    Value::Object(store.clone())
}

/// The exit code and the output of a program, as text.
pub(crate) fn show(output: &Output) -> String {
    format!(
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A running `strata serve`. When it is dropped, it is killed at once.
pub(crate) struct Server {
    child: Child,
    address: String,
    log: PathBuf,
}

impl Server {
    /// Starts the binary on a store and waits until it prints its address. The log goes to a file beside the store.
    pub(crate) fn start(file: &Path) -> Self {
        Self::start_with(file, &[])
    }

    /// As [`Server::start`], with settings, as `key=value`.
    pub(crate) fn start_with(file: &Path, settings: &[&str]) -> Self {
        Self::start_on(&store_url(file), &file.with_extension("log"), settings)
    }

    /// As [`Server::start_with`], with variables of the environment.
    pub(crate) fn start_with_variables(file: &Path, settings: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = strata();
        command.envs(variables.iter().copied());
        Self::start_as(command, &store_url(file), &file.with_extension("log"), settings)
    }

    /// As [`Server::start_with`], on any store.
    pub(crate) fn start_on(store: &str, log: &Path, settings: &[&str]) -> Self {
        Self::start_as(strata(), store, log, settings)
    }

    /// As [`Server::start_with`], with faults of the disk and the clock.
    pub(crate) fn start_under(shim: &Shim, file: &Path, settings: &[&str]) -> Self {
        Self::start_on_under(shim, file, &file.with_extension("log"), settings)
    }

    /// As [`Server::start_under`], with this log.
    pub(crate) fn start_on_under(shim: &Shim, file: &Path, log: &Path, settings: &[&str]) -> Self {
        let mut command = strata();
        command.envs(shim.variables());
        Self::start_as(command, &store_url(file), log, settings)
    }

    fn start_as(mut command: Command, store: &str, log: &Path, settings: &[&str]) -> Self {
        let log = log.to_owned();
        let settings = settings.iter().flat_map(|setting| ["--setting", setting]);
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--store", store])
            .args(settings)
            .current_dir(log.parent().expect("the log is in a directory"))
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("the log can be written"))
            .spawn()
            .expect("the binary starts");
        let stdout = BufReader::new(child.stdout.take().expect("the output is piped"));
        let address = stdout.lines().map_while(Result::ok).find_map(|line| address_in(&line));
        let Some(address) = address else {
            let _ = child.wait();
            panic!("the server ended without saying where it listens:\n{}", read(&log));
        };
        Self { child, address, log }
    }

    /// The number of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// A client of this server.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.address)
    }

    /// Kills the process with SIGKILL, and waits until it has ended.
    pub(crate) fn kill(mut self) {
        note_kill();
        self.child.kill().expect("the server was still running");
        self.child.wait().expect("the server ends");
    }

    /// Asks the process to end, and waits until it has.
    pub(crate) fn stop(mut self) {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(asked.expect("`kill` runs").success());
        let status = self.child.wait().expect("the server ends");
        assert!(status.success(), "the server ended with {status}:\n{}", read(&self.log));
    }

    /// Fails if the process has ended by itself.
    #[track_caller]
    pub(crate) fn assert_running(&mut self) {
        if let Some(status) = self.child.try_wait().expect("the server can be asked") {
            panic!("the server ended by itself ({status}):\n{}", read(&self.log));
        }
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        read(&self.log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address_in(line: &str) -> Option<String> {
    let address = line.split("http://").nth(1)?;
    let end =
        address.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ':'))).unwrap_or(address.len());
    Some(address[..end].to_owned())
}

fn read(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}
