//! `cargo xtask torture`: the tests of bad days, again and again for as long as one likes, and one table of what they found.
//!
//! The tests themselves stand beside the code; `cargo xtask check` runs each of them once. To add a campaign, add a line to
//! [`CAMPAIGNS`]. A long run also looks for new inputs of every parser (`cargo xtask fuzz`).

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use crate::{fuzz, test_run};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// For how many minutes. Each campaign runs at least once.
    #[arg(long, default_value_t = 2)]
    minutes: u64,
    /// Only campaigns whose name holds this.
    #[arg(long)]
    only: Option<String>,
    /// Only the campaigns of the check.
    #[arg(skip)]
    is_share: bool,
    /// The rounds of each crash test in one run; without it, each campaign's own number.
    #[arg(long)]
    rounds: Option<u64>,
    /// Goes on until this many processes were killed.
    #[arg(long, default_value_t = 0)]
    kills: u64,
}

impl Arguments {
    /// The share of the check: a round of each campaign that kills, and the parsers; two minutes of it.
    pub(crate) fn share() -> Self {
        Self { minutes: 0, only: None, is_share: true, rounds: Some(1), kills: 0 }
    }

    fn wants(&self, campaign: &Campaign) -> bool {
        let is_named = self.only.as_ref().is_none_or(|only| campaign.name.contains(only.as_str()));
        match &campaign.work {
            Work::Fuzz => is_named && (self.minutes >= LONG_MINUTES || self.only.is_some()),
            Work::Tests { .. } => {
                is_named
                    && (!self.is_share || campaign.name.starts_with("kills") || campaign.name == "parsers")
            }
        }
    }
}

/// A run of so many minutes also runs each target of `cargo xtask fuzz`, for one minute.
const LONG_MINUTES: u64 = 60;

/// Tests of one promise.
struct Campaign {
    name: &'static str,
    work: Work,
    /// The rounds of a run, if they are more than those of the check.
    rounds: Option<u64>,
}

/// What a campaign runs.
enum Work {
    Tests {
        package: &'static str,
        /// The test binary; `None` for the tests inside the library.
        test: Option<&'static str>,
        /// Only tests whose names hold this.
        filter: Option<&'static str>,
    },
    /// Every target of `cargo xtask fuzz`.
    Fuzz,
}

/// The rounds of a test that kills, on each kind of store. The check runs fewer on stores other than SQLite.
const ROUNDS_OF_KILLS: u64 = 10;

const CAMPAIGNS: [Campaign; 25] = [
    kills("kills while turns are appended", "strata", "crash"),
    kills("kills during chats", "strata", "proxy_crash"),
    kills("kills while Strata learns", "strata", "learning_crash"),
    kills("kills under every kind of write", "strata", "write_paths_crash"),
    kills("kills during compaction", "strata", "compaction_crash"),
    Campaign { rounds: Some(20), ..whole("kills of a vault", "strata-vault", "crash") },
    whole("kills while contexts are saved", "strata-context", "crash"),
    whole("kills of imports", "strata-import", "import_crash"),
    Campaign {
        rounds: Some(20),
        ..whole("kills of one of several processes", "strata", "postgres_processes")
    },
    whole("full, failing and slow disks", "strata", "outages"),
    whole("bad disks under a vault", "strata", "vault_outages"),
    whole("forgotten bytes", "strata-store", "forgetting"),
    whole("forgotten bytes of a vault", "strata-vault", "forgetting"),
    whole("damaged rows", "strata-store", "damage"),
    whole("files that are moved or replaced", "strata-store", "moved"),
    part("clocks that jump", "strata-engine", "clock_ahead"),
    clocks("clocks that jump, SQLite", "strata-store", "conformance"),
    clocks("clocks that jump, PostgreSQL", "strata-postgres", "conformance"),
    clocks("clocks that jump, vault", "strata-vault", "conformance"),
    clocks("clocks that jump, edited files", "strata-vault", "edits"),
    whole("bad input", "strata", "hostile"),
    whole("memory of large requests", "strata", "limits"),
    part("slow clients", "strata-server", "serve::tests"),
    whole("parsers", "strata-fuzz", "targets"),
    Campaign { name: "parsers, fuzzed", work: Work::Fuzz, rounds: None },
];

const fn whole(name: &'static str, package: &'static str, test: &'static str) -> Campaign {
    Campaign { name, work: Work::Tests { package, test: Some(test), filter: None }, rounds: None }
}

const fn kills(name: &'static str, package: &'static str, test: &'static str) -> Campaign {
    Campaign { rounds: Some(ROUNDS_OF_KILLS), ..whole(name, package, test) }
}

