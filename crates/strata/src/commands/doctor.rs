//! `strata doctor`: checks the configuration, the file, the index and the disk, and advises what to do.

mod background;
mod memories;
mod mending;
mod repair;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use strata::SystemClock;
use strata::config::{LearnModel, StoreUrl};
use strata_core::job::JobStatus;
use strata_core::key::KeyState;
use strata_core::ports::{Clock, Embedder};
use strata_core::store::{CheckDepth, Health, JobQuery, KeyQuery, Page};
use strata_core::{Store, UserId};
use strata_engine::index::SEGMENT_SPACE;
use strata_engine::{CLIENTS_SPACE, MODEL_FAILED};

use super::{Context, JsonArgs, serve};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, counted};

/// Check the configuration, the store, its index and the disk
///
/// Exits with 1 if there is a problem, and says what to do about it. With `--memories`, examines the memories instead and
/// offers to mend what it finds.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata doctor --store sqlite:strata.db\n  strata doctor --memories --user ada\n  \
                  strata doctor --memories --from mem0.json --to mended.json"
)]
pub(crate) struct Args {
    /// Skip the checks that read the whole store
    #[arg(long)]
    quick: bool,
    /// Put every row that cannot be read aside, into a table of its own, before the checks
    ///
    /// The rows are kept as they are; `--quarantine` shows them.
    #[arg(long, conflicts_with = "quick")]
    repair: bool,
    /// Show the rows that were put aside, one JSON object a line, instead of the checks
    #[arg(long, conflicts_with_all = ["quick", "repair"])]
    quarantine: bool,
    /// Examine the memories: duplicates, missed contradictions, junk, stale todos, memories never recalled, and secrets
    #[arg(long, conflicts_with = "quick")]
    memories: bool,
    /// Examine the memories of this mem0 export instead of the store's
    #[arg(long, value_name = "FILE", requires = "memories")]
    from: Option<PathBuf>,
    /// Write the export without what was mended to this file; it must not exist
    #[arg(long, value_name = "FILE", requires = "from")]
    to: Option<PathBuf>,
    /// Mend everything that has a safe remedy without asking
    #[arg(long, requires = "memories")]
    yes: bool,
    /// Only memories of this user [default: all users]
    #[arg(long, value_name = "USER", requires = "memories")]
    user: Option<UserId>,
    #[command(flatten)]
    json: JsonArgs,
}

/// The free space below which the next writes may fail.
const DISK_PROBLEM_BYTES: u64 = 64 * 1024 * 1024;
/// The free space below which the doctor warns.
const DISK_WARNING_BYTES: u64 = 1024 * 1024 * 1024;

/// The number of a user's last jobs that show how the learning model does.
const JOBS_A_USER: u32 = 50;

/// The number of users that are read at once.
const USERS_A_PAGE: u32 = 500;

/// The number of changes of a user that may wait for the next segment: one less than the 64 items of a segment.
const SEGMENT_SLACK: u64 = 63;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum Status {
    Ok,
    Warning,
    Problem,
}

impl Status {
    fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    status: Status,
    found: String,
}

/// The counts of the store, as JSON.
#[derive(Debug, Serialize)]
struct StoreJson {
    format_version: u32,
    users: u64,
    sessions: u64,
    turns: u64,
    memories: u64,
    unindexed: u64,
    bytes: u64,
}

impl StoreJson {
    fn new(health: &Health) -> Self {
        let Health { format_version, users, sessions, turns, memories, unindexed, bytes, .. } = *health;
        Self { format_version, users, sessions, turns, memories, unindexed, bytes }
    }
}

impl Finding {
    fn new(check: &'static str, status: Status, found: impl Into<String>) -> Self {
        Self { check, status, found: found.into() }
    }
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    if args.quarantine {
        return repair::show(context, output).await;
    }
    if args.memories {
        return Box::pin(memories::run(args, context, output)).await;
    }
    let mut findings = check_configuration(context);
    if args.repair {
        findings.push(repair::run(context).await?);
    }
    let mut health = None;
    let embedder = strata::embedder(&context.config);
    findings.push(check_embedder(&embedder));
    if let Some(path) = context.config.store.path() {
        if !matches!(context.config.store, StoreUrl::Vault(_)) {
            findings.push(check_file(path));
        }
        findings.extend(check_disk(path));
    }
    if context.config.store == StoreUrl::Memory {
        findings.push(Finding::new(
            "store",
            Status::Warning,
            "`memory:` loses all data when the server stops",
        ));
    } else if let Some(other) = context.other_folder() {
        findings.push(Finding::new("store", Status::Problem, other));
    } else if serve::has_store(&context.config) {
        let depth = if args.quick { CheckDepth::Quick } else { CheckDepth::Thorough };
        match check_store(context, depth, embedder.ok().flatten()).await {
            Ok((found, more)) => {
                findings.extend(more);
                health = Some(found);
            }
            Err(error) => findings.push(Finding::new("store", Status::Problem, chain(&error))),
        }
    }
    report(&findings, health.as_ref(), &args, output)
}

