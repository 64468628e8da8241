//! Prompts with the summary that the reader chooses: the time to build one in a long session, and its number of tokens compared with the raw conversation.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use strata_core::ports::TokenCounter;
use strata_core::turn::NewMessage;
use strata_core::{Role, SessionId, UserId};
use strata_engine::Engine;
use strata_engine::PromptRequest;
use strata_models::Tokenizer;
use strata_models::onnx::OnnxReader;

use crate::corpus::{Corpus, Random};
use crate::report::{Report, Target, median};
use crate::{Bench, engine, fill};

/// The number of messages per call.
const BATCH: usize = 500;
const ROUNDS: usize = 30;

/// Turns of the log-filled conversation, each with the maximum number of tokens of its prompt.
const BUDGETS: [(usize, f64); 4] = [(1, 2_000.0), (5, 6_000.0), (10, 8_000.0), (500, 8_000.0)];

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let (small, large) = (bench.size(10_000, 500), bench.size(100_000, 1_000));
    let user = fill::measured_user()?;
    let path = bench.stores.fresh("prompt");
    let (short, long, tokens) = bench.runtime.block_on(async {
        let store = fill::open(&path).await?;
        let reader = OnnxReader::of_program("strata-reader", strata_weights::READER)?;
        let engine = engine::over(&store).with_reader(Arc::new(reader));
        let short = time(&engine, &user, "small", small).await?;
        let long = time(&engine, &user, "large", large).await?;
        let tokens = tokens(&engine, &user).await?;
        store.close().await?;
        anyhow::Ok((short, long, tokens))
    })?;
    let name = format!("a prompt for a session of {small} turns");
    report.add(name, short, "ms", Some(Target::AtMost(5.0)));
    report.add(format!("{large} turns against {small}"), long / short, "x", Some(Target::AtMost(1.2)));
    for ((turn, most), (prompt, raw)) in BUDGETS.into_iter().zip(tokens) {
        report.add(format!("turn {turn}, layered"), prompt, "tokens", Some(Target::AtMost(most)));
        report.add(format!("turn {turn}, everything raw"), raw, "tokens", None);
    }
    Ok(())
}

/// The median time of a prompt for a session of this many turns.
async fn time(engine: &Engine, user: &UserId, name: &str, turns: usize) -> Result<f64> {
    let session = SessionId::new(name)?;
    let (corpus, mut random) = (Corpus::new(), Random::new(3));
    for start in (0..turns).step_by(BATCH) {
        let messages = (start..turns.min(start + BATCH)).map(|place| {
            let role = if place % 2 == 0 { Role::User } else { Role::Assistant };
            NewMessage::new(role, corpus.turn(&mut random))
        });
        engine.recording.record(user, &session, messages.collect(), None).await?;
    }
    // The summary waits for the reader, which judges the last few hundred turns of a history.
    engine.learning.read_state(user, &session).await?;
    // Indexing continues after the recording and would compete with the measurement for the processor.
    fill::wait_for_index(engine.store()).await?;
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let request = PromptRequest::new(session.clone(), format!("what came of number {round}?"));
        let start = Instant::now();
        engine.prompting.prompt(user, &request).await?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(&mut times))
}

/// The tokens of the prompt at each of the turns, and of the whole conversation until then.
async fn tokens(engine: &Engine, user: &UserId) -> Result<Vec<(f64, f64)>> {
    let session = SessionId::new("logs")?;
    let tokenizer: Arc<dyn TokenCounter> = Arc::new(Tokenizer::default());
    let (mut raw, mut figures) = (0.0, Vec::new());
    for turn in 1..=500 {
        let (question, reply) = log_filled(turn);
        let asked =
            engine.prompting.prompt(user, &PromptRequest::new(session.clone(), question.as_str())).await?;
        if BUDGETS.iter().any(|(wanted, _)| *wanted == turn) {
            let all = raw + f64::from(tokenizer.count(&question));
            figures.push((f64::from(asked.prompt.tokens), all));
        }
        raw += f64::from(tokenizer.count(&question)) + f64::from(tokenizer.count(&reply));
        let messages = vec![NewMessage::new(Role::User, question), NewMessage::new(Role::Assistant, reply)];
        engine.recording.record(user, &session, messages, None).await?;
        engine.learning.read_state(user, &session).await?;
    }
    Ok(figures)
}

/// An exchange of the kind that the layered-prompt design describes: a question, and a reply of about 5,000 characters, most of
/// it a raw log.
fn log_filled(turn: usize) -> (String, String) {
    let mut reply = format!("Downloaded InstrumentDebug_{turn}.log.\n\n");
    for line in 0..60 {
        let second = line % 60;
        reply.push_str(&format!(
            "[2026-02-19 23:24:{second:02}] channel {line} set 37.00 read 37.{turn:02} power 45 % state running\n"
        ));
    }
    reply.push_str("\n<!-- PLOTLY_CHART:{\"points\":[1,2,3,4]} -->\n");
    reply.push_str(&format!("\nFinding: channel {turn} oscillates by 0.15 degrees, within the normal band."));
    (format!("10.1.1.47 plot the temperature of channel {turn}"), reply)
}
