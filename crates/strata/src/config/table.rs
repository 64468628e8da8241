//! The table of all settings. A setting needs a field with its default, in the settings struct of the code that uses it, and one
//! entry here.
//!
//! An entry has the setting's name, its field in [`Config`] with the values that the field accepts, and one line about it.
//! Everything else follows from the table: the known keys of `strata.toml`, the names of variables, the defaults (which are
//! those of the fields), the checks, `strata config`, and the tables of `docs/configuration.md`, which
//! `UPDATE_DOCS=1 cargo nextest run -p strata every_setting_is_in_the_documentation` writes.

use strata_core::scope::RecallScope;
use strata_engine::EmbedItems;
use strata_engine::learn::summarising::SummaryPrompt;
use strata_engine::learn::{LearnInto, LearnSecrets};
use strata_engine::prompt::History;
use strata_engine::recall::MAX_LIMIT;
use strata_models::Tokenizer;

use super::slots::{
    DAY, MILLISECOND, SECOND, Slot, address, choice, duration, endpoint, hidden, hosts, instructions, names,
    number, optional, optional_number, optional_text, origins, profiles, secret, switch, text, typed,
};
use super::sources::PREFIX;
use super::upstreams::{upstream_ca_file, upstream_proxy, upstreams};
use super::{Config, LearnModel, LogFormat};

const MIB: usize = 1024 * 1024;

/// The upper bound of settings that count the characters of a prompt or a summary.
const MAX_CHARS: usize = 10_000_000;

/// A setting that Strata knows.
pub(super) struct Entry {
    /// The name in `strata.toml`, where `table.key` is a key of a table.
    pub(super) name: &'static str,
    /// The purpose of the setting, in one line.
    pub(super) about: &'static str,
    /// The field that holds the setting.
    pub(super) slot: fn(&mut Config) -> Slot<'_>,
    /// The default in words, where it depends on the machine or on other settings.
    pub(super) default: Option<&'static str>,
}

impl Entry {
    /// The name of the environment variable.
    pub(super) fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_uppercase().replace('.', "_"))
    }

    const fn default(self, words: &'static str) -> Self {
        Self { default: Some(words), ..self }
    }
}

const fn entry(name: &'static str, slot: fn(&mut Config) -> Slot<'_>, about: &'static str) -> Entry {
    Entry { name, about, slot, default: None }
}

/// All entries, in the order of [`GROUPS`].
pub(super) fn entries() -> impl Iterator<Item = &'static Entry> {
    GROUPS.iter().flat_map(|(_, entries)| entries.iter())
}

/// The tables of `docs/configuration.md`: every setting with its default and the values that it accepts, in Markdown.
pub fn reference() -> String {
    let mut config = Config::defaults();
    let mut page = String::new();
    for (title, entries) in GROUPS {
        page.push_str(&format!("### {title}\n\n| key | default | accepts | meaning |\n|---|---|---|---|\n"));
        for Entry { name, about, slot, default } in *entries {
            let slot = slot(&mut config);
            let default = match (default, slot.default.as_str()) {
                (Some(words), _) => (*words).to_owned(),
                (None, "") => "none".to_owned(),
                (None, value) => format!("`{value}`"),
            };
            page.push_str(&format!("| `{name}` | {default} | {} | {about} |\n", slot.accepts));
        }
        page.push('\n');
    }
    page
}

/// The known name that is most similar to `name`; none if no name is similar.
pub(super) fn nearest(name: &str) -> Option<&'static Entry> {
    let name = name.to_lowercase();
    let similar = entries().map(|entry| (strsim::jaro_winkler(&name, entry.name), entry));
    let (similarity, entry) = similar.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    // Up to this, suggestions are noise: `port` would become `store`, and `server` would become `user`.
    (similarity > 0.75).then_some(entry)
}

