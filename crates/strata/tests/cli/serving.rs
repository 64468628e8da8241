//! `strata serve`, alone and with other processes on the same file.

use std::net::TcpListener;

use serde_json::json;

use crate::harness::{Machine, Server};

#[test]
fn without_a_command_it_serves_and_stops_when_told() {
    for signal in ["TERM", "INT"] {
        let machine = Machine::new();
        let server = Server::start(machine.command(&["--listen", "127.0.0.1:0"]));
        assert_eq!(server.store, format!("sqlite:{}", machine.store().display()));
        assert!(!server.address.ends_with(":0"), "{}", server.address);
        assert_eq!(server.http("GET", "/healthz", "").0, 200);
        assert_eq!(server.stop(signal), (Some(0), String::new()), "{signal}");
    }
}

#[test]
fn a_store_in_memory_needs_no_file() {
    let machine = Machine::new();
    let server = machine.serve(&["--store", "memory:"]);
    assert_eq!(server.store, "memory:");
    let body = json!({"session_id": "trip", "messages": [{"role": "user", "content": "hello"}]}).to_string();
    assert_eq!(server.http("POST", "/turns", &body).0, 201);
    assert_eq!(std::fs::read_dir(machine.home()).unwrap().count(), 0);
}

#[test]
fn without_a_key_only_loopback_is_listened_on() {
    let machine = Machine::new();
    let refused = |args: &[&str], origin: &str| {
        let args: Vec<&str> = ["serve"].into_iter().chain(args.iter().copied()).collect();
        let error = machine.run(&args).failed(2);
        assert!(error.contains("loopback") && error.contains(origin), "{error}");
        assert!(error.contains("strata keys create"), "{error}");
    };
    let everywhere = ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"];
    for address in everywhere {
        refused(&["--listen", address], "from --listen");
        refused(&["--listen", address, "--store", "memory:"], "from --listen");
    }
    refused(&["--setting", "allowed_hosts=memory.example"], "from --setting");
    assert!(!machine.store().exists(), "a refusal makes no store");
    machine.record("trip", &["I moved to Lisbon"]);
    refused(&["--listen", "0.0.0.0:0"], "from --listen");

    let made = machine.run(&["keys", "create", "--user", "default", "--json"]).json();
    let server = Server::start(machine.command(&["serve", "--listen", "0.0.0.0:0"]));
    assert_eq!(server.http("GET", "/sessions", "").0, 401);
    assert_eq!(server.http("GET", "/healthz", "").0, 200);
    let key = made["key"].as_str().unwrap();
    assert_eq!(server.http_as(key, "GET", "/sessions/trip", "").0, 200);
    drop(server);
    machine.run(&["keys", "revoke", made["id"].as_str().unwrap()]).ok();
    refused(&["--listen", "0.0.0.0:0"], "from --listen");
}

#[test]
fn a_port_in_use_is_named() {
    let machine = Machine::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = machine.run(&["serve", "--listen", &address]).failed(1);
    assert!(error.contains(&address) && error.contains("choose another port"), "{error}");
}

#[test]
fn every_command_works_beside_a_server() {
    let machine = Machine::new();
    let server = machine.serve(&[]);
    let body = json!({"session_id": "trip", "messages": [{"role": "user", "content": "I moved to Lisbon"}]});
    let (code, answer) = server.http("POST", "/turns", &body.to_string());
    assert_eq!(code, 201, "{answer}");

    machine.record("trip", &["and then to Porto"]);
    let id = machine.add(&["Ada likes trams"]);
    let (_, turns) = server.http("GET", "/sessions/trip/turns", "");
    let turns: serde_json::Value = serde_json::from_str(&turns).unwrap();
    assert_eq!(turns["turns"][0]["content"], "I moved to Lisbon");
    assert_eq!(turns["turns"][1]["content"], "and then to Porto");
    assert_eq!(turns["turns"][1]["seq"], 1);
    let (_, found) = server.http("POST", "/search", &json!({"query": "trams"}).to_string());
    assert!(found.contains(&id), "{found}");

    assert!(machine.run(&["search", "lisbon"]).ok().contains("I moved to Lisbon"));
    assert!(machine.run(&["sessions", "list"]).ok().contains("trip"));
    machine.run(&["memories", "delete", &id]).ok();
    machine.run(&["doctor"]).ok();
    machine.run(&["reindex"]).ok();
    machine.run(&["backup", "copy.db"]).ok();
    assert!(
        machine.run(&["search", "porto", "--store", "sqlite:copy.db"]).ok().contains("and then to Porto")
    );
    machine.run(&["sessions", "delete", "trip", "--yes"]).ok();
    assert_eq!(server.http("GET", "/sessions/trip", "").0, 404);
    assert_eq!(server.stop("TERM").0, Some(0));
}

#[test]
fn two_processes_record_into_one_session_without_a_gap() {
    let machine = Machine::new();
    let lines: String =
        (0..300).map(|i| format!("{}\n", json!({"role": "user", "content": format!("turn {i}")}))).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| machine.feed(&["record", "--setting", "max_turns_per_call=10"], &lines).ok());
        }
    });
    let exported = machine.run(&["sessions", "show", "default", "--json", "--limit", "1000"]).json();
    let seqs: Vec<u64> =
        exported["turns"].as_array().unwrap().iter().map(|turn| turn["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (0..600).collect::<Vec<u64>>());
}

#[test]
fn the_log_never_holds_what_was_said() {
    let machine = Machine::new();
    let secret = "my cat is called Xanthippe";
    let input = format!("{}\n", json!({"role": "user", "content": secret}));
    for args in [
        &["record", "--log", "trace", "--setting", "log_format=json"][..],
        &["search", "Xanthippe", "--log", "trace"],
        &["add", "Xanthippe is a cat", "--log", "trace"],
    ] {
        let ran = machine.feed(args, &input);
        assert!(!ran.stderr.contains("Xanthippe"), "{}", ran.stderr);
        ran.ok();
    }
}
