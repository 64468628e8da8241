//! Remembers statements, changes its mind, and says what it believes: `cargo run --example remember`.

use strata::Memory;

#[tokio::main(flavor = "current_thread")]
async fn main() -> strata::Result<()> {
    // A path instead of `memory:` keeps everything in that file.
    let memory = Memory::open("memory:").await?.user("ada")?;
    let allergy = memory.add("Ada is allergic to peanuts").await?;
    memory.add("Ada prefers trains to planes").await?;

    for found in memory.search("what food must Ada avoid?").await? {
        say(&format!("{:.2}  {}", found.score, found.item.content()));
    }

    memory.forget(allergy.id).await?;
    for believed in memory.memories().await? {
        say(&format!("still believed: {}", believed.content));
    }
    memory.close().await
}

#[allow(clippy::print_stdout, reason = "an example is read in a terminal")]
fn say(line: &str) {
    println!("{line}");
}
