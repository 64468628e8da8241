//! Upstreams behind a real HTTP proxy that asks for a password, and behind TLS with an authority that the test makes. The proxy
//! itself is reached plainly, and over TLS.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Answer, Client, Server, api_venv, strata};

/// No test is about slow memory; a long deadline only tolerates a loaded machine.
const PATIENCE: &str = "memory_deadline_ms=60000";

/// How long the proxy may take to write its log on a loaded machine.
const LOGGED_WITHIN: Duration = Duration::from_secs(60);

/// The models and the proxy in front of them.
struct Network {
    child: Child,
    ports: Value,
    /// How the proxy is reached: `http` or `https`.
    scheme: &'static str,
    directory: tempfile::TempDir,
}

impl Network {
    fn start() -> Self {
        Self::with_proxy_over("http")
    }

    fn with_proxy_over(scheme: &'static str) -> Self {
        let python = api_venv().join("bin/python");
        assert!(
            python.is_file(),
            "no Python at {}; `cargo xtask check` makes it, or name a virtual environment in `STRATA_TEST_API_VENV`",
            python.display()
        );
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstream_transport.py"))
            .arg(directory.path())
            .arg(scheme)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ports = serde_json::from_str(&line).unwrap_or_else(|_| panic!("the models started: {line}"));
        Self { child, ports, scheme, directory }
    }

    fn folder(&self) -> &Path {
        self.directory.path()
    }

    fn port(&self, name: &str) -> u64 {
        self.ports[name].as_u64().unwrap()
    }

    /// The setting `upstream` for a model.
    fn upstream(&self, name: &str) -> String {
        let scheme = if name == "tls" { "https" } else { "http" };
        format!("upstream={scheme}://localhost:{}/v1", self.port(name))
    }

    fn proxy(&self) -> String {
        format!("{}://ann:p%40ss@127.0.0.1:{}", self.scheme, self.port("proxy"))
    }

    fn authority(&self) -> String {
        self.folder().join("ca.pem").display().to_string()
    }

    /// A server with these settings, in the test's folder.
    fn serve(&self, name: &str, settings: &[&str]) -> Server {
        let settings: Vec<&str> = settings.iter().copied().chain([PATIENCE]).collect();
        Server::start_with(&self.folder().join(name), &settings)
    }

    /// The requests that the models have received.
    fn seen(&self) -> Vec<Value> {
        let mut client = Client::new(&format!("127.0.0.1:{}", self.port("plain")));
        client.get("/seen").unwrap().json().as_array().unwrap().clone()
    }

    fn proxy_log(&self) -> String {
        std::fs::read_to_string(self.folder().join("proxy.log")).unwrap()
    }

