//! Downloads against a real socket: resumed, checked, and never left half done.

use std::time::Duration;

use crate::server::{Request, Server, answer};
use strata_models::http::HttpClient;
use strata_models::pull::{RemoteFile, digest, pull};

const CONTENT: &[u8] = b"the weights of a very small model, long enough to break off in the middle";

fn serve(request: &Request) -> Vec<u8> {
    match request.range_start() {
        Some(start) if start >= CONTENT.len() => answer("416 Range Not Satisfiable", "", b""),
        Some(start) => {
            let range = format!("Content-Range: bytes {start}-{}/{}\r\n", CONTENT.len() - 1, CONTENT.len());
            answer("206 Partial Content", &range, &CONTENT[start..])
        }
        None => answer("200 OK", "", CONTENT),
    }
}

async fn sha256_of(bytes: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    digest(&path).await.unwrap()
}

async fn file(server: &Server) -> RemoteFile {
    RemoteFile {
        url: format!("{}/model.onnx", server.url),
        name: "model.onnx".to_owned(),
        sha256: Some(sha256_of(CONTENT).await),
    }
}

fn client() -> HttpClient {
    HttpClient::new(Duration::from_secs(5))
}

#[tokio::test]
async fn a_file_is_downloaded_once() {
    let server = Server::start(|_, request| serve(request)).await;
    let file = file(&server).await;
    let dir = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    let path = pull(&client(), &file, dir.path(), |done, total| seen.push((done, total))).await.unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), CONTENT);
    assert_eq!(seen.last(), Some(&(CONTENT.len() as u64, Some(CONTENT.len() as u64))));
    pull(&client(), &file, dir.path(), |_, _| {}).await.unwrap();
    assert_eq!(server.requests().len(), 1, "a file that is there is not fetched again");
}

#[tokio::test]
async fn a_broken_download_is_resumed() {
    let server = Server::start(|number, request| {
        if number == 0 {
            let mut whole = serve(request);
            whole.truncate(whole.len() - 30);
            whole
        } else {
            serve(request)
        }
    })
    .await;
    let file = file(&server).await;
    let dir = tempfile::tempdir().unwrap();
    let error = pull(&client(), &file, dir.path(), |_, _| {}).await.unwrap_err();
    assert!(error.message().contains("run the command again to resume"), "{error}");
    assert!(!dir.path().join("model.onnx").exists(), "nothing half done has the right name");
    let path = pull(&client(), &file, dir.path(), |_, _| {}).await.unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), CONTENT);
    assert_eq!(server.requests()[1].range_start(), Some(CONTENT.len() - 30));
}

#[tokio::test]
async fn a_wrong_digest_is_thrown_away() {
    let server = Server::start(|_, _| answer("200 OK", "", b"something else")).await;
    let file = file(&server).await;
    let dir = tempfile::tempdir().unwrap();
    let error = pull(&client(), &file, dir.path(), |_, _| {}).await.unwrap_err();
    assert!(error.message().contains("digest"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn redirections_are_followed_but_not_for_ever() {
    let server = Server::start(|_, request| {
        if request.head.starts_with("get /model.onnx") {
            answer("302 Found", "Location: /elsewhere\r\n", b"")
        } else if request.head.starts_with("get /loop") {
            answer("302 Found", "Location: /loop\r\n", b"")
        } else {
            serve(request)
        }
    })
    .await;
    let mut file = file(&server).await;
    let dir = tempfile::tempdir().unwrap();
    pull(&client(), &file, dir.path(), |_, _| {}).await.unwrap();
    file.url = format!("{}/loop", server.url);
    file.name = "other.onnx".to_owned();
    let error = pull(&client(), &file, dir.path(), |_, _| {}).await.unwrap_err();
    assert!(error.message().contains("redirects"), "{error}");
}

#[tokio::test]
async fn a_name_cannot_leave_the_folder() {
    let server = Server::start(|_, request| serve(request)).await;
    for name in ["../evil", "a/b", ".hidden", "", "c:\\x"] {
        let file = RemoteFile { name: name.to_owned(), ..file(&server).await };
        let dir = tempfile::tempdir().unwrap();
        assert!(pull(&client(), &file, dir.path(), |_, _| {}).await.is_err(), "{name}");
    }
    assert!(server.requests().is_empty());
}