/// The tests of a library whose names hold a word.
const fn part(name: &'static str, package: &'static str, word: &'static str) -> Campaign {
    Campaign { name, work: Work::Tests { package, test: None, filter: Some(word) }, rounds: None }
}

const fn clocks(name: &'static str, package: &'static str, test: &'static str) -> Campaign {
    let work = Work::Tests { package, test: Some(test), filter: Some("clock") };
    Campaign { name, work, rounds: None }
}

/// The result of a campaign.
#[derive(Default)]
struct Record {
    passed: u32,
    failed: u32,
    /// The processes that were killed, if the tests tell.
    kills: u64,
    took: Duration,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let campaigns: Vec<&Campaign> = CAMPAIGNS.iter().filter(|campaign| arguments.wants(campaign)).collect();
    if campaigns.is_empty() {
        bail!("no campaign has such a name; there are:\n{}", names());
    }
    let end = Instant::now() + Duration::from_secs(arguments.minutes * 60);
    let mut records: Vec<Record> = campaigns.iter().map(|_| Record::default()).collect();
    // The first round runs every campaign, the later ones as many as there is time for.
    let is_enough = |records: &[Record]| Instant::now() >= end && killed(records) >= arguments.kills;
    let mut seed = 0;
    while seed == 0 || !is_enough(&records) {
        let before = killed(&records);
        for (place, campaign) in campaigns.iter().enumerate() {
            if seed > 0 && is_enough(&records) {
                break;
            }
            let variation = Variation { seed, rounds: arguments.rounds.or(campaign.rounds) };
            run_once(workspace, campaign, &mut records[place], variation)?;
        }
        seed += 1;
        if arguments.kills > 0 && killed(&records) == before {
            bail!("these campaigns kill no process");
        }
    }
    print_table(&campaigns, &records);
    let failed: u32 = records.iter().map(|record| record.failed).sum();
    let kills = killed(&records);
    if arguments.rounds.is_some() && kills == 0 {
        bail!("no process was killed; the crash tests do not tell of their kills");
    }
    if failed > 0 {
        bail!("{failed} rounds failed");
    }
    Ok(())
}

/// The processes that all campaigns have killed.
fn killed(records: &[Record]) -> u64 {
    records.iter().map(|record| record.kills).sum()
}

/// How a run differs from the one before it.
struct Variation {
    seed: u64,
    rounds: Option<u64>,
}

fn run_once(
    workspace: &Workspace,
    campaign: &Campaign,
    record: &mut Record,
    variation: Variation,
) -> Result<()> {
    let began = Instant::now();
    let passes = match campaign.work {
        Work::Fuzz => fuzz::run(workspace, &fuzz::Arguments::every_target()).is_ok(),
        Work::Tests { package, test, filter } => {
            let mut cargo = workspace.cargo();
            test_run::with_venv(workspace, arguments(&mut cargo, package, test, filter))?;
            run_tests(workspace, &mut cargo, record, &variation)?
        }
    };
    match passes {
        true => record.passed += 1,
        false => record.failed += 1,
    }
    record.took += began.elapsed();
    Ok(())
}

/// Runs tests that count their kills, and returns whether they passed.
fn run_tests(
    workspace: &Workspace,
    cargo: &mut Command,
    record: &mut Record,
    variation: &Variation,
) -> Result<bool> {
    let told = workspace.target()?.join("torture-kills");
    // The file is there only if an earlier run was cut off.
    let _ = std::fs::remove_file(&told);
    cargo.env("STRATA_TEST_SEED", variation.seed.to_string()).env("STRATA_TEST_KILLS", &told);
    if let Some(rounds) = variation.rounds {
        cargo.env("STRATA_TEST_ROUNDS", rounds.to_string());
    }
    let passes = cargo.status()?.success();
    record.kills += count_kills(&std::fs::read(&told).unwrap_or_default());
    Ok(passes)
}

/// The number of processes that the tests have killed: one byte each.
fn count_kills(told: &[u8]) -> u64 {
    told.len() as u64
}

/// The whole workspace is named, so that its builds have the same features as those of the check and nothing is built anew.
fn arguments<'a>(
    cargo: &'a mut Command,
    package: &str,
    test: Option<&str>,
    filter: Option<&str>,
) -> &'a mut Command {
    let target = match test {
        Some(test) => vec!["--test", test],
        None => vec!["--lib"],
    };
    if test_run::has_nextest() {
        let tests = filter.map(|filter| format!(" & test({filter})")).unwrap_or_default();
        cargo.args([
            "nextest",
            "run",
            "--config-file",
            test_run::NEXTEST_CONFIG,
            "--no-fail-fast",
            "--workspace",
        ]);
        return cargo.args(target).args(["-E", &format!("package(={package}){tests}")]);
    }
    cargo.args(["test", "--no-fail-fast", "-p", package]).args(target).args(filter)
}

