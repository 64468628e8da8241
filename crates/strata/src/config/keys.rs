//! The known settings: one table, from which defaults, `strata config` and the suggestions come.

use strata_engine::Settings;
use strata_engine::prompt::PromptSettings;
use strata_models::Tokenizer;

/// A setting that Strata knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Its name in `strata.toml`, where `table.key` is a key of a table; `STRATA_` and the name in capitals, with `_` for
    /// the dot, in the environment.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
}

const fn key(name: &'static str, about: &'static str) -> Key {
    Key { name, about }
}

/// All settings. Names that the specification's tables have are kept.
pub const KEYS: &[Key] = &[
    key("store", "where things are kept: `sqlite:PATH` or `memory:`"),
    key("data_dir", "the directory of `strata.db` where `store` is not set"),
    key("listen", "where the server listens"),
    key(
        "allowed_hosts",
        "names under which the server is called, beside those of loopback, with commas between",
    ),
    key(
        "cors_origins",
        "web pages that may call the server, as `https://app.example.com`, with commas between",
    ),
    key("max_turn_bytes", "the most bytes of one turn or memory"),
    key("max_turns_per_call", "the most turns in one call"),
    key("max_body_bytes", "the most bytes of a request's body"),
    key("request_timeout_secs", "how long a request may take"),
    key("body_timeout_secs", "how long a client may take to send a body"),
    key("header_timeout_secs", "how long a client may take to send a request's head"),
    key("drain_timeout_secs", "how long requests may take to finish when the server stops"),
    key("max_concurrent_requests", "the most requests worked on at once"),
    key("max_connections", "the most open connections"),
    key("upstream", "the OpenAI-compatible server that chats are passed on to"),
    key("upstream_key", "the upstream's API key, instead of the one that clients send"),
    key("upstream_model", "the model that `strata chat` asks for there"),
    key("upstream_timeout_secs", "how long the upstream may be silent"),
    key("memory_deadline_ms", "how long a chat waits for memory, in milliseconds"),
    key("proxy.compact_tokens", "a chat with more tokens has its older messages summarised; 0 leaves them"),
    key("proxy.max_body_bytes", "the most bytes of a chat's body"),
    key("default_top_k", "how many items a search gives where nobody says"),
    key("score_threshold", "items less relevant than this are left out, from 0 to 1"),
    key("recency_weight", "how much being recent counts, from 0 to 1"),
    key("mmr_lambda", "how much relevance counts against diversity, from 0 to 1"),
    key("min_fts_hits", "with fewer full-text hits in a session, all sessions are searched"),
    key("max_context_tokens", "the most tokens of what is recalled together"),
    key("max_context_turns", "the most turns that are recalled together"),
    key("max_item_chars", "the most characters of one recalled item"),
    key("min_similarity", "the least trigram similarity of a word, from 0 to 1"),
    key("min_query_len", "the shortest question that goes to the trigrams, in characters"),
    key("index_max_items", "up to so many changes a user is ranked in memory, beyond by the store"),
    key("index_bytes", "the most bytes of all users' indexes in memory"),
    key("prompt.max_tokens", "the most tokens of a prompt, the question aside"),
    key("prompt.recent_turn_count", "how many exchanges stay in a prompt as they were said"),
    key("prompt.fold_step", "after how many messages the stored summary is moved on"),
    key("prompt.markers", "names of interface markers that are left out of prompts, with commas between"),
    key("prompt.max_code_chars", "code blocks with more characters become a note"),
    key("prompt.max_message_chars", "the most characters of a message in a prompt"),
    key("prompt.summary_entry_chars", "the most characters of a message in the rolling summary"),
    key("prompt.summary_max_chars", "the most characters of the rolling summary"),
    key("prompt.enrichment", "what a request that names a device becomes, with `{question}` in it"),
    key("prompt.profiles", "what is read out of replies: tables of the file, as in docs/prompt.md"),
    key("context.max_recent_history", "a context's history with more entries is compacted"),
    key("context.keep_recent_history", "so many of the newest entries stay then"),
    key("context.max_tokens", "a context's history with more tokens loses its older half"),
    key("context.completed_task_secs", "how long a completed task stays in a context"),
    key("context.entry_chars", "the most characters of an entry in a context's summary"),
    key("context.short_entry_chars", "the most characters of an older entry when there is little room"),
    key("context.summary_chars", "the most characters of the summary that compaction writes"),
    key("openai_base_url", "the OpenAI-compatible endpoint that learning calls; without one, rules learn"),
    key("openai_api_key", "the API key of that endpoint"),
    key("memory_model", "the model that learning asks for there"),
    key("max_entries", "the most entries of a session that recall sees; 0 sets no limit"),
    key("learn.enabled", "whether recorded turns are learned from: `true` or `false`"),
    key("learn.model", "`auto`, `builtin` or `URL#MODEL`; `auto` is the model above where there is one"),
    key("learn.workers", "how many jobs are worked on at once; `auto` is 1, or 4 with a model"),
    key("learn.timeout_secs", "how long a model may take for one answer, its repetitions included"),
    key("learn.into", "where learned memories belong: `user` or `session`"),
    key("learn.batch_turns", "the most turns that one job reads"),
    key("learn.model_batch", "how many of the user's turns share a call of a model"),
    key("learn.delay_secs", "how long a turn waits for others to share a job with: 0, or 180 with a model"),
    key("learn.model_backlog", "turns further back than this are left to the rules, not to a model"),
    key("learn.max_message_chars", "the most characters of a message that a model is shown"),
    key("learn.neighbours", "how many known memories are compared with each new statement"),
    key("learn.max_attempts", "how often a job is tried before it is given up"),
    key("learn.lease_secs", "how long a worker may hold a job before another takes it over"),
    key("learn.retry_secs", "the first pause after a failure; it doubles with each"),
    key("learn.jobs_kept_days", "for how many days finished jobs can be looked at"),
    key("learn.prune_after_days", "after how many days without a write a session leaves recall; 0 is never"),
    key(
        "learn.extract_prompt",
        "instructions for extraction instead of the built-in ones; `file:PATH` reads them",
    ),
    key(
        "learn.reconcile_prompt",
        "instructions for reconciliation instead of the built-in ones; `file:PATH` reads them",
    ),
    key("enable_summarization", "whether sessions are summarised behind the conversation: `true` or `false`"),
    key("memory_rolling_window_size", "the most turns that a window's summary covers"),
    key("memory_summarize_after_seq", "a round that ends at this seq or later is summarised; 0 is never"),
    key(
        "summarise_every_user_turns",
        "so many turns of the user's since the last summary make one; 0 is never",
    ),
    key("summary_prompt.window", "instructions for a window's summary instead of the built-in ones"),
    key("summary_prompt.brief", "instructions for a summary of one sentence"),
    key("summary_prompt.standard", "instructions for a summary of one paragraph"),
    key("summary_prompt.chunk", "instructions for the summary of a chunk"),
    key("summary_prompt.meta", "instructions for one summary of several"),
    key("summary_prompt.rolling", "instructions for moving a summary on"),
    key("embedder", "`auto`, `builtin`, `onnx:DIR` or `URL#MODEL`"),
    key("embedder_key", "the API key of a remote embedder"),
    key("embedder_timeout_secs", "how long a remote embedder may take"),
    key("embed", "which items are embedded: `auto`, `derived` or `all`"),
    key("encoder_reads_chinese", "whether the chosen encoder knows Chinese: `true` or `false`"),
    key("reranker", "`none` or `onnx:DIR`, a cross-encoder for the best candidates"),
    key("requests_days", "how many days the row of a request is kept"),
    key("idempotency_days", "how many days a repeated `Idempotency-Key` is answered as the first time"),
    key("tokenizer", "how tokens are counted: `o200k`, `cl100k` or `estimate`"),
    key("log", "which log events are written, as in `info` or `strata_store=debug`"),
    key("log_format", "how log events are written: `text` or `json`"),
];

