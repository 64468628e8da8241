//! `strata feedback`: files that a request forgot something.

use strata_core::metric::FeedbackKind;
use strata_server::wire::RequestResponse;

use super::ids::{self, IdText};
use super::{Context, JsonArgs, UserArgs, users};
use crate::failure::Outcome;
use crate::output::Output;

/// File that a request forgot something
///
/// The complaint stays with the request and counts in `strata report`. `strata explain` shows what the request found.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata feedback 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e \"it forgot my sister's name\""
)]
pub(crate) struct Args {
    /// The id of the request, from `strata search --json`, or from the header `X-Strata-Request-Id`
    #[arg(value_name = "REQUEST")]
    request: IdText,
    /// The complaint in your own words
    #[arg(value_name = "TEXT", default_value = "")]
    text: String,
    /// The kind of failure: `forgot`, or `meaning` if the forgotten item shares no words with the question
    #[arg(long, value_name = "KIND", default_value = "forgot")]
    kind: FeedbackKind,
    #[command(flatten)]
    user: UserArgs,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { request, text, kind, user, json: JsonArgs { json } } = args;
    let user = user.of(context);
    context.existing_store()?;
    let engine = context.engine_to_write().await?;
    users::warn_if_unknown(&engine, &user).await?;
    let request = ids::request(&engine, &user, &request).await?;
    let row = engine.reporting.complain(&user, request, kind, &text).await?;
    if json {
        output.json(&RequestResponse::new(&user, &row))?;
        return Ok(());
    }
    output.line(format_args!("filed; `strata explain {request}` shows what the request found"))?;
    Ok(())
}