/// Reports a configuration that cannot be used.
pub(crate) fn report_configuration(error: &strata_core::Error, args: &Args, output: &mut Output) -> Outcome {
    let findings: Vec<_> =
        chain(error).lines().map(|line| Finding::new("configuration", Status::Problem, line)).collect();
    report(&findings, None, args, output)
}

fn report(findings: &[Finding], health: Option<&Health>, args: &Args, output: &mut Output) -> Outcome {
    let problems = findings.iter().filter(|finding| finding.status == Status::Problem).count();
    if args.json.json {
        output
            .json(&json!({ "ok": problems == 0, "checks": findings, "store": health.map(StoreJson::new) }))?;
    } else {
        let rows: Vec<_> = findings
            .iter()
            .map(|finding| {
                [finding.status.as_str().to_owned(), finding.check.to_owned(), finding.found.clone()]
            })
            .collect();
        output.table(["STATUS", "CHECK", "FOUND"], &rows)?;
    }
    match problems {
        0 => Ok(()),
        1 => Err(Failure::failed("1 problem was found")),
        _ => Err(Failure::failed(format!("{problems} problems were found"))),
    }
}

fn check_configuration(context: &Context) -> Vec<Finding> {
    let config = &context.config;
    let set = config.settings().iter().filter(|setting| !setting.origin.starts_with("default")).count();
    let mut findings = vec![Finding::new(
        "configuration",
        Status::Ok,
        format!(
            "{set} of {} settings differ from the defaults; `strata config` lists them",
            config.settings().len()
        ),
    )];
    if let Some(exposure) = serve::exposure(config)
        && !serve::has_store(config)
    {
        findings.push(Finding::new("configuration", Status::Problem, serve::refusal(&exposure)));
    }
    findings
}

/// Checks the file's metadata, before anything opens it.
fn check_file(path: &Path) -> Finding {
    let shown = path.display();
    let finding = |status, found: String| Finding::new("file", status, found);
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return finding(Status::Ok, format!("`{shown}` does not exist yet; the first write creates it"));
        }
        Err(error) => {
            let advice = "correct the path or its permissions";
            return finding(Status::Problem, format!("`{shown}` cannot be checked ({error}); {advice}"));
        }
    };
    if !metadata.is_file() {
        return finding(
            Status::Problem,
            format!("`{shown}` is not a file; name one with `--store sqlite:PATH`"),
        );
    }
    if metadata.permissions().readonly() {
        return finding(Status::Problem, format!("`{shown}` is read-only; make it writable"));
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::mode(&metadata) & 0o007 != 0 && directory_is_open(path) {
        return finding(
            Status::Warning,
            format!("every user of this machine can read `{shown}`; run `chmod 600` on it"),
        );
    }
    finding(Status::Ok, format!("`{shown}`, {}", size(metadata.len())))
}

/// Whether other users can open files in the file's directory.
#[cfg(unix)]
fn directory_is_open(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let directory = existing_directory(path);
    directory.metadata().is_ok_and(|metadata| metadata.mode() & 0o001 != 0)
}

/// The directory of `path`, or the nearest above it that exists.
fn existing_directory(path: &Path) -> &Path {
    path.ancestors()
        .skip(1)
        .map(|directory| if directory.as_os_str().is_empty() { Path::new(".") } else { directory })
        .find(|directory| directory.is_dir())
        .unwrap_or(Path::new("."))
}

