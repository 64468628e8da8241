//! Downloads model files: resumed where they broke off, and only kept when their digest is right.

use std::path::{Path, PathBuf};

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::header::{CONTENT_RANGE, LOCATION};
use sha2::{Digest, Sha256};
use strata_core::{Error, Result, hash};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::http::HttpClient;

/// Hubs redirect to where the bytes are; more hops than this are a loop.
const MAX_REDIRECTS: usize = 5;

/// One file of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Where it is.
    pub url: String,
    /// What it is called in the model's folder.
    pub name: String,
    /// Its SHA-256 in hexadecimal digits, where it is known beforehand.
    pub sha256: Option<String>,
}

/// Downloads `file` into `dir` and returns its path. Calls `progress` with the bytes on disk and, where known, the bytes
/// in all. A file that is there already with the right digest is left alone; what a broken download left is resumed.
pub async fn pull(
    client: &HttpClient,
    file: &RemoteFile,
    dir: &Path,
    mut progress: impl FnMut(u64, Option<u64>),
) -> Result<PathBuf> {
    check_name(&file.name)?;
    let path = dir.join(&file.name);
    let part = dir.join(format!("{}.part", file.name));
    if let Some(expected) = &file.sha256
        && path.is_file()
        && digest(&path).await?.eq_ignore_ascii_case(expected)
    {
        return Ok(path);
    }
    let failed = |what: &str, error: std::io::Error| {
        Error::unavailable(format!("{what} `{}` fails", part.display())).with_source(error)
    };
    tokio::fs::create_dir_all(dir).await.map_err(|error| failed("making the folder of", error))?;
    let have = tokio::fs::metadata(&part).await.map_or(0, |metadata| metadata.len());
    let (response, start) = open(client, &file.url, have).await?;
    let total = total_bytes(&response, start);
    let mut options = tokio::fs::OpenOptions::new();
    options.create(true).write(true);
    let options = if start > 0 { options.append(true) } else { options.truncate(true) };
    let mut output = options.open(&part).await.map_err(|error| failed("opening", error))?;
    let mut done = start;
    progress(done, total);
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Error::unavailable(format!("the download of `{}` broke off; run it again to resume", file.name))
                .with_source(error)
                .retryable()
        })?;
        if let Some(bytes) = frame.data_ref() {
            output.write_all(bytes).await.map_err(|error| failed("writing", error))?;
            done += bytes.len() as u64;
            progress(done, total);
        }
    }
    output.sync_all().await.map_err(|error| failed("writing", error))?;
    drop(output);
    if let Some(total) = total
        && done != total
    {
        let message = format!("`{}` ended after {done} of {total} bytes; run it again to resume", file.name);
        return Err(Error::unavailable(message).retryable());
    }
    if let Some(expected) = &file.sha256 {
        let found = digest(&part).await?;
        if !found.eq_ignore_ascii_case(expected) {
            tokio::fs::remove_file(&part).await.map_err(|error| failed("removing", error))?;
            return Err(Error::invalid(format!(
                "`{}` has the digest `{found}` instead of `{expected}`; the download was thrown away, so run it again",
                file.name
            )));
        }
    }
    tokio::fs::rename(&part, &path).await.map_err(|error| failed("renaming", error))?;
    Ok(path)
}

/// Opens the download at byte `from`, or at 0 where the server does not resume; the second value says which.
async fn open(
    client: &HttpClient,
    url: &str,
    from: u64,
) -> Result<(hyper::Response<hyper::body::Incoming>, u64)> {
    let mut url = url.to_owned();
    for _ in 0..MAX_REDIRECTS {
        let response = client.get(&url, from).await?;
        match response.status() {
            StatusCode::OK => return Ok((response, 0)),
            StatusCode::PARTIAL_CONTENT => return Ok((response, from)),
            // What is on disk is longer than the file: begin anew.
            StatusCode::RANGE_NOT_SATISFIABLE if from > 0 => {
                let response = client.get(&url, 0).await?;
                if response.status() == StatusCode::OK {
                    return Ok((response, 0));
                }
                return Err(Error::unavailable(format!("the server answers {}", response.status())));
            }
            status if status.is_redirection() => {
                let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
                let location = location.ok_or_else(|| Error::unavailable("a redirection leads nowhere"))?;
                url = resolve(&url, location);
            }
            status => {
                let error = Error::unavailable(format!("the server answers {status} for the model file"));
                return Err(if status.is_server_error() { error.retryable() } else { error });
            }
        }
    }
    Err(Error::unavailable(format!("more than {MAX_REDIRECTS} redirections")))
}

fn resolve(base: &str, location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    let scheme_end = base.find("://").map_or(0, |at| at + 3);
    let host_end = base[scheme_end..].find('/').map_or(base.len(), |at| scheme_end + at);
    format!("{}/{}", &base[..host_end], location.trim_start_matches('/'))
}

fn total_bytes(response: &hyper::Response<hyper::body::Incoming>, start: u64) -> Option<u64> {
    let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    if let Some(total) = range.and_then(|range| range.rsplit('/').next()).and_then(|total| total.parse().ok())
    {
        return Some(total);
    }
    let length = response.headers().get(hyper::header::CONTENT_LENGTH)?.to_str().ok()?.parse::<u64>().ok()?;
    Some(start + length)
}

/// A file's name must stay inside the model's folder.
fn check_name(name: &str) -> Result<()> {
    let plain = !name.is_empty()
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if plain { Ok(()) } else { Err(Error::invalid(format!("`{name}` is no plain file name"))) }
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
