//! Downloads model files. An interrupted download is resumed, and a file is kept only if its digest is right.

use std::path::{Path, PathBuf};

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONTENT_RANGE, LOCATION};
use sha2::{Digest, Sha256};
use strata_core::{Error, Result, hash};
use tokio::fs;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::http::HttpClient;

/// Hubs redirect to the storage of a file. More redirections than this are a loop.
const MAX_REDIRECTS: usize = 5;

/// One file of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// The address of the file.
    pub url: String,
    /// The name of the file in the model's folder.
    pub name: String,
    /// The expected SHA-256 in hexadecimal digits, if it is known.
    pub sha256: Option<String>,
}

/// Downloads `file` into `dir` and returns its path. Calls `progress` with the number of bytes on disk and, if it is known,
/// the total number of bytes. A file that exists with the right digest is left alone; an interrupted download is resumed.
pub async fn pull(
    client: &HttpClient,
    file: &RemoteFile,
    dir: &Path,
    progress: impl FnMut(u64, Option<u64>),
) -> Result<PathBuf> {
    check_name(&file.name)?;
    let path = dir.join(&file.name);
    if let Some(expected) = &file.sha256
        && path.is_file()
        && digest(&path).await?.eq_ignore_ascii_case(expected)
    {
        return Ok(path);
    }
    let part = dir.join(format!("{}.part", file.name));
    fs::create_dir_all(dir).await.map_err(|error| failed("creating the folder of", &part, error))?;
    download(client, file, &part, progress).await?;
    check_digest(file, &part).await?;
    fs::rename(&part, &path).await.map_err(|error| failed("renaming", &part, error))?;
    Ok(path)
}

/// Downloads `file` to `part`, after the bytes that `part` already has.
async fn download(
    client: &HttpClient,
    file: &RemoteFile,
    part: &Path,
    mut progress: impl FnMut(u64, Option<u64>),
) -> Result<()> {
    let existing_bytes = fs::metadata(part).await.map_or(0, |metadata| metadata.len());
    let (response, start) = open(client, &file.url, existing_bytes).await?;
    let total = total_bytes(&response, start);
    let mut options = fs::OpenOptions::new();
    options.create(true).write(true);
    let options = if start > 0 { options.append(true) } else { options.truncate(true) };
    let mut output = options.open(part).await.map_err(|error| failed("opening", part, error))?;
    let mut done = start;
    progress(done, total);
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| interrupted(file).with_source(error))?;
        if let Some(bytes) = frame.data_ref() {
            output.write_all(bytes).await.map_err(|error| failed("writing", part, error))?;
            done += bytes.len() as u64;
            progress(done, total);
        }
    }
    output.sync_all().await.map_err(|error| failed("writing", part, error))?;
    match total {
        Some(total) if done != total => {
            let message = format!(
                "`{}` ended after {done} of {total} bytes; run the command again to resume",
                file.name
            );
            Err(Error::unavailable(message).retryable())
        }
        _ => Ok(()),
    }
}

/// Removes a finished download whose digest is wrong.
async fn check_digest(file: &RemoteFile, part: &Path) -> Result<()> {
    let Some(expected) = &file.sha256 else { return Ok(()) };
    let found = digest(part).await?;
    if found.eq_ignore_ascii_case(expected) {
        return Ok(());
    }
    fs::remove_file(part).await.map_err(|error| failed("removing", part, error))?;
    Err(Error::invalid(format!(
        "`{}` has the digest `{found}` instead of `{expected}`; the download was removed, so run the command again",
        file.name
    )))
}

fn failed(what: &str, part: &Path, error: std::io::Error) -> Error {
    Error::unavailable(format!("{what} `{}` failed", part.display())).with_source(error)
}

fn interrupted(file: &RemoteFile) -> Error {
    let message = format!("the download of `{}` was interrupted; run the command again to resume", file.name);
    Error::unavailable(message).retryable()
}

/// Opens the download at byte `from`, or at 0 if the server does not support ranges; the second value is the position.
async fn open(client: &HttpClient, url: &str, from: u64) -> Result<(hyper::Response<Incoming>, u64)> {
    let mut url = url.to_owned();
    for _ in 0..MAX_REDIRECTS {
        let response = client.get(&url, from).await?;
        match response.status() {
            StatusCode::OK => return Ok((response, 0)),
            StatusCode::PARTIAL_CONTENT => return Ok((response, from)),
            // The partial file is longer than the remote one: the download starts again.
            StatusCode::RANGE_NOT_SATISFIABLE if from > 0 => {
                let response = client.get(&url, 0).await?;
                if response.status() == StatusCode::OK {
                    return Ok((response, 0));
                }
                return Err(Error::unavailable(format!(
                    "the server answered {} for the model file",
                    response.status()
                )));
            }
            status if status.is_redirection() => {
                let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
                let location = location
                    .ok_or_else(|| Error::unavailable("a redirection of the server has no address"))?;
                url = resolve(&url, location);
            }
            status => {
                let error = Error::unavailable(format!("the server answered {status} for the model file"));
                return Err(if status.is_server_error() { error.retryable() } else { error });
            }
        }
    }
    Err(Error::unavailable(format!("the server redirects more than {MAX_REDIRECTS} times")))
}

fn resolve(base: &str, location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    let scheme_end = base.find("://").map_or(0, |at| at + 3);
    let host_end = base[scheme_end..].find('/').map_or(base.len(), |at| scheme_end + at);
    format!("{}/{}", &base[..host_end], location.trim_start_matches('/'))
}

fn total_bytes(response: &hyper::Response<Incoming>, start: u64) -> Option<u64> {
    let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    if let Some(total) = range.and_then(|range| range.rsplit('/').next()).and_then(|total| total.parse().ok())
    {
        return Some(total);
    }
    let length = response.headers().get(hyper::header::CONTENT_LENGTH)?.to_str().ok()?.parse::<u64>().ok()?;
    Some(start + length)
}

/// Checks that a file's name stays inside the model's folder.
fn check_name(name: &str) -> Result<()> {
    let plain = !name.is_empty()
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if plain { Ok(()) } else { Err(Error::invalid(format!("`{name}` is not a plain file name"))) }
}

/// The SHA-256 of a file, in hexadecimal digits.
pub async fn digest(path: &Path) -> Result<String> {
    let failed = |error: std::io::Error| {
        Error::unavailable(format!("`{}` cannot be read", path.display())).with_source(error)
    };
    let mut file = tokio::fs::File::open(path).await.map_err(failed)?;
    let mut sha = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut buffer).await.map_err(failed)?;
        if read == 0 {
            break;
        }
        sha.update(&buffer[..read]);
    }
    Ok(hash::hex(&sha.finalize()))
}