    /// Checks that the proxy was asked for tunnels to the server with TLS, and for whole addresses of the plain one.
    fn assert_proxy_was_used(&self) {
        let tunnel = format!("CONNECT localhost:{}", self.port("tls"));
        let plain = format!("localhost:{}/v1/chat/completions", self.port("plain"));
        // The proxy writes a line after the end of a request, which the client may see first.
        let end = Instant::now() + LOGGED_WITHIN;
        while !(self.proxy_log().contains(&tunnel) && self.proxy_log().contains(&plain)) {
            assert!(Instant::now() < end, "a tunnel or a plain request is missing:\n{}", self.proxy_log());
            std::thread::yield_now();
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The script ends with its input, and ends the proxy.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn chat(server: &Server, session: &str, question: &str, is_stream: bool) -> Answer {
    let body = json!({"model": "m", "stream": is_stream, "user": "ada", "memory_id": session,
        "messages": [{"role": "user", "content": question}]});
    server.client().post("/v1/chat/completions", &body).unwrap()
}

/// Tells something in one conversation and asks in another.
fn assert_remembers(server: &Server) {
    let told = chat(server, "told", "my canoe is called Heron", false);
    assert_eq!(told.status, 200, "{}\n{}", told.text(), server.log());
    let asked = chat(server, "asked", "what is my canoe called", true);
    assert!(asked.text().contains("[DONE]"), "{}\n{}", asked.text(), server.log());
    assert_ne!(asked.header("x-strata-memory-items"), Some("0"));
}

#[test]
fn an_upstream_is_reached_through_a_proxy_and_with_its_own_authority() {
    let network = Network::start();
    let (proxy, authority) = (network.proxy(), network.authority());
    let (by_proxy, trusted) = (format!("upstream_proxy={proxy}"), format!("upstream_ca_file={authority}"));

    let server = network.serve("tls.db", &[&network.upstream("tls"), &by_proxy, &trusted]);
    assert_remembers(&server);
    let seen = network.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen[1]["body"].to_string().contains("Heron"), "{}", seen[1]);
    let log = server.log();
    assert!(!log.contains("p@ss") && !log.contains("p%40ss"), "the log holds the password: {log}");
    drop(server);

    // In a tunnel, the password stays with the proxy. In a plain request, the proxy has to remove it; this one does not.
    for request in &seen {
        let headers = request["headers"].to_string().to_lowercase();
        assert!(!headers.contains("proxy-authorization"), "{headers}");
    }

    // A plain server is asked for through the proxy in absolute form.
    let server = network.serve("plain.db", &[&network.upstream("plain"), &by_proxy]);
    assert_remembers(&server);
    drop(server);
    let seen = network.seen();
    assert_eq!(seen.len(), 4);
    for request in &seen {
        assert_eq!(request["target"], "/v1/chat/completions");
    }
    network.assert_proxy_was_used();

    // The same in a table, and for `strata chat`.
    let file = network.folder().join("strata.toml");
    let address = network.upstream("tls").replace("upstream=", "");
    let table =
        format!("[[upstream]]\nurl = \"{address}\"\nproxy = \"{proxy}\"\nca_file = \"{authority}\"\n");
    std::fs::write(&file, table).unwrap();
    let server = network.serve("table.db", &[]);
    assert_remembers(&server);
    drop(server);
    let mut chatting = strata()
        .args(["chat", "--store", "memory:"])
        .current_dir(network.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    chatting.stdin.take().unwrap().write_all(b"say hello\n").unwrap();
    let output = chatting.wait_with_output().unwrap();
    assert!(support::show(&output).contains("reply to"), "{}", support::show(&output));
}

/// The tunnel to a server with TLS is itself inside TLS.
#[test]
fn a_proxy_is_reached_over_tls() {
    let network = Network::with_proxy_over("https");
    let by_proxy = format!("upstream_proxy={}", network.proxy());
    let trusted = format!("upstream_ca_file={}", network.authority());
    for name in ["tls", "plain"] {
        let server = network.serve(&format!("{name}.db"), &[&network.upstream(name), &by_proxy, &trusted]);
        assert_remembers(&server);
        let log = server.log();
        assert!(!log.contains("p@ss") && !log.contains("p%40ss"), "the log holds the password: {log}");
    }
    network.assert_proxy_was_used();
    let seen = network.seen();
    assert_eq!(seen.len(), 4);
    assert!(seen[1]["body"].to_string().contains("Heron"), "{}", seen[1]);
    let of_tunnel = seen[..2].iter().map(|request| request["headers"].to_string().to_lowercase());
    for headers in of_tunnel {
        assert!(!headers.contains("proxy-authorization"), "the password stays with the proxy: {headers}");
    }

    // The certificate of the proxy is checked, before the password is sent.
    let server = network.serve("untrusted.db", &[&network.upstream("plain"), &by_proxy]);
    let answer = chat(&server, "s", "hello", false);
    let shown = format!("the proxy `https://127.0.0.1:{}`", network.port("proxy"));
    assert!(answer.status == 502 && answer.text().contains(&shown), "{}", answer.text());
    assert!(server.log().contains("certificate"), "{}", server.log());
    assert_eq!(network.seen().len(), 4);
}

#[test]
fn a_way_that_does_not_work_is_named() {
    let network = Network::start();
    let proxy = format!("http://127.0.0.1:{}", network.port("proxy"));
    let closed = format!("http://127.0.0.1:{}", network.port("nothing"));
    let trusted = format!("upstream_ca_file={}", network.authority());
    let check = |name: &str, settings: &[&str], shown: &str, logged: &str| {
        let server = network.serve(name, settings);
        let answer = chat(&server, "s", "hello", false);
        assert_eq!(answer.status, 502, "{name}: {}", answer.text());
        assert!(answer.text().contains(shown), "{name}: {}", answer.text());
        assert!(server.log().contains(logged), "{name}: {}", server.log());
    };
    let tls = network.upstream("tls");
    check("untrusted.db", &[&tls], "cannot be reached", "certificate");
    check("refused.db", &[&tls, &trusted, &format!("upstream_proxy={proxy}")], &proxy, "407");
    check(
        "closed.db",
        &[&tls, &trusted, &format!("upstream_proxy={closed}")],
        &closed,
        "cannot be reached: tcp connect error",
    );
    assert!(network.seen().is_empty());
}

/// Memory goes where the settings say, so a stray variable of the environment has no effect.
#[test]
fn variables_of_the_environment_do_not_choose_a_proxy() {
    let network = Network::start();
    let closed = format!("http://127.0.0.1:{}", network.port("nothing"));
    let names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let variables: Vec<(&str, &str)> = names.iter().map(|name| (*name, closed.as_str())).collect();
    let server = Server::start_with_variables(
        &network.folder().join("variables.db"),
        &[&network.upstream("plain"), PATIENCE],
        &variables,
    );
    assert_remembers(&server);
}
