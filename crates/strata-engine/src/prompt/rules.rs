//! The settings of prompts, with compiled patterns.

use std::sync::{Arc, LazyLock};

use strata_core::error::Result;

use super::{PromptSettings, Rules};

/// The settings of prompts, with compiled rules.
pub(crate) struct PromptRules {
    pub(crate) settings: PromptSettings,
    pub(crate) rules: Rules,
}

impl PromptRules {
    /// Compiles the patterns of the profiles; *invalid* if one is wrong.
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
