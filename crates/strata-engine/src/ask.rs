//! Asks a chat model a question whose answer is parsed, with one repair attempt.

use crate::learn::questions::repair;
use strata_core::error::Result;
use strata_core::ports::{ChatModel, ChatRequest, Spent};

/// Sends `request` and parses the answer with `read`. If the answer cannot be parsed, the model sees it once more
/// together with the error, and its second answer counts. Every call is added to `spent`, also a failed one.
pub(crate) async fn ask<T>(
    model: &dyn ChatModel,
    request: &ChatRequest,
    read: impl Fn(&str) -> Result<T>,
    spent: &mut Spent,
) -> Result<T> {
    let text = complete(model, request, spent).await?;
    let error = match read(&text) {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    tracing::debug!(model = model.model(), %error, "an answer could not be parsed; the model is asked to repair it");
    let text = complete(model, &repair(request, &text, error.message()), spent).await?;
    read(&text)
}

async fn complete(model: &dyn ChatModel, request: &ChatRequest, spent: &mut Spent) -> Result<String> {
    let answered = model.complete(request).await;
    let mut cost = answered.as_ref().map(|answer| answer.spent).unwrap_or_default();
    cost.calls = cost.calls.max(1);
    *spent += cost;
    Ok(answered?.text)
}