#[cfg(unix)]
fn check_disk(path: &Path) -> Option<Finding> {
    let directory = existing_directory(path);
    let finding = |status, found: String| Some(Finding::new("disk", status, found));
    if rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).is_err() {
        return finding(
            Status::Problem,
            format!("`{}` cannot be written to; change its permissions or `--store`", directory.display()),
        );
    }
    let disk = match rustix::fs::statvfs(directory) {
        Ok(disk) => disk,
        Err(error) => return finding(Status::Warning, format!("the free space cannot be read ({error})")),
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let found = format!("{} are free in `{}`", size(free), directory.display());
    if free < DISK_PROBLEM_BYTES {
        let what = format!("only {found}; free some space, because writes are about to fail");
        return finding(Status::Problem, what);
    }
    if free < DISK_WARNING_BYTES {
        return finding(Status::Warning, format!("only {found}; free some space soon"));
    }
    finding(Status::Ok, found)
}

#[cfg(not(unix))]
fn check_disk(_path: &Path) -> Option<Finding> {
    None
}

/// Checks the embedder.
fn check_embedder(embedder: &strata_core::Result<Option<Arc<dyn Embedder>>>) -> Finding {
    match embedder {
        Ok(Some(embedder)) => Finding::new("embedder", Status::Ok, format!("`{}`", embedder.model())),
        Ok(None) => Finding::new("embedder", Status::Ok, "the built-in word vectors alone"),
        Err(error) => Finding::new("embedder", Status::Problem, chain(error)),
    }
}

async fn check_store(
    context: &Context,
    depth: CheckDepth,
    embedder: Option<Arc<dyn Embedder>>,
) -> strata_core::Result<(Health, Vec<Finding>)> {
    let store = super::progress::open_store(&context.config.store).await?;
    context.close_later(store.clone());
    let health = store.check(depth).await?;
    let mut findings = findings_of(&health);
    findings.extend(store.advice().iter().map(|advice| Finding::new("database", Status::Warning, advice)));
    findings.push(check_keys(context, store.as_ref()).await?);
    findings.extend(check_unnamed_clients(store.as_ref()).await?);
    findings.extend(check_learning_model(context, store.as_ref()).await?);
    findings.extend(background::check(store.as_ref()).await?);
    // These checks read each user, so they are part of the thorough check only.
    if depth == CheckDepth::Thorough {
        findings.extend(check_background_work(store.as_ref(), embedder).await?);
    }
    Ok((health, findings))
}

/// How far the background work is: vectors and segments.
async fn check_background_work(
    store: &dyn Store,
    embedder: Option<Arc<dyn Embedder>>,
) -> strata_core::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if let Some(embedder) = embedder {
        let state = describe(&behind(store, embedder.model(), 0).await?, "changes wait to be embedded");
        findings.push(Finding::new("vectors", Status::Ok, state));
    }
    // The last items of a user always wait until there are enough of them for a segment.
    let behind = behind(store, SEGMENT_SPACE, SEGMENT_SLACK).await?;
    findings.push(Finding::new("segments", Status::Ok, describe(&behind, "changes wait for a segment")));
    Ok(findings)
}

/// Checks who may call the server.
async fn check_keys(context: &Context, store: &dyn Store) -> strata_core::Result<Finding> {
    let keys = store.keys(&KeyQuery::unrevoked(Page::first(u32::MAX))).await?;
    let now = SystemClock.now();
    let live = keys.iter().filter(|key| key.state(now) == KeyState::Live).count();
    Ok(match (serve::exposure(&context.config), live) {
        (Some(exposure), 0) => Finding::new("keys", Status::Problem, serve::refusal(&exposure)),
        (None, 0) if keys.is_empty() => {
            Finding::new("keys", Status::Ok, "none; the server answers every program on this machine")
        }
        (None, 0) => {
            let found = "every key has expired, so the server refuses all requests; create a key with `strata keys create`";
            Finding::new("keys", Status::Warning, found)
        }
        (_, live) => Finding::new("keys", Status::Ok, format!("{live} valid")),
    })
}

/// Warns if several clients of the proxy share the user `default`, because none of them names its user.
async fn check_unnamed_clients(store: &dyn Store) -> strata_core::Result<Option<Finding>> {
    let clients = store.progress(&UserId::default(), CLIENTS_SPACE).await?;
    let found = format!(
        "{clients} clients name no user, so they share the memories of `default`; give each a key (`strata keys create \
         --user NAME`), or let them name their user (docs/clients.md)"
    );
    Ok((clients > 1).then(|| Finding::new("users", Status::Warning, found)))
}