/// The defaults that depend on nothing. `store` and `data_dir` depend on the machine, and `log` on the command.
pub(super) fn defaults() -> Vec<(&'static str, String)> {
    let Settings { max_turn_bytes, max_turns_per_call, embed: _, recall, learn } = Settings::default();
    let server = strata_server::Settings::default();
    let prompts = PromptSettings::default();
    let compaction = &server.compaction;
    vec![
        ("listen", "127.0.0.1:8100".to_owned()),
        ("max_turn_bytes", max_turn_bytes.to_string()),
        ("max_turns_per_call", max_turns_per_call.to_string()),
        ("max_body_bytes", server.max_body_bytes.to_string()),
        ("request_timeout_secs", server.request_timeout.as_secs().to_string()),
        ("body_timeout_secs", server.body_timeout.as_secs().to_string()),
        ("header_timeout_secs", server.header_timeout.as_secs().to_string()),
        ("drain_timeout_secs", server.drain_timeout.as_secs().to_string()),
        ("max_concurrent_requests", server.max_concurrent_requests.to_string()),
        ("max_connections", server.max_connections.to_string()),
        ("upstream_model", super::learning::DEFAULT_MODEL.to_owned()),
        ("upstream_timeout_secs", server.proxy.upstream_timeout.as_secs().to_string()),
        ("memory_deadline_ms", server.proxy.memory_deadline.as_millis().to_string()),
        ("proxy.compact_tokens", server.proxy.compact_tokens.to_string()),
        ("proxy.max_body_bytes", server.proxy.max_body_bytes.to_string()),
        ("default_top_k", recall.default_top_k.to_string()),
        ("score_threshold", recall.score_threshold.to_string()),
        ("recency_weight", recall.recency_weight.to_string()),
        ("mmr_lambda", recall.mmr_lambda.to_string()),
        ("min_fts_hits", recall.min_fts_hits.to_string()),
        ("max_context_tokens", recall.budget.max_tokens.to_string()),
        ("max_context_turns", recall.budget.max_turns.to_string()),
        ("max_item_chars", recall.budget.max_item_chars.to_string()),
        ("min_similarity", recall.min_similarity.to_string()),
        ("min_query_len", recall.min_query_len.to_string()),
        ("index_max_items", recall.index_max_items.to_string()),
        ("index_bytes", recall.index_bytes.to_string()),
        ("prompt.max_tokens", prompts.max_tokens.to_string()),
        ("prompt.recent_turn_count", prompts.recent_exchanges.to_string()),
        ("prompt.fold_step", prompts.fold_step.to_string()),
        ("prompt.markers", prompts.filter.markers.join(",")),
        ("prompt.max_code_chars", prompts.filter.max_code_chars.to_string()),
        ("prompt.max_message_chars", prompts.filter.max_message_chars.to_string()),
        ("prompt.summary_entry_chars", prompts.summary.entry_chars.to_string()),
        ("prompt.summary_max_chars", prompts.summary.max_chars.to_string()),
        ("prompt.profiles", "diagnostic".to_owned()),
        ("context.max_recent_history", compaction.max_recent_history.to_string()),
        ("context.keep_recent_history", compaction.keep_recent_history.to_string()),
        ("context.max_tokens", compaction.max_tokens.to_string()),
        ("context.completed_task_secs", compaction.completed_task_seconds.to_string()),
        ("context.entry_chars", compaction.max_entry_chars.to_string()),
        ("context.short_entry_chars", compaction.max_short_entry_chars.to_string()),
        ("context.summary_chars", compaction.max_summary_chars.to_string()),
        ("memory_model", super::learning::DEFAULT_MODEL.to_owned()),
        ("max_entries", learn.max_entries.to_string()),
        ("learn.enabled", learn.enabled.to_string()),
        ("learn.model", "auto".to_owned()),
        ("learn.workers", "auto".to_owned()),
        ("learn.timeout_secs", super::learning::DEFAULT_TIMEOUT_SECS.to_string()),
        ("learn.into", "user".to_owned()),
        ("learn.batch_turns", learn.batch_turns.to_string()),
        ("learn.model_batch", learn.model_batch.to_string()),
        ("learn.model_backlog", learn.model_backlog.to_string()),
        ("learn.max_message_chars", learn.max_message_chars.to_string()),
        ("learn.neighbours", learn.neighbours.to_string()),
        ("learn.max_attempts", learn.max_attempts.to_string()),
        ("learn.lease_secs", learn.lease_secs.to_string()),
        ("learn.retry_secs", learn.retry_secs.to_string()),
        ("learn.jobs_kept_days", learn.jobs_kept_days.to_string()),
        ("learn.prune_after_days", learn.prune_after_days.to_string()),
        ("enable_summarization", learn.summaries.enable_summarization.to_string()),
        ("memory_rolling_window_size", learn.summaries.window.memory_rolling_window_size.to_string()),
        ("memory_summarize_after_seq", learn.summaries.window.memory_summarize_after_seq.to_string()),
        ("summarise_every_user_turns", learn.summaries.window.summarise_every_user_turns.to_string()),
        ("embedder", "auto".to_owned()),
        ("embedder_timeout_secs", "10".to_owned()),
        ("embed", "auto".to_owned()),
        ("encoder_reads_chinese", recall.encoder_reads_chinese.to_string()),
        ("reranker", "none".to_owned()),
        ("requests_days", "30".to_owned()),
        ("idempotency_days", "7".to_owned()),
        ("tokenizer", Tokenizer::default().as_str().to_owned()),
        ("log_format", "text".to_owned()),
    ]
}

/// The known key that `name` was most likely meant to be; none when nothing comes close.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let (closeness, key) = KEYS
        .iter()
        .map(|key| (strsim::jaro_winkler(&name, key.name), key.name))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    // Below this, suggestions are noise: `port` would become `store`.
    (closeness >= 0.75).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_its_key() {
        let check = |name: &str, expected: Option<&str>| assert_eq!(nearest(name), expected, "{name}");
        check("max_turn_byte", Some("max_turn_bytes"));
        check("stroe", Some("store"));
        check("Listen", Some("listen"));
        check("tokeniser", Some("tokenizer"));
        check("datadir", Some("data_dir"));
        check("zzz", None);
    }

    #[test]
    fn every_default_is_of_a_known_key() {
        for (name, _) in defaults() {
            assert!(KEYS.iter().any(|key| key.name == name), "{name}");
        }
    }
}
