//! `strata keys`: make, list and revoke API keys.
//!
//! A running server on the same store knows of it within a second.

use std::fmt::Display;
use std::str::FromStr;

use clap::Subcommand;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::json;
use strata::SystemSecrets;
use strata_core::key::{ApiKey, KeyLimits, KeyState, Scopes};
use strata_core::moment::parse_as_of;
use strata_core::store::{KeyQuery, Page};
use strata_core::{KeyId, UserId};
use strata_engine::Engine;
use strata_engine::NewKey;

use super::{Context, JsonArgs, PageArgs};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, note};

/// Make, list and revoke API keys
///
/// From the first key on, the server answers nobody without one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata keys create --user ada --expires 90d\n  strata keys list")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Create(CreateArgs),
    /// List keys, the newest first
    #[command(after_help = "Example:\n  strata keys list --user ada --all")]
    List {
        /// Only those of this user; `*` for those that are bound to nobody
        #[arg(long, value_name = "USER", value_parser = parse_owner)]
        user: Option<UserId>,
        /// Also revoked ones
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        page: PageArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Take a key back, for good
    #[command(after_help = "Example:\n  strata keys revoke 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e")]
    Revoke {
        /// The key, as `strata keys list` shows it
        #[arg(value_name = "ID")]
        id: KeyId,
        #[command(flatten)]
        json: JsonArgs,
    },
}

/// Make a key and print its secret, once
///
/// The secret alone goes to stdout, so that a script can take it; Strata keeps nothing but its hash.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  strata keys create --user ada --scopes read --expires 90d --name laptop\n  \
                        strata keys create --user '*' --name gateway --rate 600/min --concurrency 32"
)]
struct CreateArgs {
    /// Whom the key speaks for; `*` for a gateway that names its user in each request
    #[arg(long, value_name = "USER", value_parser = parse_owner, required_unless_present = "admin")]
    user: Option<UserId>,
    /// What it may do: `read`, `write`, `admin`, with commas between
    #[arg(long, value_name = "SCOPES", default_value = "read,write")]
    scopes: Scopes,
    /// Bound to nobody, with every scope: `--user '*' --scopes read,write,admin`
    #[arg(long, conflicts_with_all = ["user", "scopes"])]
    admin: bool,
    /// Until when it is good: `90d`, `12h`, `30m`, `45s`, a date (all of its day, UTC) or a time as in RFC 3339
    #[arg(long, value_name = "WHEN")]
    expires: Option<Expiry>,
    /// What it is for, in your words
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How many requests it may make in a minute
    #[arg(long, value_name = "N/min", value_parser = parse_rate)]
    rate: Option<u32>,
    /// How many requests it may have under way at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: Option<u32>,
    #[command(flatten)]
    json: JsonArgs,
}

/// When a key ends.
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

/// A user, or the one that stands for none.
fn parse_owner(name: &str) -> Result<UserId, strata_core::Error> {
    if name == UserId::global().as_str() { Ok(UserId::global()) } else { UserId::new(name) }
}

/// Requests a minute.
fn parse_rate(text: &str) -> Result<u32, String> {
    match text.strip_suffix("/min").unwrap_or(text).parse() {
        Ok(rate) if rate > 0 => Ok(rate),
        _ => Err("give a whole number of requests a minute, as in `60/min`".to_owned()),
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
        Action::Revoke { id, json } => revoke(id, &context.engine_to_read().await?, json, output).await,
    }
}

async fn create(args: CreateArgs, engine: &Engine, output: &mut Output) -> Outcome {
    let CreateArgs { user, scopes, admin, expires, name, rate, concurrency, json } = args;
    let (user, scopes) = if admin { (Some(UserId::global()), Scopes::ALL) } else { (user, scopes) };
    let user = user.ok_or_else(|| Failure::usage("whom the key speaks for is missing; add `--user NAME`"))?;
    let now = engine.now();
    let expires_at = match expires {
        Some(Expiry::At(moment)) => Some(moment),
        Some(Expiry::In(duration)) => Some(now.checked_add(duration).map_err(|_| {
            Failure::usage("the key would outlive the calendar; give an earlier end, or none")
        })?),
        None => None,
    };
    let limits = KeyLimits { per_minute: rate, concurrent: concurrency };
    let new = NewKey { user, name, scopes, expires_at, limits };
    let (key, secret) = engine.keys.create(new, &SystemSecrets).await?;
    if json.json {
        output.json(&KeyJson { key: Some(secret.reveal()), ..KeyJson::new(&key, now) })?;
        return Ok(());
    }
    output.line(secret.reveal())?;
    output.flush()?;
    note(format_args!(
        "This is shown once: keep it. Key `{}` of {} may {}{}; `strata keys revoke {}` takes it back.",
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
        note("there are no such keys");
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
    let limits: Vec<String> = limits.into_iter().flatten().collect();
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
            "No key is left: on loopback Strata answers every program on this machine again, and elsewhere it answers nobody.",
        );
    }
    Ok(())
}

fn owner(key: &ApiKey) -> String {
    if key.is_unbound() { "no user".to_owned() } else { format!("user `{}`", key.user) }
}

/// A key for a program. Its hash is nobody's business.
#[derive(Debug, Serialize)]
struct KeyJson<'a> {
    id: KeyId,
    /// The secret, when it is made and never again.
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_span_or_a_moment() {
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
    fn a_rate_is_a_number_a_minute() {
        assert_eq!(parse_rate("60/min"), Ok(60));
        assert_eq!(parse_rate("60"), Ok(60));
        for wrong in ["0", "0/min", "-1", "60/s", "many", "4294967296"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }
}
