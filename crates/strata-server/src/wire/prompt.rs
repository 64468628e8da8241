//! A prompt and its budget.

use serde::Serialize;
use strata_engine::prompt::{Cut, Layer, Prompt};
use utoipa::ToSchema;

use super::names::Role;

/// A prompt, and how it came to its size.
#[derive(Debug, Serialize, ToSchema)]
pub struct PromptResponse {
    /// The text of a flat prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    prompt: Option<String>,
    /// The messages of a chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    messages: Option<Vec<PromptMessage>>,
    /// The tokens of the whole prompt.
    tokens: u32,
    /// The layers that are in it, in their order.
    layers: Vec<LayerResponse>,
    /// What the budget cut, in the order of cutting.
    cut: Vec<CutResponse>,
}

/// A message for a chat model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PromptMessage {
    /// Who says it.
    role: Role,
    /// What it says.
    content: String,
}

/// One layer's share of a prompt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LayerResponse {
    /// The layer, by the name of its tag.
    name: String,
    /// Its tokens.
    tokens: u32,
}

/// Something that the budget cut.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CutResponse {
    /// The layer, by the name of its tag.
    layer: String,
    /// How many of the things that `what` names were cut; 0 where they are not counted.
    count: usize,
    /// What of it was cut, and where it went.
    what: String,
}

impl From<&Prompt> for PromptResponse {
    fn from(made: &Prompt) -> Self {
        let messages = made.messages().map(|messages| {
            let message = |role: strata_core::Role, content: &str| PromptMessage {
                role: role.into(),
                content: content.to_owned(),
            };
            messages.iter().map(|said| message(said.role, &said.content)).collect()
        });
        let layer = |Layer { name, tokens }: &Layer| LayerResponse { name: name.clone(), tokens: *tokens };
        let cut = |Cut { layer, count, what }: &Cut| CutResponse {
            layer: layer.clone(),
            count: *count,
            what: what.clone(),
        };
        Self {
            prompt: made.text().map(str::to_owned),
            messages,
            tokens: made.tokens,
            layers: made.layers.iter().map(layer).collect(),
            cut: made.cut.iter().map(cut).collect(),
        }
    }
}