/// Whether the learning model could be used for the last jobs; `None` without a model.
async fn check_learning_model(context: &Context, store: &dyn Store) -> strata_core::Result<Option<Finding>> {
    let LearnModel::Remote { model, .. } = context.config.learning.model() else { return Ok(None) };
    let query = JobQuery { status: Some(JobStatus::Done), limit: JOBS_A_USER, ..JobQuery::default() };
    let (mut jobs, mut failed, mut last) = (0, 0, None);
    for user in store.users(Page::first(USERS_A_PAGE)).await? {
        for job in store.jobs(&user, &query).await?.into_iter().filter(|job| job.kind == "extract") {
            jobs += 1;
            let failure = job.result.as_ref().and_then(|result| result.get(MODEL_FAILED)?.as_str());
            if let Some(failure) = failure {
                failed += 1;
                last = last.max(Some((job.updated_at, failure.to_owned())));
            }
        }
    }
    let finding = |status, found| Some(Finding::new("learning model", status, found));
    Ok(match last {
        None => finding(Status::Ok, format!("`{model}`, used for each of the last {jobs} jobs")),
        Some((at, why)) => finding(
            Status::Warning,
            format!(
                "`{model}` could not be used for {failed} of the last {jobs} jobs, and the built-in reader learned instead; the last failure, at {at}: {why}"
            ),
        ),
    })
}

/// The backlog of one kind of background work.
struct Behind {
    changes: u64,
    all: u64,
    users: u64,
}

fn describe(behind: &Behind, what: &str) -> String {
    match behind.users {
        0 => "up to date".to_owned(),
        users => {
            let Behind { changes, all, .. } = behind;
            format!(
                "{changes} of {all} {what}, for {}; `strata serve` does this in the background",
                counted(users, "user")
            )
        }
    }
}

/// The backlog of the background work `space`, over the users with more than `slack` waiting changes.
async fn behind(store: &dyn Store, space: &str, slack: u64) -> strata_core::Result<Behind> {
    let mut behind = Behind { changes: 0, all: 0, users: 0 };
    let mut page = Page::first(USERS_A_PAGE);
    loop {
        let users = store.users(page).await?;
        for user in &users {
            let head = store.head(user).await?.revision;
            let waiting = head.saturating_sub(store.progress(user, space).await?);
            behind.all += head;
            if waiting > slack {
                behind.changes += waiting;
                behind.users += 1;
            }
        }
        if users.len() < USERS_A_PAGE as usize {
            return Ok(behind);
        }
        page.offset += u64::from(USERS_A_PAGE);
    }
}

fn findings_of(health: &Health) -> Vec<Finding> {
    let Health { format_version, users, sessions, turns, memories, unindexed, bytes, problems, .. } = health;
    let mut findings = vec![Finding::new(
        "store",
        Status::Ok,
        format!(
            "format {format_version}, {}: {}, {}, {}, {}",
            size(*bytes),
            counted(*users, "user"),
            counted(*sessions, "session"),
            counted(*turns, "turn"),
            counted(*memories, "memory")
        ),
    )];
    findings.push(match unindexed {
        0 => Finding::new("index", Status::Ok, "everything is indexed"),
        _ => Finding::new(
            "index",
            Status::Warning,
            format!("{unindexed} items wait to be indexed; searches find them, more slowly; `strata reindex` indexes them now"),
        ),
    });
    findings
        .extend(problems.iter().map(|problem| Finding::new("integrity", Status::Problem, problem.as_str())));
    if problems.is_empty() {
        findings.push(Finding::new("integrity", Status::Ok, "no problems"));
    }
    findings
}

/// An error with its causes, on one line.
fn chain(error: &strata_core::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// A number of bytes, for a person.
pub(super) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for larger in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        let check = |bytes, expected: &str| assert_eq!(size(bytes), expected);
        check(0, "0 bytes");
        check(1023, "1023 bytes");
        check(1024, "1.0 KiB");
        check(5 * 1024 * 1024 + 512 * 1024, "5.5 MiB");
        check(u64::MAX, "16777216.0 TiB");
    }

    #[test]
    fn a_problem_of_the_store_is_a_finding() {
        let health = Health {
            location: "x".into(),
            format_version: 1,
            users: 1,
            sessions: 2,
            turns: 3,
            memories: 4,
            unindexed: 5,
            bytes: 6,
            problems: vec!["session `a` has a gap".into()],
        };
        let statuses: Vec<Status> = findings_of(&health).iter().map(|finding| finding.status).collect();
        assert_eq!(statuses, [Status::Ok, Status::Warning, Status::Problem]);
    }
}
