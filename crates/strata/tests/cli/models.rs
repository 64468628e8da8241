//! `strata models`, with a scripted server.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use crate::harness::Machine;

/// The server's files: enough for a folder to look like a model.
const FILES: [(&str, &[u8]); 2] =
    [("/m/model.onnx", b"weights, long enough to break off in the middle"), ("/m/tokenizer.json", b"{}")];

/// A server that interrupts the first download of the weights, and supports resuming.
struct Hub {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/m", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap().to_lowercase();
                seen.lock().unwrap().push(head.clone());
                // A client that only checks whether the file exists closes the connection.
                let _ = stream.write_all(&answer(&head));
            }
        });
        Self { url, requests }
    }

    fn ranges(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let ranges = requests.iter().filter_map(|head| head.split("range: ").nth(1)?.lines().next());
        ranges.map(str::to_owned).collect()
    }
}

fn answer(head: &str) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap_or_default();
    let Some((_, content)) = FILES.iter().find(|(known, _)| *known == path) else {
        return b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec();
    };
    let start = head
        .split("range: bytes=")
        .nth(1)
        .and_then(|range| range.split('-').next()?.parse::<usize>().ok())
        .unwrap_or(0);
    let status = if start > 0 { "206 Partial Content" } else { "200 OK" };
    let range = format!("Content-Range: bytes {start}-{}/{}\r\n", content.len() - 1, content.len());
    let length = content.len() - start;
    let mut bytes =
        format!("HTTP/1.1 {status}\r\nConnection: close\r\n{range}Content-Length: {length}\r\n\r\n")
            .into_bytes();
    bytes.extend(&content[start..]);
    bytes
}

#[test]
fn a_model_is_fetched_checked_listed_and_chosen() {
    let machine = Machine::with_encoder();
    let hub = Hub::start();
    // An interrupted download is resumed.
    let folder = machine.home().join("strata/models/mine");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("model.onnx.part"), &FILES[0].1[..10]).unwrap();
    let pull = ["models", "pull", "mine", "--from", &hub.url];
    let wrong = "0".repeat(64);
    let printed = machine.run(&pull).ok();
    assert!(
        printed.contains("model.onnx  sha256 ") && printed.contains("tokenizer.json  sha256 "),
        "{printed}"
    );
    assert_eq!(std::fs::read(folder.join("model.onnx")).unwrap(), FILES[0].1);
    assert_eq!(hub.ranges(), ["bytes=10-"]);
    assert!(!folder.join("config.json").exists(), "what the server does not have is not needed");

    let digest = printed.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    let asked = hub.requests.lock().unwrap().len();
    machine.run(&[&pull[..], &["--sha256", &digest]].concat()).ok();
    let weights =
        hub.requests.lock().unwrap()[asked..].iter().filter(|head| head.contains("/m/model.onnx")).count();
    assert_eq!(weights, 1, "weights with the right digest are looked for but not fetched again");
    let error = machine.run(&[&pull[..], &["--sha256", &wrong]].concat()).failed(1);
    assert!(error.contains(&digest) && error.contains("the download was removed"), "{error}");
    assert_eq!(std::fs::read(folder.join("model.onnx")).unwrap(), FILES[0].1, "the right one stays");

    let models = machine.run(&["models", "list", "--json"]).json();
    let shown = |models: &serde_json::Value| {
        let models = models["models"].as_array().unwrap().clone();
        models
            .iter()
            .map(|model| (model["name"].as_str().unwrap().to_owned(), model["in_use"] == true))
            .collect::<Vec<_>>()
    };
    let named = |name: &str, in_use: bool| (name.to_owned(), in_use);
    assert_eq!(shown(&models), [named("builtin", true), named("words", false), named("mine", false)]);
    assert!(models["models"][0]["space"].as_str().unwrap().starts_with("strata-encoder@"), "{models}");
    assert!(models["models"][2]["space"].as_str().unwrap().starts_with("mine@"), "{models}");

    machine.write("strata.toml", "# mine\ndefault_top_k = 7\n");
    let printed = machine.run(&["models", "use", "mine"]).ok();
    assert!(printed.contains("in the background"), "{printed}");
    let file = std::fs::read_to_string(machine.home().join("strata.toml")).unwrap();
    assert!(file.starts_with("# mine\ndefault_top_k = 7\nembedder = \"onnx:"), "{file}");
    let models = machine.run(&["models", "list", "--json"]).json();
    assert_eq!(shown(&models), [named("builtin", false), named("words", false), named("mine", true)]);
    let table = machine.run(&["models", "list"]).ok();
    assert!(table.lines().any(|line| line.starts_with("*  mine")), "{table}");

    machine.run(&["models", "use", "builtin"]).ok();
    let file = std::fs::read_to_string(machine.home().join("strata.toml")).unwrap();
    assert_eq!(file, "# mine\ndefault_top_k = 7\nembedder = \"builtin\"\n");
}

