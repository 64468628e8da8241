//! Learning: how many messages per second the built-in rules read and reconcile on one core, how much learning slows down
//! concurrent recording, and the cost of a model per turn.

mod chat;
mod model;
mod recording;

use std::time::Instant;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use strata_core::{Memory, MemoryId, MemoryKind, TurnId};
use strata_engine::learn::Said;
use strata_engine::learn::rules as built_in;
use uuid::Uuid;

use crate::Bench;
use crate::corpus::{Corpus, Random};
use crate::report::{Report, Target, median};

/// Messages with a statement to remember. The other messages come from the corpus and state nothing.
const STATED: [&str; 12] = [
    "By the way, I moved to Lisbon last month and started a new job at Siemens.",
    "I love hiking, photography and strong coffee, but I can't stand crowded beaches.",
    "Remind me to send the invoice to the accountant before Friday.",
    "My sister Ana lives in Porto with her two cats, and my brother is a carpenter.",
    "Actually my rent is now 950 euros, not 900.",
    "We decided to use Postgres for the billing service instead of MySQL.",
    "我上个月搬到苏州了，现在在一家设计公司上班。",
    "我喜欢喝咖啡，不喜欢喝茶。",
    "提醒我明天给房东交房租。",
    "我妹妹对花生过敏，她今年二十三岁。",
    "其实我生日是5月4号，不是5月3号。",
    "会议从周三改到周五上午了。",
];
/// One message in this many has a statement.
const EVERY: usize = 4;
const ROUNDS: usize = 5;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    rules(bench, report)?;
    recording::measure(bench, report)?;
    model::measure(bench, report)
}

fn rules(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let count = bench.size(20_000, 500);
    let (corpus, mut random) = (Corpus::new(), Random::new(5));
    let messages: Vec<String> = (0..count)
        .map(|place| {
            let stated = STATED[place / EVERY % STATED.len()];
            if place % EVERY == 0 { stated.to_owned() } else { corpus.turn(&mut random) }
        })
        .collect();
    let at: Timestamp = "2024-05-08T12:00:00Z".parse()?;
    let said = |text| Said { turn: TurnId(Uuid::nil()), name: None, text, at };
    let known: Vec<Memory> =
        STATED.iter().flat_map(|text| built_in::extract(&said(text))).map(memory(at)).collect();
    let (mut read, mut reconciled) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let stated: Vec<_> = messages.iter().map(|text| built_in::extract(&said(text))).collect();
        read.push(count as f64 / start.elapsed().as_secs_f64());
        let start = Instant::now();
        let mut plans = 0;
        for statements in stated.iter().filter(|statements| !statements.is_empty()) {
            built_in::reconcile(statements, &known)
                .check(known.len(), statements.len())
                .map_err(anyhow::Error::msg)?;
            plans += 1;
        }
        reconciled.push(plans as f64 / start.elapsed().as_secs_f64());
    }
    report.add("messages read", median(&mut read), "/s", Some(Target::AtLeast(5_000.0)));
    let name = format!("messages reconciled with {} memories", known.len());
    report.add(name, median(&mut reconciled), "/s", None);
    Ok(())
}

fn memory(at: Timestamp) -> impl FnMut(strata_engine::learn::Statement) -> Memory {
    let mut number = 0;
    move |statement| {
        number += 1;
        Memory {
            id: MemoryId(Uuid::from_u128(number)),
            session: None,
            agent: None,
            kind: MemoryKind::Fact,
            content: statement.content,
            confidence: statement.confidence,
            valid_from: at - SignedDuration::from_hours(24),
            valid_to: None,
            recorded_at: at,
            replaced_by: None,
            source_turns: Vec::new(),
            source_summary: None,
            metadata: Default::default(),
            notes: Default::default(),
            hidden: None,
        }
    }
}
