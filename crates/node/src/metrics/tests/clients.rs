//! Clients that want more than metrics.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

/// Serves metrics while `client` runs; gives its result, the refused connections, and how often the daemon was asked.
fn while_serving<T: Send + 'static>(client: impl FnOnce(SocketAddr) -> T + Send + 'static) -> (T, u64, u64) {
    let metrics = Metrics::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = metrics.listener.local_addr().unwrap();
    let refused = metrics.refused();
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = thread::spawn(move || client(address));
    runtime.block_on(async {
        let (asks, mut requests) = mpsc::channel(1);
        metrics.serve(asks).unwrap();
        tokio::spawn(async move {
            while let Some(PendingRequest { answer, .. }) = requests.recv().await {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = answer.send(Answer::Report { report: Box::new(report()) });
            }
        });
        while !client.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    (client.join().unwrap(), refused.load(Ordering::Relaxed), asked.load(Ordering::Relaxed))
}

/// What the server says to `request`, which may be cut off.
fn say(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

/// Waits until the server has closed the connection.
fn wait_for_end(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
}

#[test]
fn connections_that_say_nothing_or_little_neither_grow_in_number_nor_stay() {
    let (answer, refused, _) = while_serving(|address| {
        let [silent, slow] =
            [(); 2].map(|()| Vec::from_iter((0..4).map(|_| TcpStream::connect(address).unwrap())));
        let trickle = |mut stream: TcpStream| {
            let letters = REQUEST.strip_suffix(b"\r\n").unwrap().iter().chain(std::iter::repeat(&b'x'));
            for letter in letters {
                thread::sleep(Duration::from_millis(50));
                if stream.write_all(&[*letter]).is_err() {
                    break;
                }
            }
        };
        let slow: Vec<_> = slow.into_iter().map(|stream| thread::spawn(move || trickle(stream))).collect();
        // They were first, and have all places.
        assert_eq!(say(address, REQUEST), "");
        silent.into_iter().for_each(wait_for_end);
        slow.into_iter().for_each(|thread| thread.join().unwrap());
        say(address, REQUEST)
    });
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(refused, 1);
}

#[test]
fn clients_that_ask_without_end_cost_the_sender_ten_reports_a_second() {
    let ((answers, elapsed), refused, asked) = while_serving(|address| {
        let start = Instant::now();
        let answers = (0..300).filter(|_| say(address, REQUEST).starts_with("HTTP/1.1 200")).count();
        (answers, start.elapsed())
    });
    assert_eq!((answers, refused), (300, 0));
    assert!(u128::from(asked) <= 1 + elapsed.as_millis() / 100, "{asked} reports in {elapsed:?}");
}

#[test]
fn endless_head_and_other_methods_and_more_than_one_request_get_no_metrics() {
    let ((endless, post, two), ..) = while_serving(|address| {
        let endless = [b"GET /metrics HTTP/1.1\r\nX: ".as_slice(), &vec![b'x'; 100_000]].concat();
        let two = [REQUEST, REQUEST].concat();
        (
            say(address, &endless),
            say(address, b"POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
            say(address, &two),
        )
    });
    assert!(!endless.contains("200 OK"), "{endless}");
    assert!(post.starts_with("HTTP/1.1 405"), "{post}");
    assert_eq!(two.matches("HTTP/1.1 200 OK").count(), 1, "{two}");
}
