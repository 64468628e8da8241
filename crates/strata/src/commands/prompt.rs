//! `strata prompt`: builds the prompt for a question.

use strata_core::SessionId;
use strata_engine::PromptRequest;
use strata_engine::prompt::{PromptBody, PromptFormat};
use strata_server::wire::PromptResponse;

use super::{Context, JsonArgs, UserArgs, text_or_stdin};
use crate::failure::Outcome;
use crate::output::{Output, note};

/// Build the prompt for a question
///
/// The prompt holds the request, the known facts, a summary of the older conversation and the recent turns; in the format
/// `chat` also the recalled items.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata prompt \"why does it fluctuate?\" --session pump --format chat --max-tokens 4000"
)]
pub(crate) struct Args {
    /// The question; `-` reads it from stdin
    #[arg(value_name = "QUESTION")]
    question: String,
    /// The session of the question
    #[arg(long, value_name = "SESSION")]
    session: SessionId,
    #[command(flatten)]
    user: UserArgs,
    /// The format: `flat` for one text, `chat` for a list of messages
    #[arg(long, value_name = "FORMAT", default_value = "flat")]
    format: PromptFormat,
    /// The maximum number of tokens beside the request, which is never cut [default: the setting `prompt.max_tokens`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    max_tokens: Option<u32>,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { question, session, user, format, max_tokens, json: JsonArgs { json } } = args;
    let user = user.of(context);
    let question = text_or_stdin(question, context.config.engine.limits.max_turn_bytes)?;
    let engine = context.engine_for(&user).await?;
    let request = PromptRequest { format, max_tokens, ..PromptRequest::new(session, question) };
    let prompt = engine.prompting.prompt(&user, &request).await?.prompt;
    let most = max_tokens.unwrap_or(context.config.prompts.max_tokens);
    if prompt.tokens > most {
        note(format_args!(
            "the prompt has {} tokens, more than {most}: the request is never cut, and the budget counts without it",
            prompt.tokens
        ));
    }
    if json {
        output.json(&PromptResponse::from(&prompt))?;
        return Ok(());
    }
    print_body(&prompt.body, output)?;
    for cut in &prompt.cut {
        note(format_args!("cut from {}: {}", cut.layer, cut.what));
    }
    note(format_args!("{} tokens", prompt.tokens));
    Ok(())
}

fn print_body(body: &PromptBody, output: &mut Output) -> Outcome {
    match body {
        PromptBody::Text(text) => output.line(text)?,
        PromptBody::Messages(messages) => {
            for message in messages {
                output.line(format_args!("{}:", message.role.as_str()))?;
                output.text(&message.content)?;
            }
        }
    }
    Ok(())
}
