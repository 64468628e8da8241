//! `strata keys`: creates, lists and revokes API keys.
//!
//! A running server on the same store sees a change within a second.

use std::fmt::Display;
use std::str::FromStr;

use clap::Subcommand;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::json;
use strata::SystemSecrets;
use strata_core::key::{ApiKey, KeyLimits, KeyState, Scopes};
use strata_core::moment::parse_as_of;
use strata_core::scope::RecallScope;
use strata_core::store::{KeyQuery, Page};
use strata_core::{KeyId, UserId};
use strata_engine::Engine;
use strata_engine::NewKey;

use super::ids::{self, IdText};
use super::{Context, JsonArgs, PageArgs};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, note};

/// Create, list and revoke API keys
///
/// As soon as the store has a key, the server requires a key for every request.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata keys create --user ada --expires 90d\n  strata keys list")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Create(CreateArgs),
    /// List keys, newest first
    #[command(after_help = "Example:\n  strata keys list --user ada --all")]
    List {
        /// Only keys of this user; `*` for keys that are bound to no user
        #[arg(long, value_name = "USER", value_parser = parse_owner)]
        user: Option<UserId>,
        /// Include revoked keys
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        page: PageArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Revoke a key permanently
    #[command(after_help = "Example:\n  strata keys revoke 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e")]
    Revoke {
        /// The id of the key, or its last characters, from `strata keys list`
        #[arg(value_name = "ID")]
        id: IdText,
        #[command(flatten)]
        json: JsonArgs,
    },
}

/// Create a key and print its secret once
///
/// Only the secret goes to stdout, so that a script can read it. Strata stores only its hash.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  strata keys create --user ada --scopes read --expires 90d --name laptop\n  \
                        strata keys create --user '*' --name gateway --rate 600/min --concurrency 32"
)]
struct CreateArgs {
    /// The user of the key; `*` for a gateway that names a user in each request
    #[arg(long, value_name = "USER", value_parser = parse_owner, required_unless_present = "admin")]
    user: Option<UserId>,
    /// The scopes of the key: `read`, `write`, `admin`, separated by commas
    #[arg(long, value_name = "SCOPES", default_value = "read,write")]
    scopes: Scopes,
    /// An administrator's key: short for `--user '*' --scopes read,write,admin`
    #[arg(long, conflicts_with_all = ["user", "scopes"])]
    admin: bool,
    /// When the key expires: `90d`, `12h`, `30m`, `45s`, a date (at the end of the day, UTC) or an RFC 3339 time
    #[arg(long, value_name = "WHEN")]
    expires: Option<Expiry>,
    /// A name or purpose, for your own reference
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The maximum number of requests per minute
    #[arg(long, value_name = "N/min", value_parser = parse_rate)]
    rate: Option<u32>,
    /// The maximum number of concurrent requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: Option<u32>,
    /// How far the key's questions in a session look: `session` or `user`, instead of the setting `recall.scope`
    #[arg(long, value_name = "SCOPE")]
    recall_scope: Option<RecallScope>,
    #[command(flatten)]
    json: JsonArgs,
}

/// When a key expires.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Expiry {
    In(SignedDuration),
    At(Timestamp),
}

impl FromStr for Expiry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [('d', 24 * 60 * 60), ('h', 60 * 60), ('m', 60), ('s', 1)];
        let seconds = units.into_iter().find_map(|(unit, seconds)| {
            let number: u32 = text.strip_suffix(unit)?.parse().ok()?;
            Some(i64::from(number) * seconds)
        });
        match seconds {
            Some(seconds) if seconds > 0 => Ok(Self::In(SignedDuration::from_secs(seconds))),
            _ => parse_as_of(text)
                .map(Self::At)
                .map_err(|error| format!("{error}, or `90d`, `12h`, `30m`, `45s`")),
        }
    }
}

/// Reads a user's name, or `*` for no user.
fn parse_owner(name: &str) -> Result<UserId, strata_core::Error> {
    if name == UserId::global().as_str() { Ok(UserId::global()) } else { UserId::new(name) }
}

/// Reads a number of requests per minute.
fn parse_rate(text: &str) -> Result<u32, String> {
    match text.strip_suffix("/min").unwrap_or(text).parse() {
        Ok(rate) if rate > 0 => Ok(rate),
        _ => Err("give a positive whole number of requests per minute, as in `60/min`".to_owned()),
    }
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    match args.action {
        Action::Create(args) => create(args, &context.engine_to_write().await?, output).await,
        Action::List { user, all, page, json } => {
            let engine = context.engine_to_read().await?;
            let query = KeyQuery { id: None, user, revoked: all, page: page.into() };
            let keys = engine.keys.list(&query).await?;
            list(&keys, engine.now(), json, output)
        }
        Action::Revoke { id, json } => {
            let engine = context.engine_to_read().await?;
            revoke(ids::key(&engine, &id).await?, &engine, json, output).await
        }
    }
}