/// All settings, by the headings of the documentation. Names that the specification's tables have are kept.
#[rustfmt::skip]
pub(super) const GROUPS: &[(&str, &[Entry])] = &[
    ("Data and server", &[
        entry("store", |c| typed(&mut c.store, "`sqlite:PATH`, `vault:DIR`, `postgres://USER@HOST/DATABASE` or `memory:`"),
            "where data is stored")
            .default("`strata.db` in the data directory"),
        entry("data_dir", |c| optional_text(&mut c.models.data_dir),
            "the directory of `strata.db` (unless `store` is set) and of installed models")
            .default("the platform's, as in `~/.local/share/strata`"),
        entry("user", |c| typed(&mut c.user, "a name"),
            "the user of commands that name none, and whom the inspector shows first; requests to the server name their own"),
        entry("listen", |c| address(&mut c.listen),
            "the address that the server listens on"),
        entry("allowed_hosts", |c| hosts(&mut c.server.allowed_hosts),
            "host names, beside those of loopback, under which clients may call the server"),
        entry("cors_origins", |c| origins(&mut c.server.cors_origins),
            "origins of web pages that may call the server"),
        entry("max_turn_bytes", |c| number(&mut c.engine.limits.max_turn_bytes, 1..=256 * MIB),
            "maximum size of one turn or memory, in bytes"),
        entry("max_turns_per_call", |c| number(&mut c.engine.limits.max_turns_per_call, 1..=100_000),
            "maximum number of turns in one call"),
        entry("max_body_bytes", |c| number(&mut c.server.max_body_bytes, 1024..=1024 * MIB),
            "maximum size of a request's body, in bytes"),
        entry("request_timeout_secs", |c| duration(&mut c.server.request_timeout, SECOND, 1..=3_600),
            "maximum duration of a request, in seconds"),
        entry("body_timeout_secs", |c| duration(&mut c.server.body_timeout, SECOND, 1..=3_600),
            "how long a client may take to send a body, in seconds"),
        entry("header_timeout_secs", |c| duration(&mut c.server.header_timeout, SECOND, 1..=3_600),
            "how long a client may take to send a request's head, in seconds"),
        entry("drain_timeout_secs", |c| duration(&mut c.server.drain_timeout, SECOND, 0..=3_600),
            "how long running requests may take to finish when the server stops, in seconds"),
        entry("max_concurrent_requests", |c| number(&mut c.server.max_concurrent_requests, 1..=65_536),
            "maximum number of requests that are handled at once"),
        entry("max_connections", |c| number(&mut c.server.max_connections, 1..=65_536),
            "maximum number of open connections"),
        entry("max_connections_per_peer", |c| number(&mut c.server.max_connections_per_peer, 1..=65_536),
            "maximum number of open connections of one address"),
        entry("max_bytes_under_way", |c| number(&mut c.server.max_bytes_under_way, 1024..=65_536 * MIB),
            "maximum size of the bodies of all chats that are passed on at once, in bytes; others wait"),
        entry("write_timeout_secs", |c| duration(&mut c.server.write_timeout, SECOND, 1..=3_600),
            "how long a client may read nothing of its answer before it is cut off, in seconds"),
    ]),
    ("Vault", &[
        entry("memory_path", |c| optional_text(&mut c.vault.path),
            "the folder of a vault, in which memory is kept as Markdown files; `store` goes before it; see docs/vault.md"),
        entry("start_watcher", |c| switch(&mut c.vault.watch),
            "whether edits in the vault are followed while Strata runs; otherwise they are taken in when it starts"),
        entry("enable_git_versioning", |c| switch(&mut c.vault.git),
            "whether changes in the vault are committed to a git repository in it"),
    ]),
    ("PostgreSQL", &[
        entry("postgres.password", |c| secret(&mut c.postgres.password),
            "the password, if the address of the store has none"),
        entry("postgres.password_file", |c| optional_text(&mut c.postgres.password_file),
            "a file with the password, instead of `postgres.password`"),
        entry("postgres.connections", |c| number(&mut c.postgres.connections, 1..=10_000),
            "maximum number of connections that this process holds"),
        entry("postgres.partitions", |c| number(&mut c.postgres.partitions, 1..=1_024),
            "number of hash partitions of each table, when the tables are made; later changes have no effect"),
        entry("postgres.statement_timeout_secs", |c| duration(&mut c.postgres.statement_timeout, SECOND, 1..=3_600),
            "maximum duration of a statement, in seconds"),
        entry("postgres.patience_secs", |c| duration(&mut c.postgres.patience, SECOND, 0..=3_600),
            "how long a call waits for a connection while the server cannot be reached, in seconds"),
        entry("postgres.replica", |c| hidden(optional(&mut c.postgres.replica, "",
            "the address of a read replica, as in `postgres://USER@HOST/DATABASE`", |text| text.parse().ok())),
            "the server that the reads of recall go to; they may be a moment old"),
        entry("postgres.root_certificates", |c| optional_text(&mut c.postgres.root_certificates),
            "a PEM file with the certificate authorities to trust, for `sslmode=require`")
            .default("the public authorities"),
        entry("postgres.hnsw_from", |c| number(&mut c.postgres.hnsw_from, 0..=1_000_000_000),
            "with pgvector, a user with more changes than this gets an approximate index (HNSW) of its vectors; 0 means never"),
    ]),
    ("Upstream and proxy", &[
        entry("upstream", |c| upstreams(&mut c.server.proxy),
            "the server that the proxy forwards chats to, and that `strata chat` talks to; see «Several upstreams»"),
        entry("upstream_key", |c| secret(&mut c.server.proxy.upstream_key),
            "the upstream's API key, instead of the key that clients send"),
        entry("upstream_model", |c| text(&mut c.upstream_model),
            "the model that `strata chat` asks the upstream for"),
        entry("upstream_timeout_secs", |c| duration(&mut c.server.proxy.upstream_timeout, SECOND, 1..=86_400),
            "how long the upstream may be silent, in seconds"),
        entry("upstream_proxy", |c| upstream_proxy(&mut c.server.proxy.upstream_transport),
            "the HTTP proxy through which the upstream is reached; variables such as `HTTPS_PROXY` have no effect"),
        entry("upstream_ca_file", |c| upstream_ca_file(&mut c.server.proxy.upstream_transport),
            "a file with certificate authorities that are trusted for the upstream, beside the public ones"),
        entry("memory_deadline_ms", |c| duration(&mut c.server.proxy.memory_deadline, MILLISECOND, 1..=60_000),
            "how long a chat waits for memory, in milliseconds; a model that is late costs quality and not the memory"),
        entry("proxy.reply_wait_ms", |c| optional(&mut c.server.proxy.reply_wait, "recorded",
            "`recorded` or a number from 1 to 60000", |text| {
                let millis: Option<u64> = text.parse().ok();
                millis.filter(|millis| (1..=60_000).contains(millis)).map(std::time::Duration::from_millis)
            }),
            "how long the end of a reply waits for a slow disk, in milliseconds: `recorded` until it is recorded; with a number, a crash may lose a reply whose end was seen"),
        entry("proxy.compact_tokens", |c| number(&mut c.server.proxy.compact_tokens, 0..=100_000_000),
            "older messages of a chat with more tokens, the question aside, are replaced by a summary; 0 keeps them all"),
        entry("proxy.max_body_bytes", |c| number(&mut c.server.proxy.max_body_bytes, 1024..=4096 * MIB),
            "maximum size of a chat's body, in bytes"),
        entry("proxy.user_headers", |c| names(&mut c.server.proxy.names.user_headers),
            "headers in which other programs name the user of a chat; the first one that is given counts"),
        entry("proxy.session_headers", |c| names(&mut c.server.proxy.names.session_headers),
            "headers in which other programs name the conversation of a chat"),
        entry("proxy.user_fields", |c| names(&mut c.server.proxy.names.user_fields),
            "fields of a chat's body that name the user, after the headers; a point separates a field inside another"),
        entry("proxy.session_fields", |c| names(&mut c.server.proxy.names.session_fields),
            "fields of a chat's body that name the conversation, after the headers"),
    ]),
    ("Recall", &[
        entry("recall.scope", |c| choice(&mut c.engine.recall.scope, [("session", RecallScope::Session), ("user", RecallScope::User)]),
            "how far a question in a session of a named user looks; a session without a user is always searched alone"),
        entry("recall.rerank", |c| typed(&mut c.models.rerank, "`off`, `reader` or `onnx:DIR`"),
            "what reads the best 20 candidates with the question and reorders them: the reader or another cross-encoder; with `off`, the reader for requests that ask for it"),
        entry("recall.second_look", |c| switch(&mut c.engine.recall.second_look),
            "whether the reader reads the best 8 candidates where the scores leave in doubt whether any of them helps to answer"),
        entry("default_top_k", |c| number(&mut c.engine.recall.default_top_k, 1..=MAX_LIMIT),
            "number of items that a search returns when it asks for no number"),
        entry("score_threshold", |c| number(&mut c.engine.recall.score_threshold, 0.0..=1.0),
            "minimum relevance of an item"),
        entry("recency_weight", |c| number(&mut c.engine.recall.recency_weight, 0.0..=1.0),
            "weight of an item's age in the ranking"),
        entry("mmr_lambda", |c| number(&mut c.engine.recall.mmr_lambda, 0.0..=1.0),
            "weight of relevance against diversity"),
        entry("min_fts_hits", |c| number(&mut c.engine.recall.min_fts_hits, 0..=MAX_LIMIT),
            "with fewer full-text hits in a session, all sessions are searched"),
        entry("max_context_tokens", |c| number(&mut c.engine.recall.budget.max_tokens, 1..=10_000_000),
            "maximum number of tokens of all recalled items together, however many items a request asks for"),
        entry("max_context_turns", |c| number(&mut c.engine.recall.budget.max_turns, 1..=MAX_LIMIT),
            "maximum number of recalled turns, unless a request asks for more items"),
        entry("max_item_chars", |c| number(&mut c.engine.recall.budget.max_item_chars, 1..=10_000_000),
            "maximum number of characters of one recalled item"),
        entry("min_similarity", |c| number(&mut c.engine.recall.min_similarity, 0.0..=1.0),
            "minimum trigram similarity of a word"),
        entry("min_query_len", |c| number(&mut c.engine.recall.min_query_len, 1..=1_000),
            "length of the shortest question that is compared by trigrams, in characters"),
        entry("index_max_items", |c| number(&mut c.engine.recall.index_max_items, 0..=100_000_000),
            "a user with more changes is ranked by the store's index instead of the one in memory"),
        entry("index_bytes", |c| number(&mut c.engine.recall.index_bytes, 0..=usize::MAX),
            "maximum size of all users' indexes in memory, in bytes"),
    ]),
    ("Prompts", &[
        entry("prompt.max_tokens", |c| number(&mut c.prompts.max_tokens, 1..=10_000_000),
            "maximum number of tokens of a prompt, without the question"),
        entry("prompt.recent_turn_count", |c| number(&mut c.prompts.recent_exchanges, 1..=1_000),
            "number of recent exchanges that a prompt quotes word for word; with `prompt.history = auto` the least number"),
        entry("prompt.fold_step", |c| number(&mut c.prompts.fold_step, 1..=1_000),
            "number of messages after which the stored summary is updated"),
        entry("prompt.markers", |c| names(&mut c.prompts.filter.markers),
            "interface markers that are removed from messages"),
        entry("prompt.max_code_chars", |c| number(&mut c.prompts.filter.max_code_chars, 1..=MAX_CHARS),
            "code blocks with more characters are replaced by a note"),
        entry("prompt.max_message_chars", |c| number(&mut c.prompts.filter.max_message_chars, 1..=MAX_CHARS),
            "maximum number of characters of a message in a prompt"),
        entry("prompt.summary_entry_chars", |c| number(&mut c.prompts.summary.entry_chars, 1..=MAX_CHARS),
            "maximum number of characters of a message in the rolling summary"),
        entry("prompt.summary_max_chars", |c| number(&mut c.prompts.summary.max_chars, 1..=MAX_CHARS),
            "maximum number of characters of the rolling summary"),
        entry("prompt.summary_by_reader", |c| switch(&mut c.prompts.summary.by_reader),
            "choose the sentences of the rolling summary by the reader; `false` keeps the first and last paragraph of a message"),
        entry("prompt.history", |c| choice(&mut c.prompts.history, [("auto", History::Auto), ("rolling", History::Rolling), ("window", History::Window), ("tree", History::Tree)]),
            "which turns a prompt shows, and what stands for the others: `auto` fills the budget with turns, before them the rolling summary and a model's; the others show the turns of their designs, with the rolling summary, the window's summary or the tree's root"),
        entry("prompt.enrichment", |c| optional_text(&mut c.prompts.enrichment),
            "template for a request that names a device, with `{question}` for the request"),
        entry("prompt.profiles", |c| profiles(&mut c.prompts.profiles),
            "rules for reading facts out of replies, as in docs/prompt.md"),
    ]),
    ("Contexts", &[
        entry("context.max_recent_history", |c| number(&mut c.engine.compaction.max_recent_history, 1..=1_000_000),
            "a context's history with more entries is compacted"),
        entry("context.keep_recent_history", |c| number(&mut c.engine.compaction.keep_recent_history, 1..=1_000_000),
            "number of newest entries that compaction keeps"),
        entry("context.max_tokens", |c| number(&mut c.engine.compaction.max_tokens, 1..=1_000_000_000),
            "a context's history with more tokens loses its older half"),
        entry("context.completed_task_secs", |c| number(&mut c.engine.compaction.completed_task_seconds, 0..=100 * 366 * 86_400),
            "how long a completed task stays in a context, in seconds"),
        entry("context.entry_chars", |c| number(&mut c.engine.compaction.max_entry_chars, 1..=MAX_CHARS),
            "maximum number of characters of an entry in a context's summary"),
        entry("context.short_entry_chars", |c| number(&mut c.engine.compaction.max_short_entry_chars, 1..=MAX_CHARS),
            "maximum number of characters of an older entry when the summary is nearly full"),
        entry("context.summary_chars", |c| number(&mut c.engine.compaction.max_summary_chars, 1..=MAX_CHARS),
            "maximum number of characters of the summary that compaction writes"),
    ]),
    ("Learning", &[
        entry("openai_base_url", |c| endpoint(&mut c.learning.base_url),
            "the OpenAI-compatible endpoint that learning calls; without one, the built-in rules learn"),
        entry("openai_api_key", |c| secret(&mut c.learning.key),
            "the API key of that endpoint"),
        entry("memory_model", |c| text(&mut c.learning.memory_model),
            "the model that learning asks that endpoint for"),
        entry("max_entries", |c| number(&mut c.engine.learn.max_entries, 0..=u32::MAX),
            "maximum number of a session's entries that recall sees; 0 sets no limit"),
        entry("learn.enabled", |c| switch(&mut c.engine.learn.enabled),
            "whether Strata learns from recorded turns"),
        entry("learn.model", |c| optional(&mut c.learning.model, "auto",
            "`auto`, `builtin` or `URL#MODEL`, where URL begins with `https://` or `http://`", LearnModel::parse),
            "what learns: `auto` is the model above if an endpoint is set, else the built-in rules"),
        entry("learn.reader", |c| typed(&mut c.learning.reader, "`builtin`, `off` or `onnx:DIR`"),
            "what reads sentences where no model does; `off` leaves it to the rules"),
        entry("learn.workers", |c| optional_number(&mut c.learning.workers, "auto", 1..=64),
            "number of jobs that run at once; `auto` is 1, or 4 with a model"),
        entry("learn.timeout_secs", |c| duration(&mut c.learning.timeout, SECOND, 1..=3_600),
            "how long a model may take for one answer with all retries, in seconds"),
        entry("learn.into", |c| choice(&mut c.engine.learn.into, [("user", LearnInto::User), ("session", LearnInto::Session)]),
            "whether learned memories belong to the user or to one session"),
        entry("learn.secrets", |c| choice(&mut c.engine.learn.secrets, [("skip", LearnSecrets::Skip), ("keep", LearnSecrets::Keep)]),
            "whether statements with a password, a key or a card number are left out or learned"),
        entry("learn.batch_turns", |c| number(&mut c.engine.learn.batch_turns, 1..=1_000),
            "maximum number of turns that one job reads"),
        entry("learn.model_batch", |c| number(&mut c.engine.learn.model_batch, 1..=1_000),
            "number of the user's turns that share one call of a model"),
        entry("learn.delay_secs", |c| optional_number(&mut c.engine.learn.delay_secs, "", 0..=86_400),
            "how long a turn waits for other turns to share a job with, in seconds")
            .default("`0`, or `180` with a model"),
        entry("learn.model_backlog", |c| number(&mut c.engine.learn.model_backlog, 0..=u64::MAX),
            "turns further back than this are learned by the rules, not by a model"),
        entry("learn.max_message_chars", |c| number(&mut c.engine.learn.max_message_chars, 100..=1_000_000),
            "maximum number of characters of a message that a model reads"),
        entry("learn.neighbours", |c| number(&mut c.engine.learn.neighbours, 1..=100),
            "number of known memories that each new statement is compared with"),
        entry("learn.max_attempts", |c| number(&mut c.engine.learn.max_attempts, 1..=100),
            "number of times that a job is tried"),
        entry("learn.lease_secs", |c| number(&mut c.engine.learn.lease_secs, 1..=86_400),
            "how long a worker may hold a job before another worker takes it over, in seconds"),
        entry("learn.retry_secs", |c| number(&mut c.engine.learn.retry_secs, 1..=3_600),
            "the pause after the first failure, in seconds; it doubles with each failure"),
        entry("learn.jobs_kept_days", |c| number(&mut c.engine.learn.jobs_kept_days, 0..=36_500),
            "number of days that finished jobs are kept"),
        entry("learn.prune_after_days", |c| number(&mut c.engine.learn.prune_after_days, 0..=36_500),
            "number of days without a write after which recall ignores a session; 0 is never"),
        entry("learn.extract_prompt", |c| instructions(|text| c.engine.learn.extract_prompt = Some(text)),
            "instructions for extraction, instead of the built-in ones"),
        entry("learn.reconcile_prompt", |c| instructions(|text| c.engine.learn.reconcile_prompt = Some(text)),
            "instructions for reconciliation, instead of the built-in ones"),
    ]),
    ("Summaries", &[
        entry("enable_summarization", |c| switch(&mut c.engine.learn.summaries.enable_summarization),
            "whether sessions are summarised in the background"),
        entry("memory_rolling_window_size", |c| number(&mut c.engine.learn.summaries.window.memory_rolling_window_size, 2..=1_000),
            "maximum number of turns that a window's summary covers"),
        entry("memory_summarize_after_seq", |c| number(&mut c.engine.learn.summaries.window.memory_summarize_after_seq, 0..=u64::MAX),
            "a round that ends at this seq or later is summarised; 0 is never"),
        entry("summarise_every_user_turns", |c| number(&mut c.engine.learn.summaries.window.summarise_every_user_turns, 0..=500),
            "number of the user's turns since the last summary that cause the next one; 0 is never"),
        entry("summary_thought_tokens", |c| number(&mut c.engine.learn.summaries.thought_tokens, 0..=1_000_000),
            "tokens that a model may spend on its thoughts before a summary; an answer that is cut off is asked for once more with four times the room"),
        entry("summary_prompt.window", |c| summary_prompt(c, SummaryPrompt::Window),
            "instructions for a window's summary, instead of the built-in ones"),
        entry("summary_prompt.brief", |c| summary_prompt(c, SummaryPrompt::Brief),
            "instructions for a summary of one sentence"),
        entry("summary_prompt.standard", |c| summary_prompt(c, SummaryPrompt::Standard),
            "instructions for a summary of one paragraph"),
        entry("summary_prompt.chunk", |c| summary_prompt(c, SummaryPrompt::Chunk),
            "instructions for the summary of a chunk"),
        entry("summary_prompt.meta", |c| summary_prompt(c, SummaryPrompt::Meta),
            "instructions for one summary of several"),
        entry("summary_prompt.rolling", |c| summary_prompt(c, SummaryPrompt::Rolling),
            "instructions for updating a summary"),
    ]),
    ("Models", &[
        entry("embedder", |c| typed(&mut c.models.embedder, "`builtin`, `words`, `onnx:DIR` or `URL#MODEL`"),
            "what makes vectors; see «Embedders»"),
        entry("embedding_model", |c| optional(&mut c.models.embedding_model, "", "a model's name or folder",
            |text| (!text.is_empty()).then(|| text.to_owned())),
            "the model that makes vectors, if `embedder` is not set: a model of `openai_base_url`, or a folder with an ONNX model"),
        entry("embedder_key", |c| secret(&mut c.models.embedder_key),
            "the API key of a remote embedder"),
        entry("embedder_timeout_secs", |c| duration(&mut c.models.embedder_timeout, SECOND, 1..=3_600),
            "how long a remote embedder may take, in seconds"),
        entry("embed", |c| choice(&mut c.engine.embed,
            [("auto", EmbedItems::Auto), ("derived", EmbedItems::Derived), ("all", EmbedItems::All)]),
            "which items are embedded: `auto` is `all` with a local encoder and `derived` with a remote one"),
        entry("encoder_reads_chinese", |c| switch(&mut c.engine.recall.encoder_reads_chinese),
            "whether the chosen encoder reads Chinese; `builtin` does; `false` for an English model in a folder"),
        entry("tokenizer", |c| choice(&mut c.tokenizer, Tokenizer::ALL.iter().map(|tokenizer| (tokenizer.as_str(), *tokenizer))),
            "how tokens are counted"),
    ]),
    ("Retention and logs", &[
        entry("requests_days", |c| duration(&mut c.requests_kept, DAY, 1..=36_500),
            "number of days that the record of a request is kept"),
        entry("idempotency_days", |c| duration(&mut c.answers_kept, DAY, 1..=36_500),
            "number of days that a repeated `Idempotency-Key` gets the first answer again"),
        entry("log", |c| optional_text(&mut c.log),
            "which log events are written, as in `info` or `strata_store=debug`")
            .default("`info` for the server, `warn` for other commands"),
        entry("log_format", |c| choice(&mut c.log_format, [("text", LogFormat::Text), ("json", LogFormat::Json)]),
            "how log events are written"),
    ]),
];

fn summary_prompt(config: &mut Config, prompt: SummaryPrompt) -> Slot<'_> {
    let prompts = &mut config.engine.learn.summaries.prompts;
    instructions(move |text| *prompts = std::mem::take(prompts).with(prompt, text))
}
