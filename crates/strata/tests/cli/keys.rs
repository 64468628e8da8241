//! `strata keys`, alone and beside a running server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Machine, Server};

fn make(machine: &Machine, args: &[&str]) -> Value {
    let args: Vec<&str> = ["keys", "create", "--json"].into_iter().chain(args.iter().copied()).collect();
    machine.run(&args).json()
}

#[test]
fn a_key_is_shown_once_and_never_kept() {
    let machine = Machine::new();
    let ran = machine.run(&["keys", "create", "--user", "ada", "--expires", "90d", "--name", "laptop"]);
    assert!(
        ran.stderr.contains("shown only once") && ran.stderr.contains("read, write until"),
        "{}",
        ran.stderr
    );
    let secret = ran.ok().trim().to_owned();
    assert!(secret.starts_with("strata_") && secret.len() == 39, "{secret}");
    let made = make(
        &machine,
        &[
            "--user",
            "*",
            "--scopes",
            "read,admin",
            "--rate",
            "60/min",
            "--concurrency",
            "4",
            "--recall-scope",
            "session",
        ],
    );
    let gateway = made["key"].as_str().unwrap();
    assert_eq!(made["user_id"], Value::Null);
    assert_eq!((&made["per_minute"], &made["concurrent"]), (&json!(60), &json!(4)));
    assert_eq!(made["recall_scope"], "session");
    assert_eq!(made["scopes"], json!(["read", "admin"]));

    let table = machine.run(&["keys", "list"]).ok();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[1].contains("60/min, 4 at once, recall session") && lines[1].contains(" * "), "{table}");
    assert!(lines[2].contains("ada") && lines[2].ends_with("laptop") && lines[2].contains("live"), "{table}");
    assert!(lines[2].contains(&format!("{}…", &secret[..13])), "{table}");
    let listed = machine.run(&["keys", "list", "--json"]).ok();
    let ada = machine.run(&["keys", "list", "--user", "ada", "--json"]).json();
    assert_eq!(ada["keys"].as_array().unwrap().len(), 1);
    assert_eq!(ada["keys"][0]["state"], "live");

    let file = std::fs::read(machine.store()).unwrap();
    let log = std::fs::read(machine.store().with_extension("db-wal")).unwrap_or_default();
    for secret in [secret.as_str(), gateway] {
        assert!(!table.contains(secret) && !listed.contains(secret));
        for bytes in [&file, &log] {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "in the file");
        }
    }
    assert_ne!(secret, gateway);
}

#[test]
fn a_revoked_key_stays_in_the_list_of_all() {
    let machine = Machine::new();
    let made = make(&machine, &["--admin", "--name", "网关"]);
    assert_eq!(made["scopes"], json!(["read", "write", "admin"]));
    let id = made["id"].as_str().unwrap();
    let ran = machine.run(&["keys", "revoke", id]);
    assert!(ran.stderr.contains("No key is left"), "{}", ran.stderr);
    assert!(ran.ok().contains("of no user"));
    let again = machine.run(&["keys", "revoke", id, "--json"]).json();
    assert_eq!(again["state"], "revoked");
    let ran = machine.run(&["keys", "list"]);
    assert!(ran.stderr.contains("no keys match"), "{}", ran.stderr);
    let all = machine.run(&["keys", "list", "--all", "--json"]).json();
    assert_eq!(all["keys"][0]["revoked_at"], again["revoked_at"], "it was revoked when it was first revoked");
    assert_eq!(all["keys"][0]["name"], "网关");
}

#[test]
fn a_running_server_learns_of_keys_by_itself() {
    let machine = Machine::new();
    let server = machine.serve(&["--log", "warn"]);
    assert_eq!(server.http("GET", "/sessions", "").0, 200);
    let made = make(&machine, &["--user", "ada"]);
    let key = made["key"].as_str().unwrap();
    // A new key is valid at once. The server requires a key after at most a second.
    assert_eq!(server.http_as(key, "GET", "/sessions", "").0, 200);
    until(&server, "", 401);
    machine.run(&["keys", "revoke", made["id"].as_str().unwrap()]).ok();
    until(&server, key, 401);
    until(&server, "", 200);
}

/// Repeats a request until the answer has this status. It should take a second; a busy machine may take longer.
fn until(server: &Server, key: &str, status: u16) {
    let begun = Instant::now();
    loop {
        let answer = match key {
            "" => server.http("GET", "/sessions", ""),
            key => server.http_as(key, "GET", "/sessions", ""),
        };
        if answer.0 == status {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{} {}", answer.0, answer.1);
    }
}

#[test]
fn neither_the_log_nor_the_doctor_tells_a_key() {
    let machine = Machine::new();
    let made = make(&machine, &["--user", "ada", "--log", "trace"]);
    let key = made["key"].as_str().unwrap().to_owned();
    let command = machine.command(&["serve", "--listen", "127.0.0.1:0", "--log", "trace"]);
    let log = machine.home().join("log");
    let server = Server::start_logging(command, &log);
    assert_eq!(server.http_as(&key, "GET", "/sessions", "").0, 200);
    assert_eq!(server.http_as("strata_zzzz", "GET", "/sessions", "").0, 401);
    assert_eq!(server.stop("TERM").0, Some(0));
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("401"), "{log}");
    assert!(!log.contains(&key) && !log.contains("strata_zzzz"), "{log}");
    let doctor = machine.run(&["doctor"]).ok();
    assert!(doctor.contains("1 valid") && !doctor.contains(&key), "{doctor}");
}
