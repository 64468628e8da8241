//! `cargo xtask torture`: the tests of bad days, again and again for as long as one likes, and one table of what they found.
//!
//! The tests themselves stand beside the code; `cargo xtask check` runs each of them once. To add a campaign, add a line to
//! [`CAMPAIGNS`].

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::test_run;
use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// For how many minutes. Each campaign runs at least once.
    #[arg(long, default_value_t = 2)]
    minutes: u64,
    /// Only campaigns whose name holds this.
    #[arg(long)]
    only: Option<String>,
}

/// Tests of one promise.
struct Campaign {
    name: &'static str,
    package: &'static str,
    /// The test binary; `None` for the tests inside the library.
    test: Option<&'static str>,
    /// Only tests whose names hold this.
    filter: Option<&'static str>,
}

const CAMPAIGNS: [Campaign; 10] = [
    whole("kills while turns are appended", "strata", "crash"),
    whole("kills during chats", "strata", "proxy_crash"),
    whole("kills while Strata learns", "strata", "learning_crash"),
    whole("full, failing and slow disks", "strata", "outages"),
    whole("several processes, PostgreSQL", "strata", "postgres_processes"),
    whole("forgotten bytes", "strata-store", "forgetting"),
    whole("damaged rows", "strata-store", "damage"),
    whole("files that are moved or replaced", "strata-store", "moved"),
    Campaign { name: "clocks that jump", package: "strata-engine", test: None, filter: Some("clock_ahead") },
    whole("bad input", "strata", "hostile"),
];

const fn whole(name: &'static str, package: &'static str, test: &'static str) -> Campaign {
    Campaign { name, package, test: Some(test), filter: None }
}

/// What became of a campaign.
#[derive(Default)]
struct Record {
    passed: u32,
    failed: u32,
    took: Duration,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let wanted = |campaign: &&Campaign| {
        arguments.only.as_ref().is_none_or(|only| campaign.name.contains(only.as_str()))
    };
    let campaigns: Vec<&Campaign> = CAMPAIGNS.iter().filter(wanted).collect();
    if campaigns.is_empty() {
        bail!("no campaign has such a name; there are:\n{}", names());
    }
    let end = Instant::now() + Duration::from_secs(arguments.minutes * 60);
    let mut records: Vec<Record> = campaigns.iter().map(|_| Record::default()).collect();
    // The first round runs every campaign, the later ones as many as there is time for.
    let mut round = 0;
    while round == 0 || Instant::now() < end {
        for (campaign, record) in campaigns.iter().zip(&mut records) {
            if round > 0 && Instant::now() >= end {
                break;
            }
            run_once(workspace, campaign, record)?;
        }
        round += 1;
    }
    print_table(&campaigns, &records);
    let failed: u32 = records.iter().map(|record| record.failed).sum();
    if failed > 0 {
        bail!("{failed} rounds failed");
    }
    Ok(())
}

fn run_once(workspace: &Workspace, campaign: &Campaign, record: &mut Record) -> Result<()> {
    let began = Instant::now();
    let mut cargo = workspace.cargo();
    test_run::with_venv(workspace, arguments(&mut cargo, campaign))?;
    match cargo.status()?.success() {
        true => record.passed += 1,
        false => record.failed += 1,
    }
    record.took += began.elapsed();
    Ok(())
}

fn arguments<'a>(cargo: &'a mut Command, campaign: &Campaign) -> &'a mut Command {
    match test_run::has_nextest() {
        true => cargo.args(["nextest", "run", "--config-file", test_run::NEXTEST_CONFIG, "--no-fail-fast"]),
        false => cargo.args(["test", "--no-fail-fast"]),
    };
    cargo.args(["-p", campaign.package]);
    match campaign.test {
        Some(test) => cargo.args(["--test", test]),
        None => cargo.arg("--lib"),
    };
    cargo.args(campaign.filter)
}

fn names() -> String {
    CAMPAIGNS.iter().map(|campaign| format!("  {}\n", campaign.name)).collect()
}

fn print_table(campaigns: &[&Campaign], records: &[Record]) {
    println!("\n{:<36}{:>8}{:>8}{:>10}", "campaign", "passed", "failed", "seconds");
    for (campaign, Record { passed, failed, took }) in campaigns.iter().zip(records) {
        println!("{:<36}{passed:>8}{failed:>8}{:>10}", campaign.name, took.as_secs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_campaign_names_tests_that_exist() {
        let workspace = Workspace::locate().unwrap();
        for campaign in &CAMPAIGNS {
            let folder = workspace.root().join("crates").join(campaign.package);
            if let Some(test) = campaign.test {
                assert!(folder.join(format!("tests/{test}.rs")).is_file(), "{}", campaign.name);
            }
        }
    }
}
