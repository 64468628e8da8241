use std::io::Write;

use strata_core::context::CompactionLimits;
use strata_engine::Settings;
use strata_engine::learn::LearnSettings;
use strata_engine::learn::summarising::{SummaryPrompt, SummaryPrompts};
use strata_engine::learn::window::WindowSettings;
use strata_engine::report::{InForce, Period, Report, ReportRows, Trigger};
use strata_server::{ModelPattern, ProxySettings};

use super::table::{entries, nearest};
use super::*;

fn sources() -> Sources {
    Sources { data_dir: Some("/home/ada/.local/share/strata".into()), ..Sources::default() }
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn with_flags(flags: &[(&str, &str)]) -> Result<Config> {
    let flags = flags.iter().map(|(key, value)| Flag::new(key, *value)).collect();
    Config::load(&Sources { flags, ..sources() })
}

fn with_file(text: &str) -> Result<Config> {
    let file = file(text);
    Config::load(&Sources { file: Some(file.path().to_owned()), ..sources() })
}

fn shown(config: &Config, key: &str) -> String {
    config.settings().iter().find(|setting| setting.key == key).unwrap().value.clone()
}

#[track_caller]
fn refused(sources: &Sources) -> String {
    let error = Config::load(sources).unwrap_err();
    assert_eq!(error.kind(), strata_core::ErrorKind::Invalid);
    error.message().to_owned()
}

#[track_caller]
fn refused_flag(key: &str, value: &str, expected: &str) {
    let error = with_flags(&[(key, value)]).unwrap_err();
    assert!(error.message().contains(expected), "{error}");
}

#[test]
fn the_defaults_are_those_of_the_core() {
    let config = Config::load(&sources()).unwrap();
    assert_eq!(config.engine, strata_engine::Settings::default());
    assert_eq!(config.engine.learn, LearnSettings::default());
    assert_eq!(config.prompts, PromptSettings::default());
    assert_eq!(config.server, strata_server::Settings::default());
    assert_eq!(config.engine.compaction, CompactionLimits::default());
    assert_eq!(config.server.proxy, ProxySettings::default());
    assert_eq!((config.learning.model(), config.learning.workers()), (LearnModel::Builtin, 1));
    assert_eq!(config.listen.to_string(), "127.0.0.1:8100");
    assert_eq!(config.log, None);
    assert_eq!(config.log_format, LogFormat::Text);
    assert_eq!(config.store, StoreUrl::Sqlite("/home/ada/.local/share/strata/strata.db".into()));
    assert_eq!(config.settings().len(), entries().count());
    assert!(config.settings().iter().all(|setting| setting.origin == "default"));
}

/// A default that its own setting refuses, or reads as something else, is shown wrongly.
#[test]
fn every_default_is_a_value_that_the_setting_accepts() {
    for entry in entries() {
        let mut config = Config::defaults();
        let before = format!("{config:?}");
        let slot = (entry.slot)(&mut config);
        let default = slot.default.clone();
        if default.is_empty() {
            continue;
        }
        slot.set(&toml::Value::from(default)).unwrap();
        assert_eq!(format!("{config:?}"), before, "{}", entry.name);
    }
}

#[test]
fn every_setting_has_a_name_and_a_variable_of_its_own() {
    let names: std::collections::BTreeSet<_> = entries().map(|entry| entry.name).collect();
    let variables: std::collections::BTreeSet<_> = entries().map(|entry| entry.variable()).collect();
    assert_eq!((names.len(), variables.len()), (entries().count(), entries().count()));
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let file = file("default_top_k = 7\nmin_similarity = 0.5\nmin_query_len = 3\nlog = 'debug'\n");
    let mut sources = sources();
    sources.file = Some(file.path().to_owned());
    sources.environment =
        vec![("STRATA_DEFAULT_TOP_K".into(), "8".into()), ("STRATA_MIN_QUERY_LEN".into(), "4".into())];
    sources.flags = vec![Flag::new("default_top_k", "9")];
    let config = Config::load(&sources).unwrap();
    let recall = &config.engine.recall;
    assert_eq!((recall.default_top_k, recall.min_query_len, recall.min_similarity), (9, 4, 0.5));
    assert_eq!(config.log.as_deref(), Some("debug"));
    assert_eq!(config.origin("default_top_k"), "--default-top-k");
    assert_eq!(config.origin("min_query_len"), "STRATA_MIN_QUERY_LEN");
    assert_eq!(config.origin("min_similarity"), file.path().to_str().unwrap());
    assert_eq!(config.origin("listen"), "default");
}

#[test]
fn tables_variables_and_flags_are_one_setting() {
    let file = file(
        "[prompt]\nmax_tokens = 6000\nrecent_turn_count = 5\nmarkers = ['CHART', 'IMAGE']\n\
         [context]\nmax_recent_history = 40\n",
    );
    let variables = [("STRATA_PROMPT_RECENT_TURN_COUNT", "2"), ("STRATA_CONTEXT_KEEP_RECENT_HISTORY", "10")];
    let config = Config::load(&Sources {
        flags: vec![Flag::new("prompt.fold_step", "4")],
        environment: variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        file: Some(file.path().to_owned()),
        ..sources()
    })
    .unwrap();
    let PromptSettings { max_tokens, recent_exchanges, fold_step, filter, .. } = &config.prompts;
    assert_eq!((*max_tokens, *recent_exchanges, *fold_step), (6_000, 2, 4));
    assert_eq!(filter.markers, ["CHART", "IMAGE"]);
    let limits = &config.engine.compaction;
    assert_eq!((limits.max_recent_history, limits.keep_recent_history), (40, 10));
    assert_eq!(config.origin("prompt.recent_turn_count"), "STRATA_PROMPT_RECENT_TURN_COUNT");
    assert_eq!(shown(&config, "prompt.markers"), "CHART,IMAGE");
}

#[test]
fn the_data_directory_moves_the_default_store_only() {
    let mut sources = sources();
    sources.environment = vec![("STRATA_DATA_DIR".into(), "/data".into())];
    let config = Config::load(&sources).unwrap();
    assert_eq!(config.store, StoreUrl::Sqlite("/data/strata.db".into()));
    assert_eq!(config.origin("store"), "default, in `data_dir`");
    sources.flags = vec![Flag::new("store", "memory:")];
    assert_eq!(Config::load(&sources).unwrap().store, StoreUrl::Memory);
}

#[test]
fn a_memory_path_is_a_vault_unless_a_store_is_named() {
    let flags = [("memory_path", "notes"), ("start_watcher", "true"), ("enable_git_versioning", "true")];
    let config = with_flags(&flags).unwrap();
    let vault = VaultFolder { watch: true, git: true, ..VaultFolder::new("notes") };
    assert_eq!(config.store, StoreUrl::Vault(vault));
    assert_eq!(config.origin("store"), "`memory_path`");
    let config = with_flags(&[("memory_path", "notes"), ("store", "vault:other")]).unwrap();
    assert_eq!(config.store, StoreUrl::Vault(VaultFolder::new("other")));
}

#[test]
fn an_embedding_model_names_an_embedder_unless_one_is_set() {
    let remote =
        |url: &str, model: &str| EmbedderChoice::Remote { url: url.to_owned(), model: model.to_owned() };
    let check = |flags: &[(&str, &str)], expected| {
        assert_eq!(with_flags(flags).unwrap().models.embedder, expected, "{flags:?}");
    };
    let small = ("embedding_model", "text-embedding-3-small");
    check(&[small], remote("https://api.openai.com/v1", "text-embedding-3-small"));
    check(&[small, ("openai_base_url", "http://h/v1")], remote("http://h/v1", "text-embedding-3-small"));
    check(&[small, ("embedder", "words")], EmbedderChoice::Words);
    check(&[small, ("embedder", "builtin")], EmbedderChoice::Builtin);
    check(&[("embedding_model", "onnx:models/e5")], EmbedderChoice::Onnx("models/e5".into()));
    check(&[("embedding_model", ".")], EmbedderChoice::Onnx(".".into()));
}

#[test]
fn without_a_home_a_store_must_be_named() {
    let mut sources = Sources::default();
    assert!(refused(&sources).contains("--data-dir"));
    sources.flags = vec![Flag::new("store", "memory:")];
    assert!(Config::load(&sources).is_ok());
}

#[test]
fn a_typing_error_finds_its_key() {
    let check = |name: &str, expected: Option<&str>| {
        assert_eq!(nearest(name).map(|entry| entry.name), expected, "{name}");
    };
    check("max_turn_byte", Some("max_turn_bytes"));
    check("stroe", Some("store"));
    check("Listen", Some("listen"));
    check("tokeniser", Some("tokenizer"));
    check("datadir", Some("data_dir"));
    check("zzz", None);
}

#[test]
fn an_unknown_key_names_the_nearest_and_its_origin() {
    let file = file("max_turn_byte = 5\nlisten = '127.0.0.1:1'\n[server]\nport = 1\n");
    let mut sources = sources();
    sources.file = Some(file.path().to_owned());
    sources.environment = vec![("STRATA_STROE".into(), "x".into())];
    sources.flags = vec![Flag { name: "--setting".into(), key: "tokeniser".into(), value: "x".into() }];
    let message = refused(&sources);
    let lines: Vec<&str> = message.lines().collect();
    let path = file.path().display();
    assert_eq!(
        lines,
        [
            &format!("setting `max_turn_byte`, from {path}, is unknown; did you mean `max_turn_bytes`?"),
            &format!("setting `server`, from {path}, is unknown; `strata config` lists all settings"),
            "setting `stroe`, from STRATA_STROE, is unknown; did you mean `STRATA_STORE`?",
            "setting `tokeniser`, from --setting, is unknown; did you mean `tokenizer`?",
        ]
    );
}

#[test]
fn a_wrong_value_names_its_origin_and_what_is_possible() {
    let check = |key: &str, value: &str, advice: &str| {
        let variable = format!("STRATA_{}", key.to_uppercase());
        let message = refused(&Sources { environment: vec![(variable.clone(), value.into())], ..sources() });
        let expected = format!("setting `{key}` has a wrong value `{value}`, from {variable}; {advice}");
        assert_eq!(message, expected);
    };
    check("max_turn_bytes", "lots", "use a number from 1 to 268435456");
    check("max_turn_bytes", "-1", "use a number from 1 to 268435456");
    check("default_top_k", "0", "use a number from 1 to 1000");
    check("default_top_k", "99999999999999999999", "use a number from 1 to 1000");
    check("min_similarity", "NaN", "use a number from 0 to 1");
    check("listen", "8100", "use an address with a port, as in `127.0.0.1:8100`");
    check("log_format", "xml", "use `text` or `json`");
    check("embed", "some", "use `auto`, `derived` or `all`");
    check("tokenizer", "words", "use `o200k`, `cl100k` or `estimate`");
    let message =
        refused(&Sources { environment: vec![("STRATA_STORE".into(), "vault:".into())], ..sources() });
    assert!(message.contains("from STRATA_STORE") && message.contains("folder is missing"), "{message}");
}

#[test]
fn a_wrong_value_of_learning_is_refused() {
    refused_flag("learn.model", "gpt", "`URL#MODEL`");
    refused_flag("learn.model", "ftp://host#m", "https://");
    refused_flag("openai_base_url", "host", "https://");
    refused_flag("learn.workers", "0", "from 1 to 64");
    refused_flag("learn.into", "planet", "`user` or `session`");
    refused_flag("learn.extract_prompt", "file:/no/such/file", "cannot be read");
    refused_flag("learn.extract_prompt", " ", "1 to 1048576 bytes");
    refused_flag("learn.enabled", "yes", "true");
    refused_flag("learn.delay_secs", "-1", "from 0");
    refused_flag("memory_rolling_window_size", "1", "from 2");
}

#[test]
fn shipped_profiles_are_chosen_by_name() {
    let names = |text: &str| -> Vec<(String, bool)> {
        let config = with_file(text).unwrap();
        config.prompts.profiles.into_iter().map(|profile| (profile.name, profile.when.is_some())).collect()
    };
    let chosen = names("[prompt]\nprofiles = 'coding, research'\n");
    assert_eq!(chosen, [("coding".to_owned(), false), ("research".to_owned(), false)]);
    let all = names("[prompt]\nprofiles = 'auto'\n");
    assert_eq!((all.len(), names("")), (6, all));
}

#[test]
fn a_wrong_value_of_a_file_is_refused() {
    let check = |text: &str, expected: &str| {
        let error = with_file(text).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
    };
    check("[prompt]\nmax_token = 5\n", "did you mean `prompt.max_tokens`?");
    check("prompt = 5\n", "`prompt`");
    check("[prompt]\nmax_tokens = 0\n", "from 1 to 10000000");
    check("[prompt]\nprofiles = 'coding, aquarium'\n", "[[prompt.profiles]]");
    check("[[prompt.profiles]]\nname = 'x'\n", "`field`");
    check("[[prompt.profiles]]\nname = 'x'\nfield = []\ncolour = 1\n", "colour");
    check("[context]\nkeep_recent_history = 90\n", "`context.max_recent_history`");
}

#[test]
fn an_api_key_is_used_but_not_shown() {
    for key in ["embedder_key", "openai_api_key", "upstream_key"] {
        let variable = format!("STRATA_{}", key.to_uppercase());
        let environment = vec![(variable.clone(), "sk-secret".into())];
        let config = Config::load(&Sources { environment, ..sources() }).unwrap();
        let given = [&config.models.embedder_key, &config.learning.key, &config.server.proxy.upstream_key]
            .into_iter();
        assert_eq!(given.flatten().collect::<Vec<_>>(), [&Secret::new("sk-secret")]);
        assert_eq!((shown(&config, key).as_str(), config.origin(key)), ("(hidden)", variable.as_str()));
        assert!(!format!("{config:?}").contains("sk-secret"));
        let error = with_file(&format!("{key} = ['sk-secret']\n")).unwrap_err();
        assert!(
            error.message().contains("one plain value") && !error.message().contains("sk-secret"),
            "{error}"
        );
    }
}

#[test]
fn numbers_and_texts_of_a_file_are_both_read() {
    let config = with_file("max_turn_bytes = \"2048\"\nmin_similarity = 1\ndata_dir = \"2024\"\n").unwrap();
    assert_eq!(config.engine.limits.max_turn_bytes, 2048);
    assert_eq!(config.engine.recall.min_similarity, 1.0);
    assert_eq!(config.store, StoreUrl::Sqlite("2024/strata.db".into()));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let broken = file("listen = \n");
    let message = refused(&Sources { file: Some(broken.path().to_owned()), ..sources() });
    assert!(message.contains("is no TOML") && message.contains(broken.path().to_str().unwrap()), "{message}");
    let list = file("listen = ['a']\n");
    let message = refused(&Sources { file: Some(list.path().to_owned()), ..sources() });
    assert!(message.contains("`listen`") && message.contains("one plain value"), "{message}");
    let message = refused(&Sources { file: Some("/nowhere/strata.toml".into()), ..sources() });
    assert!(message.contains("`/nowhere/strata.toml` cannot be read"), "{message}");
}

#[test]
fn a_learning_model_is_named_in_two_ways() {
    let remote = |url: &str, model: &str| LearnModel::Remote { url: url.to_owned(), model: model.to_owned() };
    let check = |flags: &[(&str, &str)], expected: LearnModel| {
        assert_eq!(with_flags(flags).unwrap().learning.model(), expected, "{flags:?}");
    };
    let base = ("openai_base_url", "https://host/v1");
    check(&[base], remote("https://host/v1", DEFAULT_MODEL));
    check(&[base, ("memory_model", "mini")], remote("https://host/v1", "mini"));
    check(&[base, ("learn.model", "builtin")], LearnModel::Builtin);
    check(&[base, ("learn.model", "http://127.0.0.1:1#own")], remote("http://127.0.0.1:1", "own"));
    assert_eq!(with_flags(&[base]).unwrap().learning.workers(), 4);
    assert_eq!(with_flags(&[base, ("learn.workers", "2")]).unwrap().learning.workers(), 2);
}

#[test]
fn reranking_is_known_by_its_former_name_too() {
    let rerank = |flags: &[(&str, &str)]| {
        let config = with_flags(flags).unwrap();
        (config.engine.recall.rerank, shown(&config, "recall.rerank"))
    };
    assert_eq!(rerank(&[]), (false, "off".to_owned()));
    assert_eq!(rerank(&[("recall.rerank", "reader")]), (true, "reader".to_owned()));
    assert_eq!(rerank(&[("reranker", "onnx:/m")]), (true, "onnx:/m".to_owned()));
    assert!(!rerank(&[("reranker", "none")]).0);
    refused_flag("recall.rerank", "always", "`off`, `reader` or `onnx:DIR`");
}

#[test]
fn instructions_come_from_a_file_or_as_they_are() {
    let file = file("only places");
    let named = format!("file:{}", file.path().display());
    let config =
        with_flags(&[("learn.extract_prompt", &named), ("learn.reconcile_prompt", "be strict")]).unwrap();
    assert_eq!(config.engine.learn.extract_prompt.as_deref(), Some("only places"));
    assert_eq!(config.engine.learn.reconcile_prompt.as_deref(), Some("be strict"));
    assert_eq!(shown(&config, "learn.extract_prompt"), named);
}

#[test]
fn summaries_have_the_names_of_the_designs() {
    let flags = [
        ("enable_summarization", "false"),
        ("memory_rolling_window_size", "6"),
        ("memory_summarize_after_seq", "0"),
        ("summarise_every_user_turns", "4"),
        ("summary_prompt.brief", "short"),
    ];
    let summaries = with_flags(&flags).unwrap().engine.learn.summaries;
    assert!(!summaries.enable_summarization);
    let window = WindowSettings {
        memory_rolling_window_size: 6,
        memory_summarize_after_seq: 0,
        summarise_every_user_turns: 4,
    };
    assert_eq!(summaries.window, window);
    assert_eq!(summaries.prompts, SummaryPrompts::default().with(SummaryPrompt::Brief, "short"));
}

#[test]
fn the_documented_profile_is_read() {
    let page = include_str!("../../../../docs/prompt.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let config = with_file(example).unwrap();
    let names: Vec<_> = config.prompts.profiles.iter().map(|profile| profile.name.as_str()).collect();
    assert_eq!((config.prompts.max_tokens, names), (6_000, vec!["support"]));
    assert_eq!(shown(&config, "prompt.profiles"), "support");
}

#[test]
fn the_proxy_is_configured() {
    let config = with_flags(&[("upstream", "https://api.openai.com")]).unwrap();
    assert_eq!(config.server.proxy.upstream, Some("https://api.openai.com/v1".parse().unwrap()));
    let error = with_flags(&[("upstream", "api.openai.com")]).unwrap_err();
    assert!(error.message().contains("https://api.openai.com/v1"), "{error}");
    assert!(with_flags(&[("memory_deadline_ms", "0")]).is_err());
    assert_eq!(with_flags(&[("upstream", "")]).unwrap().server.proxy.upstream, None);
}

#[test]
fn several_upstreams_are_configured() {
    let file = r#"
        [[upstream]]
        match = "claude-*"
        url = "https://api.anthropic.com"
        dialect = "anthropic"
        key = "sk-ant-7"

        [[upstream]]
        match = ["llama*", "qwen*"]
        url = "http://127.0.0.1:11434"
        dialect = "ollama"
        timeout_secs = 30
        retries = 2

        [[upstream]]
        url = "https://api.openai.com/v1"
    "#;
    let config = with_file(file).unwrap();
    let upstreams = &config.server.proxy.upstreams;
    assert_eq!(upstreams.len(), 3);
    assert_eq!(upstreams[0].key, Some(Secret::new("sk-ant-7")));
    assert_eq!(upstreams[1].timeout, Some(Duration::from_secs(30)));
    assert_eq!([0, 1, 2].map(|place| upstreams[place].retries), [0, 2, 0]);
    assert_eq!(upstreams[2].models, [ModelPattern::new("*")]);
    let listed = shown(&config, "upstream");
    assert!(listed.contains("https://api.anthropic.com") && !listed.contains("sk-ant-7"), "{listed}");
    let of = |model: &str| config.server.proxy.upstream_of(model).unwrap().url.to_string();
    assert_eq!(of("claude-x"), "https://api.anthropic.com/v1");
    assert_eq!(of("gpt-5"), "https://api.openai.com/v1");
    for (wrong, says) in [
        ("[[upstream]]\nmatch = \"a\"", "url"),
        ("[[upstream]]\nurl = \"host\"", "https://api.openai.com/v1"),
        ("[[upstream]]\nurl = \"http://a\"\nmatch = []", "`match`"),
        ("[[upstream]]\nurl = \"http://a\"\ndialect = \"soap\"", "soap"),
        ("[[upstream]]\nurl = \"http://a\"\nkey = \"a\"\nkey_env = \"B\"", "several keys"),
        ("[[upstream]]\nurl = \"http://a\"\nkey_env = \"NO_SUCH_VARIABLE_HERE\"", "NO_SUCH_VARIABLE_HERE"),
        ("[[upstream]]\nurl = \"http://a\"\nkey_file = \"no/such/file\"", "no/such/file"),
        ("[[upstream]]\nurl = \"http://a\"\ntimeout_secs = 0", "timeout_secs"),
        ("[[upstream]]\nurl = \"http://a\"\nretries = 9", "retries"),
        ("[[upstream]]\nurl = \"http://a\"\nproxy = \"socks5://p\"", "http://proxy.example:3128"),
        ("[[upstream]]\nurl = \"http://a\"\nca_file = \"no/such.pem\"", "no/such.pem"),
        ("upstream = 5", "upstream"),
    ] {
        let error = with_file(wrong).unwrap_err();
        assert!(error.message().contains(says), "{wrong}: {error}");
    }
}

#[test]
fn the_key_of_an_upstream_comes_from_the_environment_or_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "sk-from-a-file\n").unwrap();
    // A variable that cargo sets for every test.
    let text = format!(
        "[[upstream]]\nmatch = \"a*\"\nurl = \"http://a\"\nkey_env = \"CARGO_PKG_NAME\"\n\
         [[upstream]]\nmatch = \"b*\"\nurl = \"http://b\"\nkey_file = \"{}\"\n\
         [[upstream]]\nurl = \"https://c\"\nproxy = \"https://ann:pass-77@proxy:3129\"",
        file.display()
    );
    let config = with_file(&text).unwrap();
    let upstreams = &config.server.proxy.upstreams;
    assert_eq!(upstreams[0].key, Some(Secret::new(env!("CARGO_PKG_NAME"))));
    assert_eq!(upstreams[1].key, Some(Secret::new("sk-from-a-file")), "without the end of its line");
    assert_eq!(upstreams[2].key, None);
    assert_eq!(upstreams[2].transport.proxy.as_ref().unwrap().to_string(), "https://proxy:3129");
    assert!(!shown(&config, "upstream").contains("sk-from-a-file"));
}

