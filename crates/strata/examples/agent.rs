//! Memory for an agent that calls its model itself: it asks for the messages to send, and records what was said and what its
//! tools gave. `cargo run --example agent` needs no model: a function stands in for it.

use strata::NewMessage;
use strata::prompt::{PromptBody, PromptFormat};
use strata::{Memory, Role};

#[tokio::main(flavor = "current_thread")]
async fn main() -> strata::Result<()> {
    let ada = Memory::open("memory:").await?.user("ada")?;
    for (session, question) in
        [("monday", "Remind me to buy a helmet."), ("tuesday", "What did I want to buy?")]
    {
        let memory = ada.session(session)?;
        // The model is shown the session as far as it fits, and what is remembered of all others.
        let prompt = memory.prompt(question, PromptFormat::Chat).await?;
        let PromptBody::Messages(messages) = prompt.body else { continue };
        let shown = messages.last().map(|message| message.content.clone()).unwrap_or_default();
        say(&format!("--- {} messages, {} tokens; the last one:\n{shown}", messages.len(), prompt.tokens));

        let called = NewMessage::new(Role::Tool, "the shop in Rua Augusta is open until 19:00");
        let reply = NewMessage::new(Role::Assistant, your_model(&shown));
        memory.record([NewMessage::new(Role::User, question), called, reply]).await?;
    }
    for learned in ada.memories().await? {
        say(&format!("--- learned: {}", learned.content));
    }
    ada.close().await
}

/// Where an agent would call its model.
fn your_model(shown: &str) -> &'static str {
    if shown.contains("<strata_memory>") { "A helmet; the shop is open until seven." } else { "I will." }
}

#[allow(clippy::print_stdout, reason = "an example is read in a terminal")]
fn say(line: &str) {
    println!("{line}");
}
