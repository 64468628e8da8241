//! How prompts are made and contexts compacted.

use strata_core::context::CompactionLimits;
use strata_core::{Error, Result};
use strata_engine::prompt::{FilterSettings, Profile, PromptSettings, SummarySettings};

use super::layers::Layers;

/// The most characters of anything that a prompt or a summary may hold.
const MOST_CHARS: usize = 10_000_000;

/// The built-in profile, as a value of `prompt.profiles`.
const DIAGNOSTIC: &str = "diagnostic";

pub(super) fn prompts(layers: &Layers) -> Result<PromptSettings> {
    let chars = |key| layers.number(key, 1, MOST_CHARS);
    Ok(PromptSettings {
        max_tokens: layers.number("prompt.max_tokens", 1, 10_000_000)?,
        recent_exchanges: layers.number("prompt.recent_turn_count", 1, 1_000)?,
        fold_step: layers.number("prompt.fold_step", 1, 1_000)?,
        filter: FilterSettings {
            markers: layers.list("prompt.markers")?,
            max_code_chars: chars("prompt.max_code_chars")?,
            max_message_chars: chars("prompt.max_message_chars")?,
        },
        summary: SummarySettings {
            entry_chars: chars("prompt.summary_entry_chars")?,
            max_chars: chars("prompt.summary_max_chars")?,
        },
        profiles: profiles(layers)?,
        enrichment: layers.given("prompt.enrichment")?,
    })
}

fn profiles(layers: &Layers) -> Result<Vec<Profile>> {
    const KEY: &str = "prompt.profiles";
    if let Some(profiles) = layers.tables(KEY)? {
        return Ok(profiles);
    }
    layers.parsed(KEY, |text| match text {
        DIAGNOSTIC => Ok(vec![Profile::diagnostic()]),
        _ => Err(Error::invalid(
            "use `diagnostic`, or describe profiles as `[[prompt.profiles]]` in the configuration file",
        )),
    })
}

pub(super) fn compaction(layers: &Layers) -> Result<CompactionLimits> {
    let entries = |key| layers.number(key, 1, 1_000_000);
    let chars = |key| layers.number(key, 1, MOST_CHARS);
    let limits = CompactionLimits {
        max_recent_history: entries("context.max_recent_history")?,
        keep_recent_history: entries("context.keep_recent_history")?,
        max_tokens: layers.number("context.max_tokens", 1, 1_000_000_000)?,
        completed_task_seconds: layers.number("context.completed_task_secs", 0, 100 * 366 * 86_400)?,
        max_entry_chars: chars("context.entry_chars")?,
        max_short_entry_chars: chars("context.short_entry_chars")?,
        max_summary_chars: chars("context.summary_chars")?,
    };
    if limits.keep_recent_history > limits.max_recent_history {
        return Err(Error::invalid(
            "`context.keep_recent_history` is more than `context.max_recent_history`; lower it, or raise the other",
        ));
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::{Config, Flag, Sources};
    use super::*;

    fn loaded(text: &str, flags: Vec<Flag>, environment: &[(&str, &str)]) -> Result<Config> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let environment = environment.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Config::load(&Sources {
            flags,
            environment: environment.collect(),
            file: Some(file.path().to_owned()),
            data_dir: Some("/srv/strata".into()),
        })
    }

    #[test]
    fn the_defaults_are_those_of_the_core() {
        let config = loaded("", Vec::new(), &[]).unwrap();
        assert_eq!(config.prompts, PromptSettings::default());
        assert_eq!(config.server.compaction, CompactionLimits::default());
    }

    #[test]
    fn tables_variables_and_flags_are_one_setting() {
        let text = "[prompt]\nmax_tokens = 6000\nrecent_turn_count = 5\nmarkers = ['CHART', 'IMAGE']\n\
                    [context]\nmax_recent_history = 40\n";
        let flags = vec![Flag::new("prompt.fold_step", "4")];
        let environment =
            [("STRATA_PROMPT_RECENT_TURN_COUNT", "2"), ("STRATA_CONTEXT_KEEP_RECENT_HISTORY", "10")];
        let config = loaded(text, flags, &environment).unwrap();
        let PromptSettings { max_tokens, recent_exchanges, fold_step, filter, .. } = &config.prompts;
        assert_eq!((*max_tokens, *recent_exchanges, *fold_step), (6_000, 2, 4));
        assert_eq!(filter.markers, ["CHART", "IMAGE"]);
        let limits = &config.server.compaction;
        assert_eq!((limits.max_recent_history, limits.keep_recent_history), (40, 10));
        assert_eq!(config.origin("prompt.recent_turn_count"), "STRATA_PROMPT_RECENT_TURN_COUNT");
        let shown = |key| config.settings().iter().find(|setting| setting.key == key).unwrap().value.clone();
        assert_eq!(shown("prompt.markers"), "CHART,IMAGE");
    }

    #[test]
    fn the_documented_profile_is_read() {
        let page = include_str!("../../../../docs/prompt.md");
        let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let config = loaded(example, Vec::new(), &[]).unwrap();
        let names: Vec<_> = config.prompts.profiles.iter().map(|profile| profile.name.as_str()).collect();
        assert_eq!((config.prompts.max_tokens, names), (6_000, vec!["support"]));
        let shown = config.settings().iter().find(|setting| setting.key == "prompt.profiles").unwrap();
        assert_eq!(shown.value, "support");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |text: &str, expected: &str| {
            let error = loaded(text, Vec::new(), &[]).unwrap_err();
            assert!(error.message().contains(expected), "{error}");
        };
        refused("[prompt]\nmax_token = 5\n", "did you mean `prompt.max_tokens`?");
        refused("prompt = 5\n", "`prompt`");
        refused("[prompt]\nmax_tokens = 0\n", "from 1 to 10000000");
        refused("[prompt]\nprofiles = 'support'\n", "[[prompt.profiles]]");
        refused("[[prompt.profiles]]\nname = 'x'\n", "`field`");
        refused("[[prompt.profiles]]\nname = 'x'\nfield = []\ncolour = 1\n", "colour");
        refused("[context]\nkeep_recent_history = 90\n", "`context.max_recent_history`");
    }
}
