//! A prompt and its budget.

use strata_core::ports::ChatMessage;
use strata_engine::prompt::{Cut, Layer, Prompt};

use super::names::Role;

response! {
    /// A prompt, and how its size came about.
    pub PromptResponse from (made: Prompt) {
        /// The text of a flat prompt.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        prompt: Option<String> = made.text().map(str::to_owned),
        /// The messages of a chat.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        messages: Option<Vec<PromptMessage>> =
            made.messages().map(|messages| messages.iter().map(PromptMessage::from).collect()),
        /// The tokens of the whole prompt.
        tokens: u32 = made.tokens,
        /// The layers in the prompt, in their order.
        layers: Vec<LayerResponse> = made.layers.iter().map(LayerResponse::from).collect(),
        /// The parts that the budget cut, in the order of cutting.
        cut: Vec<CutResponse> = made.cut.iter().map(CutResponse::from).collect(),
    }
}

response! {
    /// A message for a chat model.
    pub(crate) PromptMessage from (message: ChatMessage) {
        /// Who says it.
        role: Role = message.role.into(),
        /// The text.
        content: String = message.content.clone(),
    }
}

response! {
    /// One layer's share of a prompt.
    pub(crate) LayerResponse from (layer: Layer) {
        /// The layer, by the name of its tag.
        name: String = layer.name.clone(),
        /// Its tokens.
        tokens: u32 = layer.tokens,
    }
}

response! {
    /// A part that the budget cut.
    pub(crate) CutResponse from (cut: Cut) {
        /// The layer, by the name of its tag.
        layer: String = cut.layer.clone(),
        /// How many of the things named by `what` were cut; 0 if they are not counted.
        count: usize = cut.count,
        /// The kind of the part, and whether it was moved elsewhere.
        what: String = cut.what.clone(),
    }
}
