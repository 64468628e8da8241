//! `strata jobs`: lists, shows and retries the jobs that run in the background.

use clap::Subcommand;
use strata_core::job::{Job, JobStatus};
use strata_core::store::{JobQuery, Page};
use strata_core::{Error, ErrorKind, SessionId, UserId};
use strata_engine::{Engine, MODEL_FAILED, WITHOUT_MODEL};
use strata_server::wire::{JobResponse, JobsResponse};

use super::ids::{self, IdText};
use super::users::warn_if_unknown;
use super::{Context, JsonArgs};
use crate::failure::Outcome;
use crate::output::{Output, note};

/// List, show and retry background work
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata jobs list --status dead")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List jobs, newest first
    #[command(after_help = "Example:\n  strata jobs list --status dead --user ada")]
    List(ListArgs),
    /// Show one job: its status, its last error, its result and its costs
    #[command(after_help = "Example:\n  strata jobs show 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e --json")]
    Show(OneArgs),
    /// Put a dead job back into the queue
    ///
    /// A server runs it soon; `strata learn` runs it at once.
    #[command(after_help = "Example:\n  strata jobs retry 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e")]
    Retry(OneArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only jobs of this user [default: all users]
    #[arg(long, value_name = "USER")]
    user: Option<UserId>,
    /// Jobs of all users, as without `--user`
    #[arg(long, conflicts_with = "user")]
    all_users: bool,
    /// Only jobs of this session
    #[arg(long, value_name = "SESSION")]
    session: Option<SessionId>,
    /// Only jobs with this status: queued, leased, done or dead
    #[arg(long, value_name = "STATUS")]
    status: Option<JobStatus>,
    /// The maximum number of jobs per user
    #[arg(long, value_name = "N", default_value_t = 50, allow_negative_numbers = true)]
    limit: u32,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// The job, or the last characters of its id
    #[arg(value_name = "ID")]
    id: IdText,
    /// The user of the job [default: search all users]
    #[arg(long, value_name = "USER")]
    user: Option<UserId>,
    #[command(flatten)]
    json: JsonArgs,
}

/// The number of users that are read at once.
const USERS_A_PAGE: u32 = 500;

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let engine = context.engine_to_read().await?;
    match args.action {
        Action::List(args) => list(args, &engine, output).await,
        Action::Show(OneArgs { id, user, json }) => show(&find(&engine, user, &id).await?, json, output),
        Action::Retry(OneArgs { id, user, json }) => {
            let Job { id, user, .. } = find(&engine, user, &id).await?;
            show(&engine.jobs.retry(&user, id).await?, json, output)
        }
    }
}

/// Finds a job of one user, or of all users if none is named.
async fn find(engine: &Engine, user: Option<UserId>, id: &IdText) -> Outcome<Job> {
    let users = named_or_all(engine, user).await?;
    let id = ids::job(engine, &users, id).await?;
    for user in users {
        match engine.jobs.get(&user, id).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => return Ok(found?),
        }
    }
    Err(Error::not_found(format!("job `{id}` does not exist; `strata jobs list` shows all jobs")).into())
}

async fn list(args: ListArgs, engine: &Engine, output: &mut Output) -> Outcome {
    let ListArgs { user, all_users: _, session, status, limit, json } = args;
    let query = JobQuery { id: None, status, session, limit };
    let users = named_or_all(engine, user).await?;
    let mut jobs = Vec::new();
    for user in &users {
        jobs.extend(engine.jobs.list(user, &query).await?);
    }
    if json.json {
        output.json(&jobs.iter().collect::<JobsResponse>())?;
        return Ok(());
    }
    if jobs.is_empty() {
        note("no jobs match");
        return Ok(());
    }
    let rows: Vec<_> = jobs
        .iter()
        .map(|job| {
            [
                job.id.to_string(),
                job.user.to_string(),
                job.session.as_ref().map_or("-", SessionId::as_str).to_owned(),
                job.kind.clone(),
                job.status.as_str().to_owned(),
                job.attempts.to_string(),
                job.run_at.to_string(),
                problem(job),
            ]
        })
        .collect();
    output.table(["ID", "USER", "SESSION", "KIND", "STATUS", "ATTEMPTS", "DUE", "LAST ERROR"], &rows)?;
    Ok(())
}

/// The last error of a job or, if it was done all the same, why the model did not do it.
fn problem(job: &Job) -> String {
    let noted = |name: &str| job.result.as_ref().and_then(|result| result.get(name)?.as_str());
    match noted(WITHOUT_MODEL).or_else(|| noted(MODEL_FAILED)) {
        Some(failure) => format!("done without the model: {failure}"),
        None => job.last_error.clone().unwrap_or_default(),
    }
}

/// The user that a command names, or all users.
async fn named_or_all(engine: &Engine, named: Option<UserId>) -> Outcome<Vec<UserId>> {
    let Some(user) = named else { return users(engine).await };
    warn_if_unknown(engine, &user).await?;
    Ok(vec![user])
}

/// All users.
pub(super) async fn users(engine: &Engine) -> Outcome<Vec<UserId>> {
    let mut all = Vec::new();
    loop {
        let page = Page { offset: all.len() as u64, limit: USERS_A_PAGE };
        let users = engine.store().users(page).await?;
        let last = users.len() < USERS_A_PAGE as usize;
        all.extend(users);
        if last {
            return Ok(all);
        }
    }
}

fn show(job: &Job, json: JsonArgs, output: &mut Output) -> Outcome {
    if json.json {
        output.json(&JobResponse::from(job))?;
        return Ok(());
    }
    output.line(format_args!("job {}", job.id))?;
    output.line(format_args!("{} of user `{}`, {}", job.kind, job.user, job.status.as_str()))?;
    if let Some(session) = &job.session {
        output.line(format_args!("session `{session}`"))?;
    }
    output
        .line(format_args!("created {}, due {}, updated {}", job.created_at, job.run_at, job.updated_at))?;
    output.line(format_args!("started {} times", job.attempts))?;
    if let Some(lease) = &job.lease {
        output.line(format_args!("leased by {} until {}", lease.worker, lease.until))?;
    }
    if let Some(result) = &job.result {
        output.line(format_args!("result {result}"))?;
    }
    if let Some(error) = &job.last_error {
        output.line("last error:")?;
        output.text(error)?;
    }
    Ok(())
}
