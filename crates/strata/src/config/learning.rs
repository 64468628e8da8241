//! How Strata learns, and which model does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use strata_core::ports::TokenCounter;
use strata_core::{Error, Result};
use strata_engine::learn::summarising::{SummaryPrompt, SummaryPrompts, SummarySettings};
use strata_engine::learn::window::WindowSettings;
use strata_engine::learn::{LearnInto, LearnSettings};
use strata_models::chat::{ChatOptions, OpenAiChat};

use super::layers::Layers;

/// How many jobs are worked on at once with a model: it is waited for, not worked.
const MODEL_WORKERS: usize = 4;

/// How long each step of learning waits for a model where nobody says.
pub(super) const DEFAULT_TIMEOUT_SECS: u64 = 60;

/// The model of document 1.
pub(super) const DEFAULT_MODEL: &str = "gpt-4.1-mini";

/// The most characters of instructions.
const MOST_PROMPT_BYTES: usize = 1024 * 1024;

/// What learns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learning {
    /// The rules inside the binary, or a model.
    pub model: LearnModel,
    /// How many jobs are worked on at once.
    pub workers: usize,
    key: Option<Key>,
    timeout: Duration,
}

/// An API key, which nobody prints by accident.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    pub(super) fn new(key: String) -> Self {
        Self(key)
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The rules inside the binary, or a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LearnModel {
    /// The rules inside the binary.
    Builtin,
    /// A model behind an OpenAI-compatible endpoint.
    Remote {
        /// The endpoint.
        url: String,
        /// The model's name there.
        model: String,
    },
}

impl Learning {
    pub(super) fn load(layers: &Layers) -> Result<Self> {
        let base = match layers.given("openai_base_url")? {
            Some(_) => Some(layers.parsed("openai_base_url", address)?),
            None => None,
        };
        let named = layers.given("memory_model")?.unwrap_or_else(|| DEFAULT_MODEL.to_owned());
        let model = layers.parsed("learn.model", |text| match (text, &base, text.rsplit_once('#')) {
            ("builtin", ..) | ("auto", None, _) => Ok(LearnModel::Builtin),
            ("auto", Some(url), _) => Ok(LearnModel::Remote { url: url.clone(), model: named.clone() }),
            (_, _, Some((url, model))) if !model.is_empty() => {
                Ok(LearnModel::Remote { url: address(url)?, model: model.to_owned() })
            }
            _ => Err(Error::invalid("use `auto`, `builtin` or `URL#MODEL`")),
        })?;
        let workers = layers.parsed("learn.workers", |text| match (text, text.parse()) {
            ("auto", _) if model == LearnModel::Builtin => Ok(1),
            ("auto", _) => Ok(MODEL_WORKERS),
            (_, Ok(workers)) if (1..=64).contains(&workers) => Ok(workers),
            _ => Err(Error::invalid("use `auto` or a number from 1 to 64")),
        })?;
        Ok(Self {
            model,
            workers,
            key: layers.given("openai_api_key")?.map(Key),
            timeout: Duration::from_secs(layers.number("learn.timeout_secs", 1, 3_600)?),
        })
    }

    /// The client of the configured model; none where the rules learn.
    pub fn chat_model(&self, counter: Arc<dyn TokenCounter>) -> Result<Option<OpenAiChat>> {
        let LearnModel::Remote { url, model } = &self.model else { return Ok(None) };
        let key = self.key.clone().map(|Key(key)| key);
        let options = ChatOptions { key, timeout: self.timeout, ..ChatOptions::new(counter) };
        OpenAiChat::new(url, model, options).map(Some)
    }
}

/// An endpoint's address.
fn address(url: &str) -> Result<String> {
    match url.starts_with("http://") || url.starts_with("https://") {
        true => Ok(url.to_owned()),
        false => Err(Error::invalid("use an address that begins with `https://` or `http://`")),
    }
}

pub(super) fn settings(layers: &Layers) -> Result<LearnSettings> {
    let few = |key| layers.number(key, 1_u32, 1_000);
    let delay_secs = match layers.given("learn.delay_secs")? {
        Some(_) => Some(layers.number("learn.delay_secs", 0, 86_400)?),
        None => None,
    };
    let settings = LearnSettings {
        enabled: layers.number("learn.enabled", false, true)?,
        into: layers.parsed("learn.into", |text| match text {
            "user" => Ok(LearnInto::User),
            "session" => Ok(LearnInto::Session),
            _ => Err(Error::invalid("use `user` or `session`")),
        })?,
        max_entries: layers.number("max_entries", 0, u32::MAX)?,
        prune_after_days: layers.number("learn.prune_after_days", 0, 36_500)?,
        batch_turns: few("learn.batch_turns")?,
        model_batch: few("learn.model_batch")?,
        delay_secs,
        model_backlog: layers.number("learn.model_backlog", 0, u64::MAX)?,
        max_message_chars: layers.number("learn.max_message_chars", 100, 1_000_000)?,
        neighbours: layers.number("learn.neighbours", 1, 100)?,
        max_attempts: layers.number("learn.max_attempts", 1, 100)?,
        lease_secs: layers.number("learn.lease_secs", 1, 86_400)?,
        retry_secs: layers.number("learn.retry_secs", 1, 3_600)?,
        jobs_kept_days: layers.number("learn.jobs_kept_days", 0, 36_500)?,
        extract_prompt: instructions(layers, "learn.extract_prompt")?,
        reconcile_prompt: instructions(layers, "learn.reconcile_prompt")?,
        summaries: summaries(layers)?,
    };
    Ok(settings)
}

