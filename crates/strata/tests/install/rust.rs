//! The Rust of `docs/chat.md` and `docs/prompt.md` is compiled: it stands here, word for word, between two marks.

use strata::prompt::PromptFormat;
use strata::{NewMessage, Role};
use strata_core::{SessionId, UserId};
use strata_engine::prompt::PromptSettings;
use strata_engine::{Engine, PromptRequest};

/// The block of `docs/chat.md`. It would ask a model elsewhere, so it is not run; `tests/memory.rs` runs every method.
#[allow(dead_code, unused_variables, reason = "compiled and not run")]
#[rustfmt::skip]
async fn chat(key: &str) -> strata::Result<()> {
    // begin: docs/chat.md
    let memory = strata::Memory::builder("notes.db")      // a path, `sqlite:PATH` or `memory:`
        .model("https://api.openai.com/v1", "gpt-4.1-mini")
        .key(key)
        .open()
        .await?;
    let ada = memory.user("ada")?.session("trip")?;        // cheap; shares the file

    let reply = ada.chat("Where do I live?").await?;       // `stream` returns it piece by piece, `chat_until` can be stopped
    let found = ada.search("peanuts").await?;
    ada.add("Ada prefers trains to planes").await?;
    ada.record([NewMessage::new(Role::User, "said elsewhere")]).await?;
    let prompt = ada.prompt("Where do I live?", PromptFormat::Chat).await?;   // for a program that calls its model itself
    for memory in ada.memories().await? {
        ada.forget(memory.id).await?;
    }
    memory.close().await?;                                 // runs the waiting learning jobs, then closes
    // end
    Ok(())
}

/// The block of `docs/prompt.md`.
#[allow(dead_code, clippy::print_stdout, reason = "compiled and not run")]
#[rustfmt::skip]
async fn prompt(engine: Engine, user: UserId, session: SessionId) -> strata_core::Result<()> {
    // begin: docs/prompt.md
    let engine = engine.with_prompts(PromptSettings { max_tokens: 6_000, ..PromptSettings::default() })?;
    let prompted = engine.prompting.prompt(&user, &PromptRequest::new(session, "10.1.1.47 為什麼溫度波動？")).await?;
    println!("{}", prompted.prompt.text().unwrap_or_default());
    // end
    Ok(())
}

#[test]
fn the_rust_of_the_pages_is_compiled() {
    let here = include_str!("rust.rs");
    for page in ["docs/chat.md", "docs/prompt.md"] {
        let compiled = here.split(&format!("// begin: {page}\n")).nth(1).unwrap();
        let compiled = compiled.split("// end").next().unwrap();
        let text = std::fs::read_to_string(super::root().join(page)).unwrap();
        let blocks: Vec<&str> =
            text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert_eq!(blocks.len(), 1, "{page}");
        assert_eq!(words(blocks[0]), words(compiled), "{page}");
    }
}

fn words(code: &str) -> Vec<&str> {
    code.split_whitespace().collect()
}