#[test]
fn the_way_to_an_upstream_is_configured() {
    let config = with_flags(&[("upstream_proxy", "http://ann:pass-77@proxy:3128")]).unwrap();
    let proxy = &config.server.proxy;
    assert_eq!(proxy.upstream_transport.proxy.as_ref().unwrap().to_string(), "http://proxy:3128");
    assert_eq!(shown(&config, "upstream_proxy"), "(hidden)");
    assert!(!format!("{config:?}").contains("pass-77"), "the password is not printed");
    let config =
        with_file("[[upstream]]\nurl = \"http://a\"\nproxy = \"http://ann:pass-77@proxy:3128\"").unwrap();
    let shown_proxy = config.server.proxy.upstreams[0].transport.proxy.as_ref().unwrap().to_string();
    assert_eq!(shown_proxy, "http://proxy:3128");
    assert!(!shown(&config, "upstream").contains("pass-77"));
    refused_flag("upstream_proxy", "proxy:3128", "setting `upstream_proxy` has a wrong value");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.pem");
    std::fs::write(&file, "no certificate here").unwrap();
    let error = with_flags(&[("upstream_ca_file", file.to_str().unwrap())]).unwrap_err();
    assert!(error.message().contains("empty.pem"), "{error}");
    let error = with_flags(&[("upstream_ca_file", "no/such.pem")]).unwrap_err();
    assert!(error.message().contains("no/such.pem"), "{error}");
}

