//! Settings of prompts with their patterns compiled.

use std::sync::{Arc, LazyLock};

use strata_core::error::Result;

use super::{PromptSettings, Rules};

/// Settings of prompts with their rules made ready.
pub struct PromptRules {
    pub(crate) settings: PromptSettings,
    pub(crate) rules: Rules,
}

/// Makes prompts, and the block of memory that goes into a chat.
#[derive(Clone)]
pub struct Prompting {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) tokens: Arc<dyn TokenCounter>,
    pub(crate) limits: Limits,
    pub(crate) prompts: Arc<PromptRules>,
    pub(crate) recall: Recall,
    pub(crate) recording: Recording,
}

impl PromptRules {
    /// Compiles the patterns of the settings' profiles; *invalid* where one cannot be right.
    pub(crate) fn new(settings: PromptSettings) -> Result<Self> {
        let rules = Rules::new(&settings.profiles)?;
        Ok(Self { settings, rules })
    }

    /// The defaults, compiled once for all engines.
    pub(crate) fn built_in() -> Arc<Self> {
        static BUILT_IN: LazyLock<Arc<PromptRules>> = LazyLock::new(|| {
            Arc::new(PromptRules { settings: PromptSettings::default(), rules: Rules::built_in().clone() })
        });
        Arc::clone(&BUILT_IN)
    }
}
