//! WebSockets through the proxy, on real sockets.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// An upstream that accepts one upgrade and repeats what it is sent, or refuses it.
async fn upstream(accepts: bool) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        if !accepts {
            let body = r#"{"error":{"message":"no realtime here"}}"#;
            let length = body.len();
            let answer = format!("HTTP/1.1 426 Upgrade Required\r\nContent-Length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
            return head;
        }
        let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Accept: abc\r\nSec-WebSocket-Protocol: realtime\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        let mut frame = [0; 5];
        stream.read_exact(&mut frame).await.unwrap();
        stream.write_all(&frame).await.unwrap();
        head
    });
    (address, task)
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push(char::from(stream.read_u8().await.unwrap()));
    }
    head
}

/// Opens a WebSocket through Strata.
async fn open(upstream: &str) -> TcpStream {
    let proxy = ProxySettings {
        upstream: Some(format!("http://{upstream}/v1").parse().unwrap()),
        ..Default::default()
    };
    let server = TestServer::with(Settings { proxy, ..Settings::default() }, Default::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(crate::serve(listener, server.app.clone(), std::future::pending()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "GET /v1/realtime?model=m HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: key\r\nAuthorization: Bearer mine\r\nX-Strata-User: ada\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_websocket_passes_in_both_directions() {
    let (address, task) = upstream(true).await;
    let mut stream = open(&address).await;
    let head = read_head(&mut stream).await.to_lowercase();
    assert!(head.starts_with("http/1.1 101"), "{head}");
    for line in ["upgrade: websocket", "sec-websocket-accept: abc", "sec-websocket-protocol: realtime"] {
        assert!(head.contains(line), "{head}");
    }
    assert!(head.contains("x-strata-memory-reason: websocket"), "it is said that memory has no part: {head}");
    stream.write_all(b"\x81\x03abc").await.unwrap();
    let mut frame = [0; 5];
    stream.read_exact(&mut frame).await.unwrap();
    assert_eq!(&frame, b"\x81\x03abc");
    let sent = task.await.unwrap().to_lowercase();
    assert!(sent.starts_with("get /v1/realtime?model=m http/1.1"), "{sent}");
    for line in ["upgrade: websocket", "sec-websocket-key: key", "authorization: bearer mine"] {
        assert!(sent.contains(line), "{sent}");
    }
    assert!(!sent.contains("x-strata"), "{sent}");
}

#[tokio::test]
async fn a_refusal_of_the_upstream_passes() {
    let (address, _task) = upstream(false).await;
    let mut stream = open(&address).await;
    let head = read_head(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 426"), "{head}");
}
