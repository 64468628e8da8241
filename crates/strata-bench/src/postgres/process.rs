//! Processes that append to one database at the same time. The first half of this file runs in the measuring process, the second
//! in each of those that it starts.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use strata_core::Store;
use strata_postgres::test_server::Database;
use strata_postgres::{PostgresOptions, PostgresStore};

use crate::{append, cpu};

/// The figures of several processes together.
pub(super) struct Run {
    /// Turns a second.
    pub(super) rate: f64,
    /// The connections that they held at the end.
    pub(super) connections: usize,
    /// The processor time of a turn in the processes and in the server, in milliseconds.
    pub(super) strata_cpu: f64,
    pub(super) server_cpu: f64,
}

/// Whose turns the processes append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Users {
    /// All processes write to the same users, so they wait for each other.
    Same,
    /// Each process has users of its own.
    Own,
}

/// What processes append.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) processes: usize,
    /// The writers and turns of all processes together.
    pub(super) writers: usize,
    pub(super) turns: usize,
    pub(super) users: Users,
}

/// Lets processes append. Each `series` has ids of its own.
pub(super) fn run(database: &Database, load: Load, series: u64) -> Result<Run> {
    let Load { processes, writers, turns, users } = load;
    let writers = (writers / processes).max(1);
    let each = turns / processes / writers * writers;
    let mut children = Vec::new();
    for process in 0..processes {
        let first_user = if users == Users::Own { process * append::USERS } else { 0 };
        let numbers = [writers, each, series as usize + process, first_user];
        let numbers = numbers.map(|number| number.to_string());
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--binary", ".", "--out", ".", "--append-to", &database.address()])
            .args(numbers)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().context("the output is piped")?).lines();
        children.push((child, lines));
    }
    for (_, lines) in &mut children {
        ensure!(next(lines)? == "ready", "a process did not begin");
    }
    let server = database.server().process();
    let server_before = cpu::of_family(server)?;
    let start = Instant::now();
    for (child, _) in &mut children {
        child.stdin.take().context("the input is piped")?.write_all(b"go\n")?;
    }
    let (mut connections, mut strata_cpu) = (0, 0.0);
    for (_, lines) in &mut children {
        connections += next(lines)?.parse::<usize>()?;
        strata_cpu += next(lines)?.parse::<f64>()?;
    }
    let turns = (each * processes) as f64;
    let rate = turns / start.elapsed().as_secs_f64();
    for (mut child, _) in children {
        end(&mut child)?;
    }
    let server_cpu = cpu::of_family(server)? - server_before;
    let a_turn = |seconds: f64| seconds * 1000.0 / turns;
    Ok(Run { rate, connections, strata_cpu: a_turn(strata_cpu), server_cpu: a_turn(server_cpu) })
}

fn next(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Result<String> {
    Ok(lines.next().context("a process ended early")??)
}

fn end(child: &mut Child) -> Result<()> {
    ensure!(child.wait()?.success(), "a process failed");
    Ok(())
}

/// One of the processes: prepares, says so, and appends when it is told to. Prints the number of its connections and its
/// processor time.
pub(crate) async fn append(address: &str, numbers: &[String]) -> Result<()> {
    let numbers: Vec<usize> = numbers.iter().map(|number| number.parse()).collect::<Result<_, _>>()?;
    let [writers, turns, series, first_user] = numbers[..] else { anyhow::bail!("four numbers are needed") };
    let postgres = Arc::new(PostgresStore::open(PostgresOptions::new(address.parse()?)).await?);
    let store: Arc<dyn Store> = Arc::clone(&postgres) as Arc<dyn Store>;
    let changes = append::prepare(writers, turns, series as u64)?;
    println!("ready");
    std::io::stdin().lock().read_line(&mut String::new())?;
    let before = cpu::own()?;
    append::apply_each(&[store], changes, first_user).await?;
    println!("{}\n{}", postgres.connections(), cpu::own()? - before);
    Ok(())
}