#[test]
fn host_names_and_origins_are_exact() {
    let load = |key: &str, value: &str| with_flags(&[(key, value)]);
    let config = load("allowed_hosts", "memory.example.com, [2001:db8::1],10.0.0.7").unwrap();
    assert_eq!(config.server.allowed_hosts, ["memory.example.com", "[2001:db8::1]", "10.0.0.7"]);
    let config = load("cors_origins", "https://app.example.com,http://localhost:3000").unwrap();
    assert_eq!(config.server.cors_origins, ["https://app.example.com", "http://localhost:3000"]);
    assert!(load("cors_origins", "").unwrap().server.cors_origins.is_empty());
    for wrong in ["https://a.example", "a.example:443", "*", "[::1", "a b"] {
        let expected = format!(
            "setting `allowed_hosts` has a wrong value `ok,{wrong}`, from --allowed-hosts; for the entry `{wrong}`, use"
        );
        refused_flag("allowed_hosts", &format!("ok,{wrong}"), &expected);
    }
    for wrong in [
        "*",
        "null",
        "app.example",
        "https://app.example/",
        "https://App.example",
        "https://*.example",
        "ftp://a",
    ] {
        assert!(load("cors_origins", wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_trial_asks_no_other_machine_and_lets_none_in() {
    let person = with_flags(&[
        ("listen", "0.0.0.0:9000"),
        ("allowed_hosts", "memory.example"),
        ("cors_origins", "https://example.com"),
        ("embedder", "https://api.example/v1#small"),
        ("embedding_model", "large"),
        ("recall.rerank", "onnx:/m"),
        ("learn.model", "https://api.example/v1#big"),
        ("upstream", "https://api.example/v1"),
        ("log", "debug"),
    ])
    .unwrap();
    let trial = person.on_its_own(StoreUrl::Memory).unwrap();
    assert_eq!((trial.listen.to_string().as_str(), trial.server.reach), ("127.0.0.1:9000", Reach::Loopback));
    assert_eq!((&trial.server.allowed_hosts, &trial.server.cors_origins), (&vec![], &vec![]));
    assert_eq!((&trial.models, &trial.learning), (&Models::default(), &Learning::default()));
    assert!(trial.chat_model().unwrap().is_none() && trial.learn_model().unwrap().is_none());
    assert_eq!((trial.store, trial.log.as_deref()), (StoreUrl::Memory, Some("debug")));
    let less = with_flags(&[("embedder", "words"), ("learn.reader", "off")]).unwrap();
    let trial = less.on_its_own(StoreUrl::Memory).unwrap();
    assert_eq!((trial.models.embedder, trial.learning.reader), (EmbedderChoice::Words, ReaderChoice::Off));
}

/// Each setting with values of every kind of TOML, and with what is no TOML: read or refused, and nothing panics.
#[test]
fn a_settings_file_with_any_values_is_read_or_refused() {
    let odd = [
        "-1",
        "0",
        "9223372036854775807",
        "18446744073709551616",
        "1e308",
        "nan",
        "-inf",
        "true",
        "\"\"",
        "\"\\u0000\"",
        "\"\\uD7FF://[::1]:99999/%zz?#\"",
        "[]",
        "[[1], \"a\"]",
        "{ a = { b = 1 } }",
        "2026-02-30",
        "1979-05-27T07:32:00-23:59",
        "'''",
    ];
    let mut refused = 0;
    for entry in entries() {
        for value in odd {
            refused += usize::from(with_file(&format!("{} = {value}", entry.name)).is_err());
        }
    }
    // No setting takes all kinds of values.
    assert!(refused > entries().count() * 5, "{refused}");
    for text in
        ["= 1", "[", "[a", "\u{feff}store = 1", "store = \"a\"\nstore = \"b\"", "a\0b = 1", "[[store]]"]
    {
        assert!(with_file(text).is_err(), "{text:?}");
    }
}

/// The report of a program with these settings and parts, for its advice alone.
fn advice_of(config: &Config, has_models: bool) -> Vec<Trigger> {
    let Settings { embed, recall, learn, .. } = config.engine.clone();
    let (embeds, reranks, learns_by_model) = (has_models, has_models, has_models);
    let in_force = InForce { embeds, reranks, learns_by_model, embed, recall, learn };
    let period =
        Period { since: jiff::Timestamp::UNIX_EPOCH, until: jiff::Timestamp::from_second(9_999).unwrap() };
    Report::of(&ReportRows { in_force, ..ReportRows::default() }, period).triggers
}

/// The lines of `strata.toml` that an advice names, with a real model for its placeholders.
fn advised_lines(trigger: &Trigger) -> Vec<String> {
    let quoted = trigger.change.split('`').skip(1).step_by(2).filter(|part| part.contains(" = "));
    quoted
        .map(|part| part.replace("URL#MODEL", "https://models.example/v1#owl").replace("DIR", "/srv/owl"))
        .collect()
}

#[track_caller]
fn advice_is_accepted(base: &str, has_models: bool) {
    let config = with_file(base).unwrap();
    for trigger in advice_of(&config, has_models) {
        assert!(entries().any(|entry| entry.name == trigger.setting), "`{}` is no setting", trigger.setting);
        assert!(!trigger.cost.is_empty());
        for line in advised_lines(&trigger) {
            let changed = with_file(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let (key, _) = line.split_once(" = ").unwrap();
            assert_ne!(shown(&changed, key), shown(&config, key), "{line} is in force already");
        }
    }
}

#[test]
fn the_advice_of_reports_names_settings_with_values_that_they_accept() {
    for has_models in [false, true] {
        let base = if has_models {
            "embedder = \"builtin\"\nrecall.rerank = \"reader\"\n"
        } else {
            "embedder = \"words\"\n"
        };
        for rest in [
            "",
            "max_context_tokens = 4000\nmax_context_turns = 12\nmax_item_chars = 90\nscore_threshold = 0.07",
            "max_context_tokens = 10000000\nmax_context_turns = 1000\nmax_item_chars = 10000000\ndefault_top_k = 1000",
            "score_threshold = 0.0\ndefault_top_k = 600\nindex_bytes = 9223372036854775807\nembed = \"all\"",
            "index_bytes = 0\nsummarise_every_user_turns = 0",
            "memory_summarize_after_seq = 0\nsummarise_every_user_turns = 0\nlearn.enabled = false",
            "memory_summarize_after_seq = 0\nsummarise_every_user_turns = 260",
        ] {
            advice_is_accepted(&format!("{base}{rest}"), has_models);
        }
    }
}