async fn create(args: CreateArgs, engine: &Engine, output: &mut Output) -> Outcome {
    let CreateArgs { user, scopes, admin, expires, name, rate, concurrency, recall_scope, json } = args;
    let (user, scopes) = if admin { (Some(UserId::global()), Scopes::ALL) } else { (user, scopes) };
    let user = user.ok_or_else(|| Failure::usage("the user is missing; add `--user NAME`"))?;
    let now = engine.now();
    let expires_at = match expires {
        Some(Expiry::At(moment)) => Some(moment),
        Some(Expiry::In(duration)) => Some(now.checked_add(duration).map_err(|_| {
            Failure::usage("the expiry is too far in the future; give an earlier one, or none")
        })?),
        None => None,
    };
    let limits = KeyLimits { per_minute: rate, concurrent: concurrency };
    let new = NewKey { user, name, scopes, expires_at, limits, recall_scope };
    let (key, secret) = engine.keys.create(new, &SystemSecrets).await?;
    if json.json {
        output.json(&KeyJson { key: Some(secret.reveal()), ..KeyJson::new(&key, now) })?;
        return Ok(());
    }
    output.line(secret.reveal())?;
    output.flush()?;
    note(format_args!(
        "The secret is shown only once; store it now. Key `{}` of {} permits {}{}; `strata keys revoke {}` revokes it.",
        key.id,
        owner(&key),
        key.scopes.to_string().replace(',', ", "),
        key.expires_at.map_or_else(String::new, |end| format!(" until {end}")),
        key.id
    ));
    Ok(())
}

fn list(keys: &[ApiKey], now: Timestamp, json: JsonArgs, output: &mut Output) -> Outcome {
    if json.json {
        let keys: Vec<_> = keys.iter().map(|key| KeyJson::new(key, now)).collect();
        output.json(&json!({ "keys": keys }))?;
        return Ok(());
    }
    if keys.is_empty() {
        note("no keys match");
        return Ok(());
    }
    let rows: Vec<_> = keys.iter().map(|key| row(key, now)).collect();
    output.table(["ID", "KEY", "USER", "STATE", "SCOPES", "EXPIRES", "LIMITS", "NAME"], &rows)?;
    Ok(())
}

fn row(key: &ApiKey, now: Timestamp) -> [String; 8] {
    let shown = |value: Option<&dyn Display>| value.map_or_else(|| "-".to_owned(), ToString::to_string);
    let KeyLimits { per_minute, concurrent } = key.limits;
    let limits =
        [per_minute.map(|limit| format!("{limit}/min")), concurrent.map(|limit| format!("{limit} at once"))];
    let recall = key.recall_scope.map(|scope| format!("recall {}", scope.as_str()));
    let limits: Vec<String> = limits.into_iter().flatten().chain(recall).collect();
    [
        key.id.to_string(),
        format!("{}…", key.prefix),
        key.user.to_string(),
        key.state(now).as_str().to_owned(),
        key.scopes.to_string(),
        shown(key.expires_at.as_ref().map(|end| end as &dyn Display)),
        if limits.is_empty() { "-".to_owned() } else { limits.join(", ") },
        key.name.clone().unwrap_or_default(),
    ]
}

async fn revoke(id: KeyId, engine: &Engine, json: JsonArgs, output: &mut Output) -> Outcome {
    let key = engine.keys.revoke(id).await?;
    if json.json {
        output.json(&KeyJson::new(&key, engine.now()))?;
    } else {
        output.line(format_args!("revoked `{}…` of {}", key.prefix, owner(&key)))?;
    }
    if engine.keys.list(&KeyQuery::unrevoked(Page::first(1))).await?.is_empty() {
        note(
            "No key is left. On loopback, Strata answers every program on this machine again; on other addresses it refuses all requests.",
        );
    }
    Ok(())
}

fn owner(key: &ApiKey) -> String {
    if key.is_unbound() { "no user".to_owned() } else { format!("user `{}`", key.user) }
}

/// A key as JSON, without its hash.
#[derive(Debug, Serialize)]
struct KeyJson<'a> {
    id: KeyId,
    /// The secret, only when the key is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    prefix: &'a str,
    user_id: Option<&'a UserId>,
    name: Option<&'a str>,
    scopes: Vec<String>,
    state: KeyState,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
    per_minute: Option<u32>,
    concurrent: Option<u32>,
    recall_scope: Option<RecallScope>,
}

impl<'a> KeyJson<'a> {
    fn new(key: &'a ApiKey, now: Timestamp) -> Self {
        Self {
            id: key.id,
            key: None,
            prefix: &key.prefix,
            user_id: (!key.is_unbound()).then_some(&key.user),
            name: key.name.as_deref(),
            scopes: key.scopes.to_string().split(',').map(str::to_owned).collect(),
            state: key.state(now),
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            per_minute: key.limits.per_minute,
            concurrent: key.limits.concurrent,
            recall_scope: key.recall_scope,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_duration_or_a_time() {
        let hours = |hours| Ok(Expiry::In(SignedDuration::from_hours(hours)));
        assert_eq!("90d".parse::<Expiry>(), hours(90 * 24));
        assert_eq!("12h".parse::<Expiry>(), hours(12));
        assert_eq!("30m".parse::<Expiry>(), Ok(Expiry::In(SignedDuration::from_mins(30))));
        assert_eq!("45s".parse::<Expiry>(), Ok(Expiry::In(SignedDuration::from_secs(45))));
        let day = parse_as_of("2026-12-31").unwrap();
        assert_eq!("2026-12-31".parse::<Expiry>(), Ok(Expiry::At(day)));
        for wrong in ["", "d", "0d", "0m", "-1d", "1.5d", "90", "90 d", "1y", "tomorrow", "99999999999d"] {
            let error = wrong.parse::<Expiry>().unwrap_err();
            assert!(error.contains("`90d`"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_rate_is_a_number_per_minute() {
        assert_eq!(parse_rate("60/min"), Ok(60));
        assert_eq!(parse_rate("60"), Ok(60));
        for wrong in ["0", "0/min", "-1", "60/s", "many", "4294967296"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }
}
