//! A chat in a few lines: `cargo run --example chat`. Without arguments memory replies alone; with the address and the name of a
//! model that model replies: `cargo run --example chat -- http://127.0.0.1:11434/v1 llama3.2`.

use strata::Memory;

#[tokio::main(flavor = "current_thread")]
async fn main() -> strata::Result<()> {
    let mut builder = Memory::builder("memory:").user("ada").session("trip");
    let mut arguments = std::env::args().skip(1);
    if let (Some(url), Some(model)) = (arguments.next(), arguments.next()) {
        builder = builder.model(url, model).instructions("You help Ada to plan journeys. Be brief.");
    }
    let memory = builder.open().await?;

    for message in
        ["I moved to Lisbon in March.", "I am allergic to peanuts.", "Where do I live?", "我住在哪里？"]
    {
        say(&format!("ada    › {message}\nstrata › "));
        // Pieces arrive as the model says them.
        let reply = memory.stream(message, &mut |piece| say(piece)).await?;
        say(&format!("\n         (recalled: {})\n", reply.recalled.len()));
    }
    memory.close().await
}

#[allow(clippy::print_stdout, reason = "an example is read in a terminal")]
fn say(text: &str) {
    print!("{text}");
}