#[test]
fn what_cannot_be_a_model_is_refused() {
    let machine = Machine::new();
    let hub = Hub::start();
    let check = |args: &[&str], code: i32, expected: &str| {
        let error = machine.run(args).failed(code);
        assert!(error.contains(expected), "strata {}: {error}", args.join(" "));
    };
    check(&["models", "pull", "../evil", "--from", &hub.url], 2, "cannot be a model's name");
    check(&["models", "pull", "builtin", "--from", &hub.url], 2, "cannot be a model's name");
    check(&["models", "pull", "unknown"], 2, "`--from URL`");
    check(&["models", "pull", "x", "--from", &hub.url, "--sha256", "abc"], 2, "64 hexadecimal digits");
    assert!(hub.requests.lock().unwrap().is_empty());
    check(&["models", "pull", "x", "--from", &format!("{}/nowhere", hub.url)], 1, "`model.onnx`");
    check(&["models", "pull", "x", "--from", "http://127.0.0.1:1/m"], 1, "cannot be reached");
    check(&["models", "use", "nothing"], 1, "there is no model at");
    check(&["models", "use", "../evil"], 2, "cannot be a model's name");
    check(&["models", "use", "onnx:."], 1, "model");
    check(&["search", "x", "--embedder", "onnx:nowhere"], 1, "there is no store");
    assert!(!machine.home().join("strata.toml").exists());
    assert!(!machine.home().join("strata").exists(), "nothing is left of what was refused");
}

#[test]
fn a_variable_that_goes_before_the_file_is_named() {
    let machine = Machine::new();
    let output =
        machine.command(&["models", "use", "words"]).env("STRATA_EMBEDDER", "builtin").output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("STRATA_EMBEDDER is set"));
    let file = std::fs::read_to_string(machine.home().join("strata.toml")).unwrap();
    assert_eq!(file, "embedder = \"words\"\n");
}

#[test]
fn the_encoder_inside_the_binary_finds_what_shares_no_word() {
    let machine = Machine::with_encoder();
    machine.record(
        "evening",
        &["The plumber replaced the boiler", "We adopted a beagle puppy", "Our train was late again"],
    );
    let question = ["search", "which dog did we get?"];
    let answer = machine.run(&[&question[..], &["--json"]].concat()).json();
    assert_eq!(answer["results"][0]["memory"], "We adopted a beagle puppy", "{answer}");
    let trace = |more: &[&str]| machine.run(&[&question[..], &["--explain"], more].concat()).ok();
    assert!(trace(&[]).contains("3 compared by vectors"));
    assert!(trace(&["--embedder", "words"]).contains("0 compared by vectors"));
    let report = machine.run(&["doctor", "--json"]).json();
    let check = |name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["check"] == name).unwrap()["found"].as_str().unwrap().to_owned()
    };
    assert!(check("embedder").starts_with("`strata-encoder@"), "{report}");
    assert_eq!(check("vectors"), "up to date");
    // Words alone leave no vectors.
    let machine = Machine::new();
    machine.record("evening", &["We adopted a beagle puppy"]);
    let report = machine.run(&["doctor", "--json", "--embedder", "builtin"]).json();
    assert!(report.to_string().contains("1 of 1 changes wait to be embedded"), "{report}");
}