fn names() -> String {
    CAMPAIGNS.iter().map(|campaign| format!("  {}\n", campaign.name)).collect()
}

fn print_table(campaigns: &[&Campaign], records: &[Record]) {
    println!("\n{:<36}{:>8}{:>8}{:>8}{:>10}", "campaign", "passed", "failed", "kills", "seconds");
    for (campaign, Record { passed, failed, kills, took }) in campaigns.iter().zip(records) {
        println!("{:<36}{passed:>8}{failed:>8}{kills:>8}{:>10}", campaign.name, took.as_secs());
    }
    println!("{} processes were killed", killed(records));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_the_check_kills_under_every_kind_of_work() {
        let share = Arguments::share();
        let names = CAMPAIGNS.iter().filter(|campaign| share.wants(campaign)).map(|campaign| campaign.name);
        let names: Vec<&str> = names.collect();
        for word in [
            "appended",
            "chats",
            "learns",
            "every kind of write",
            "vault",
            "compaction",
            "contexts",
            "several processes",
            "imports",
            "parsers",
        ] {
            assert!(names.iter().any(|name| name.contains(word)), "{word}: {names:?}");
        }
        assert!(!names.contains(&"parsers, fuzzed"), "it takes too long");
    }

    #[test]
    fn a_long_run_fuzzes_every_parser() {
        let arguments = |minutes| Arguments { minutes, only: None, is_share: false, rounds: None, kills: 0 };
        let fuzzed = |arguments: &Arguments| {
            CAMPAIGNS.iter().any(|campaign| matches!(campaign.work, Work::Fuzz) && arguments.wants(campaign))
        };
        assert!(fuzzed(&arguments(LONG_MINUTES)));
        assert!(!fuzzed(&arguments(2)));
    }

    /// The tests of all crates: the package, the name and the text of each.
    fn tests() -> Vec<(String, String, String)> {
        let crates = Workspace::locate().unwrap().root().join("crates");
        let mut found = Vec::new();
        for package in std::fs::read_dir(crates).unwrap().flatten() {
            let Ok(tests) = std::fs::read_dir(package.path().join("tests")) else { continue };
            for test in tests.flatten().map(|test| test.path()) {
                let main = if test.is_dir() { test.join("main.rs") } else { test.clone() };
                let Ok(text) = std::fs::read_to_string(main) else { continue };
                let name = |path: &std::ffi::OsStr| path.to_string_lossy().into_owned();
                found.push((name(&package.file_name()), name(test.file_stem().unwrap()), text));
            }
        }
        found
    }

    /// The package and the test binary of a campaign that runs tests.
    fn tests_of(campaign: &Campaign) -> Option<(&str, Option<&str>)> {
        match campaign.work {
            Work::Tests { package, test, .. } => Some((package, test)),
            Work::Fuzz => None,
        }
    }

    /// A crash test that no campaign runs would not be repeated.
    #[test]
    fn every_crash_test_is_in_a_campaign_of_kills() {
        for (package, name, text) in tests() {
            let is_repeated = ["STRATA_TEST_ROUNDS", "::rounds(", "store.rounds("];
            let is_repeated = is_repeated.iter().any(|word| text.contains(word));
            if !is_repeated && !name.ends_with("crash") {
                continue;
            }
            let is_run = |campaign: &Campaign| {
                campaign.name.starts_with("kills")
                    && tests_of(campaign) == Some((package.as_str(), Some(name.as_str())))
            };
            assert!(CAMPAIGNS.iter().any(is_run), "{package} {name}");
        }
    }

    #[test]
    fn a_campaign_runs_its_own_tests_alone() {
        for (package, test) in CAMPAIGNS.iter().filter_map(tests_of) {
            let mut cargo = Command::new("cargo");
            let given: Vec<String> = arguments(&mut cargo, package, test, None)
                .get_args()
                .map(|argument| argument.to_string_lossy().into_owned())
                .collect();
            assert!(given.iter().any(|argument| argument.contains(package)), "{given:?}");
            assert!(test.is_none_or(|test| given.contains(&test.to_owned())), "{given:?}");
        }
    }

    #[test]
    fn every_campaign_names_tests_that_exist() {
        let tests = tests();
        for (package, test) in CAMPAIGNS.iter().filter_map(tests_of) {
            let is_it = |name: &str| tests.iter().any(|(of, test, _)| of == package && test == name);
            assert!(test.is_none_or(is_it), "{package} {test:?}");
        }
    }
}