fn summaries(layers: &Layers) -> Result<SummarySettings> {
    let mut prompts = SummaryPrompts::default();
    for prompt in SummaryPrompt::ALL {
        if let Some(text) = instructions(layers, &format!("summary_prompt.{}", prompt.as_str()))? {
            prompts = prompts.with(prompt, text);
        }
    }
    Ok(SummarySettings {
        enable_summarization: layers.number("enable_summarization", false, true)?,
        window: WindowSettings {
            memory_rolling_window_size: layers.number("memory_rolling_window_size", 2, 1_000)?,
            memory_summarize_after_seq: layers.number("memory_summarize_after_seq", 0, u64::MAX)?,
            summarise_every_user_turns: layers.number("summarise_every_user_turns", 0, 500)?,
        },
        prompts,
    })
}

/// Instructions as they are, or from the file that `file:PATH` names.
fn instructions(layers: &Layers, key: &str) -> Result<Option<String>> {
    if layers.given(key)?.is_none() {
        return Ok(None);
    }
    layers.parsed(key, |text| {
        let text = match text.strip_prefix("file:") {
            None => text.to_owned(),
            Some(path) => std::fs::read_to_string(Path::new(path)).map_err(|error| {
                Error::invalid(format!("the file cannot be read ({error}); name one with `file:PATH`"))
            })?,
        };
        if text.trim().is_empty() || text.len() > MOST_PROMPT_BYTES {
            return Err(Error::invalid(format!(
                "use instructions of 1 to {MOST_PROMPT_BYTES} bytes, or leave the setting out for the built-in ones"
            )));
        }
        Ok(text)
    })
    .map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Flag, Sources};
    use super::*;

    fn loaded(flags: &[(&str, &str)]) -> Result<Config> {
        Config::load(&Sources {
            flags: flags.iter().map(|(key, value)| Flag::new(key, *value)).collect(),
            environment: Vec::new(),
            file: None,
            data_dir: Some("/srv/strata".into()),
        })
    }

    fn remote(url: &str, model: &str) -> LearnModel {
        LearnModel::Remote { url: url.to_owned(), model: model.to_owned() }
    }

    #[test]
    fn the_defaults_are_those_of_the_core() {
        let config = loaded(&[]).unwrap();
        assert_eq!(config.engine.learn, LearnSettings::default());
        assert_eq!((&config.learning.model, config.learning.workers), (&LearnModel::Builtin, 1));
    }

    #[test]
    fn a_model_is_named_in_two_ways() {
        let check = |flags: &[(&str, &str)], expected: LearnModel| {
            assert_eq!(loaded(flags).unwrap().learning.model, expected, "{flags:?}");
        };
        let base = ("openai_base_url", "https://host/v1");
        check(&[base], remote("https://host/v1", DEFAULT_MODEL));
        check(&[base, ("memory_model", "mini")], remote("https://host/v1", "mini"));
        check(&[base, ("learn.model", "builtin")], LearnModel::Builtin);
        check(&[base, ("learn.model", "http://127.0.0.1:1#own")], remote("http://127.0.0.1:1", "own"));
        assert_eq!(loaded(&[base]).unwrap().learning.workers, MODEL_WORKERS);
        assert_eq!(loaded(&[base, ("learn.workers", "2")]).unwrap().learning.workers, 2);
    }

    #[test]
    fn a_key_is_never_shown() {
        let config = loaded(&[("openai_api_key", "sk-secret")]).unwrap();
        let shown = config.settings().iter().find(|setting| setting.key == "openai_api_key").unwrap();
        assert_eq!(shown.value, "(hidden)");
        assert!(!format!("{config:?}").contains("sk-secret"));
    }

    #[test]
    fn instructions_come_from_a_file_or_as_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("extract.txt");
        std::fs::write(&path, "only places").unwrap();
        let named = format!("file:{}", path.display());
        let config =
            loaded(&[("learn.extract_prompt", &named), ("learn.reconcile_prompt", "be strict")]).unwrap();
        assert_eq!(config.engine.learn.extract_prompt.as_deref(), Some("only places"));
        assert_eq!(config.engine.learn.reconcile_prompt.as_deref(), Some("be strict"));
    }

    #[test]
    fn summaries_have_the_names_of_the_documents() {
        let flags = [
            ("enable_summarization", "false"),
            ("memory_rolling_window_size", "6"),
            ("memory_summarize_after_seq", "0"),
            ("summarise_every_user_turns", "4"),
            ("summary_prompt.brief", "short"),
        ];
        let summaries = loaded(&flags).unwrap().engine.learn.summaries;
        assert!(!summaries.enable_summarization);
        let window = WindowSettings {
            memory_rolling_window_size: 6,
            memory_summarize_after_seq: 0,
            summarise_every_user_turns: 4,
        };
        assert_eq!(summaries.window, window);
        assert_eq!(summaries.prompts, SummaryPrompts::default().with(SummaryPrompt::Brief, "short"));
        assert!(loaded(&[("memory_rolling_window_size", "1")]).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |key: &str, value: &str, expected: &str| {
            let error = loaded(&[(key, value)]).unwrap_err();
            assert!(error.message().contains(expected), "{error}");
        };
        refused("learn.model", "gpt", "`URL#MODEL`");
        refused("learn.model", "ftp://host#m", "https://");
        refused("openai_base_url", "host", "https://");
        refused("learn.workers", "0", "from 1 to 64");
        refused("learn.into", "planet", "`user` or `session`");
        refused("learn.extract_prompt", "file:/no/such/file", "cannot be read");
        refused("learn.extract_prompt", " ", "1 to 1048576 bytes");
        refused("learn.enabled", "yes", "true");
        refused("learn.delay_secs", "-1", "from 0");
    }
}
