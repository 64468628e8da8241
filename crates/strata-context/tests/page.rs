//! The example of `docs/context.md` stands here word for word, and runs.
#![allow(clippy::unwrap_used, reason = "a test's own functions")]

use strata_context::ContextManager;

#[rustfmt::skip]
async fn example() -> strata_core::Result<()> {
    // begin
    let manager = ContextManager::new("./data/context");
    manager.initialize().await?;
    let mut context = manager.load("user:agent:123").await?;   // empty if there is none
    context.facts.push("User speaks English".to_string());
    manager.save(&context).await?;
    // end
    Ok(())
}

#[tokio::test]
async fn the_example_of_the_page_runs() {
    let page = include_str!("../../../docs/context.md");
    let block = page.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let here = include_str!("page.rs").split("// begin\n").nth(1).unwrap().split("// end").next().unwrap();
    let words = |code: &'static str| code.split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(block), words(here));

    // The example names a folder below the current one.
    let folder = tempfile::tempdir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    example().await.unwrap();
    let saved = std::fs::read_to_string("data/context/user:agent:123.json").unwrap();
    assert!(saved.contains("User speaks English"), "{saved}");
}
