//! Runs the binary in a temporary directory.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// An empty home directory in which all commands run.
pub(crate) struct Machine {
    home: TempDir,
    embedder: Option<&'static str>,
}

impl Machine {
    /// A machine that ranks by words. The encoder takes a third of a second to load, so only its own tests use it.
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), embedder: Some("words") }
    }

    /// A machine with the default embedder.
    pub(crate) fn with_encoder() -> Self {
        Self { embedder: None, ..Self::new() }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The path of the default store.
    pub(crate) fn store(&self) -> PathBuf {
        self.home().join("strata/strata.db")
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        std::fs::write(self.home().join(file), text).unwrap();
    }

    /// `strata` with `args`, without the settings of this process.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strata"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("STRATA_") {
                command.env_remove(name);
            }
        }
        command
            .args(args)
            .current_dir(self.home())
            .env("HOME", self.home())
            // Most tests are about other things than the reader, and the rules read faster.
            .env("STRATA_LEARN_READER", "off")
            .env("XDG_DATA_HOME", self.home())
            .envs(self.embedder.map(|embedder| ("STRATA_EMBEDDER", embedder)))
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// As [`Machine::command`], started by another program with the arguments `starter`.
    pub(crate) fn command_under(&self, starter: &[&str], args: &[&str]) -> Command {
        let strata = self.command(args);
        let mut command = Command::new(starter[0]);
        command.args(&starter[1..]).arg(strata.get_program()).args(strata.get_args());
        for (name, value) in strata.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(self.home());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    /// Runs with `input` on stdin.
    pub(crate) fn feed(&self, args: &[&str], input: impl AsRef<[u8]>) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // After a bad line, a command does not read the rest.
        let _ = stdin.write_all(input.as_ref());
        drop(stdin);
        Ran::from(child.wait_with_output().unwrap())
    }

    /// Records each line of `texts` as a turn in `session`.
    pub(crate) fn record(&self, session: &str, texts: &[&str]) {
        let lines: String = texts
            .iter()
            .map(|text| format!("{}\n", serde_json::json!({ "role": "user", "content": text })))
            .collect();
        self.feed(&["record", "--session", session], lines).ok();
    }

    /// Adds a memory and returns its id.
    pub(crate) fn add(&self, args: &[&str]) -> String {
        let args: Vec<&str> = ["add", "--json"].into_iter().chain(args.iter().copied()).collect();
        self.run(&args).json()["id"].as_str().unwrap().to_owned()
    }

    /// Starts a server on a free port and waits until it listens.
    pub(crate) fn serve(&self, args: &[&str]) -> Server {
        let args: Vec<&str> =
            ["serve", "--listen", "127.0.0.1:0"].into_iter().chain(args.iter().copied()).collect();
        Server::start(self.command(&args))
    }
}

/// The result of a run.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }
}

impl Ran {
    /// The stdout of a run that succeeded. It may have printed notes to stderr.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self.stdout
    }

    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// The stderr of a run that ended with `code`.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        assert!(self.stderr.starts_with("error: "), "{}", self.stderr);
        self.stderr
    }
}

/// A running server, killed at the end if it still runs.
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) address: String,
    pub(crate) store: String,
}

impl Server {
    pub(crate) fn start(command: Command) -> Self {
        // The log goes to the test's own stderr, because a pipe without a reader would fill up.
        Self::start_to(command, Stdio::inherit())
    }

    /// As [`Server::start`], with the log in a file.
    pub(crate) fn start_logging(command: Command, log: &Path) -> Self {
        Self::start_to(command, std::fs::File::create(log).unwrap().into())
    }

    fn start_to(mut command: Command, log: Stdio) -> Self {
        let mut child = command.stderr(log).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = |prefix: &str| {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            line.trim_end().strip_prefix(prefix).unwrap_or_else(|| panic!("{line:?}")).to_owned()
        };
        let address = line("strata listens on http://");
        let store = line("store: ");
        Self { child, stdout, address, store }
    }

    /// Sends a request and returns the status and the body.
    pub(crate) fn http(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.http_with(method, path, "", body)
    }

    /// Sends a request with a key.
    pub(crate) fn http_as(&self, key: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        self.http_with(method, path, &format!("Authorization: Bearer {key}\r\n"), body)
    }

    /// Sends a request with headers, each with its line's end.
    pub(crate) fn http_with(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address.replace("0.0.0.0", "127.0.0.1")).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             {headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Sends a signal and returns the exit code and the remaining output.
    pub(crate) fn stop(mut self, signal: &str) -> (Option<i32>, String) {
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
