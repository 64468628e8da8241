//! The files for containers and systemd, as far as they can be judged without a container engine: no image is built here.

use std::process::Command;

use serde_json::Value;

use super::support::{Server, show, strata, venv};
use super::{root, tool};

const FILES: [&str; 3] = ["Dockerfile", "compose.yaml", "packages/strata.service"];

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

#[test]
fn every_setting_that_they_name_exists() {
    let output = strata().args(["config", "--json"]).output().unwrap();
    let config: Value = serde_json::from_slice(&output.stdout).unwrap();
    let settings = config["settings"].as_array().unwrap().iter();
    let known: Vec<String> = settings
        .map(|setting| setting["key"].as_str().unwrap().to_uppercase().replace('.', "_"))
        .map(|key| format!("STRATA_{key}"))
        .collect();
    for file in FILES {
        let text = read(file);
        let names: Vec<&str> = text
            .split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
            .filter(|word| word.starts_with("STRATA_") && *word != "STRATA_")
            .collect();
        assert!(names.len() >= 2, "{file}: {names:?}");
        for name in names {
            assert!(known.contains(&name.to_owned()), "{file} names {name}, which is no setting");
        }
    }
}

/// The values are accepted too.
#[test]
fn the_settings_of_the_image_are_valid() {
    let text = read("Dockerfile");
    let (_, rest) = text.split_once("\nENV ").unwrap();
    let settings: Vec<(&str, &str)> = rest
        .split_inclusive('\n')
        .scan(true, |goes_on, line| {
            let here = *goes_on;
            *goes_on = line.trim_end().ends_with('\\');
            here.then(|| line.trim().trim_end_matches('\\').trim())
        })
        .filter_map(|line| line.split_once('='))
        .collect();
    assert_eq!(settings.len(), 3, "{settings:?}");
    let output = strata().arg("config").envs(settings).output().unwrap();
    assert!(output.status.success(), "{}", show(&output));
}

#[test]
fn the_health_check_of_the_image_tells_a_server_that_answers() {
    let text = read("Dockerfile");
    let (_, rest) = text.split_once("HEALTHCHECK").unwrap();
    let command = rest.split_once("CMD ").unwrap().1.lines().next().unwrap();
    let command: Vec<String> = serde_json::from_str(command).unwrap();
    let check = |port: &str| {
        let arguments = command[1..].iter().map(|argument| argument.replace("/8100", &format!("/{port}")));
        Command::new(&command[0]).args(arguments).output().unwrap().status.success()
    };
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("health.db"));
    let port = server.address().split(':').nth(1).unwrap().to_owned();
    assert!(check(&port));
    server.stop();
    assert!(!check(&port));
}

#[test]
fn the_dockerfile_is_sound() {
    let output = Command::new(tool("hadolint")).arg(root().join("Dockerfile")).output().unwrap();
    assert!(output.status.success(), "{}", show(&output));
    let text = read("Dockerfile");
    let last = text.rsplit("\nFROM ").next().unwrap();
    assert!(last.contains("\nUSER 10001\n"), "the program does not run as root");
    let built_with = text.split("FROM rust:").nth(1).unwrap().split('-').next().unwrap();
    let needed =
        read("Cargo.toml").split("rust-version = \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let number =
        |version: &str| version.split('.').map(|part| part.parse::<u32>().unwrap()).collect::<Vec<_>>();
    assert!(number(built_with) >= number(&needed), "Rust {built_with} is older than {needed}");
}

/// Everything that cargo reads is sent to the builder, and nothing that is large.
#[test]
fn the_image_is_built_from_the_workspace() {
    let ignored = read(".dockerignore");
    let sent: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    let manifest = read("Cargo.toml");
    let members = manifest.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    for member in members.split(',').map(|member| member.trim().trim_matches('"').trim_end_matches("/*")) {
        assert!(
            sent.contains(&member),
            "{member} is a member of the workspace, and .dockerignore leaves it out"
        );
    }
    assert!(ignored.lines().any(|line| line == "*") && !sent.contains(&"target"), "{ignored}");
}

#[test]
fn compose_is_sound() {
    let script = r#"
import sys, yaml
compose = yaml.safe_load(open(sys.argv[1]))
services = compose["services"]
strata, database = services["strata"], services["postgres"]
assert strata["build"] == "." and strata["depends_on"]["postgres"]["condition"] == "service_healthy"
assert database["healthcheck"]["test"]
for name, service in services.items():
    assert not service.get("image", "x:1").endswith(":latest") and ":" in service.get("image", "x:1"), name
    for volume in service["volumes"]:
        assert volume.split(":")[0] in compose["volumes"], volume
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:"), port
user = strata["environment"]["STRATA_STORE"].split("//")[1].split("@")[0]
assert strata["environment"]["STRATA_STORE"] == f"postgres://{user}@postgres/{database['environment']['POSTGRES_DB']}"
assert user == database["environment"]["POSTGRES_USER"]
assert strata["environment"]["STRATA_POSTGRES_PASSWORD"] == database["environment"]["POSTGRES_PASSWORD"]
assert "ports" not in database, "the database is for Strata alone"
"#;
    let python = venv().join("bin/python");
    let output = Command::new(python).args(["-c", script]).arg(root().join("compose.yaml")).output().unwrap();
    assert!(output.status.success(), "{}", show(&output));
}

/// `systemd-analyze` is asked where there is one; the output says where there is none.
#[test]
fn the_unit_of_systemd_is_sound() {
    let unit = read("packages/strata.service");
    for line in ["ExecStart=/usr/local/bin/strata serve", "DynamicUser=yes", "StateDirectory=strata"] {
        assert!(unit.lines().any(|it| it == line), "{line}");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("strata.service");
    // The program is not installed on the machine that tests.
    std::fs::write(&file, unit.replace("/usr/local/bin/strata", env!("CARGO_BIN_EXE_strata"))).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&file).output() {
        Ok(output) => assert!(output.status.success() && output.stderr.is_empty(), "{}", show(&output)),
        Err(error) => {
            eprintln!("NOT TESTED: what systemd says of its unit; `systemd-analyze` cannot run: {error}")
        }
    }
}
