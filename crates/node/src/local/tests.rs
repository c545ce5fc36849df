use super::*;
use crate::client::{ClientError, ask_at, open_at};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;

/// A socket in a folder of its own, served by `answer` until the test ends.
fn serve(name: &str, answer: fn(Request) -> Answer) -> (PathBuf, std::thread::JoinHandle<()>) {
    let path = std::env::temp_dir().join(format!("strait-local-{name}-{}.sock", std::process::id()));
    let socket = LocalSocket::claim_at(&path, "st0", Audience::Owner).unwrap();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (asks, mut asked) = mpsc::channel(4);
            socket.serve(asks).unwrap();
            while let Some(PendingRequest { request, answer: back, written, .. }) = asked.recv().await {
                let ends = matches!(request, Request::Down { .. });
                back.send(answer(request)).unwrap();
                if ends {
                    written.await.unwrap();
                    return;
                }
            }
        });
    });
    (path, thread)
}

fn answer(request: Request) -> Answer {
    match request {
        Request::Show => Answer::Refused { message: "not now".to_owned() },
        Request::Reload => {
            Answer::Reloaded { changes: Changes { added: vec!["b".to_owned()], ..Changes::default() } }
        }
        Request::Down { .. } => Answer::Ending,
        Request::Open { .. } => unreachable!("it is answered on the stream"),
    }
}

#[test]
fn questions_and_answers() {
    let (path, daemon) = serve("talk", answer);
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    let (refused, _) = ask_at(&path, "st0", Request::Show).unwrap();
    assert_eq!(refused, answer(Request::Show));
    let (reloaded, _) = ask_at(&path, "st0", Request::Reload).unwrap();
    assert_eq!(reloaded, answer(Request::Reload));
    let (ending, mut stream) = ask_at(&path, "st0", Request::Down { stays_closed: false }).unwrap();
    assert_eq!(ending, Answer::Ending);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed when the daemon has ended");
    daemon.join().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_daemon_that_ends_while_it_is_asked_is_not_taken_for_one_that_does_not_answer() {
    let path = std::env::temp_dir().join(format!("strait-local-ended-{}.sock", std::process::id()));
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let daemon = std::thread::spawn(move || {
        for _ in 0..2 {
            // With a question that was not read the kernel resets the connection; closed in order it only ends.
            drop(listener.accept().unwrap());
            let (mut asked, _) = listener.accept().unwrap();
            assert!(asked.read(&mut [0; 512]).unwrap() > 0);
        }
    });
    for _ in 0..2 {
        assert!(matches!(ask_at(&path, "st0", Request::Show), Err(ClientError::Ended { .. })));
    }
    let open =
        Request::Open { peer: "b".to_owned(), priority: strait_stream::StreamPriority::Now, kerberos: false };
    for _ in 0..2 {
        assert!(matches!(open_at(&path, "st0", &open), Err(ClientError::Ended { .. })));
    }
    daemon.join().unwrap();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn members_of_the_group_are_refused_all_but_a_look() {
    // SAFETY: takes nothing, touches nothing, cannot fail.
    #[allow(unsafe_code)]
    let group = unsafe { libc::getegid() };
    let path = std::env::temp_dir().join(format!("strait-local-group-{}.sock", std::process::id()));
    let socket = LocalSocket::claim_at(&path, "st0", Audience::Group(group)).unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o660);
    let (end, ended) = oneshot::channel();
    let daemon = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (asks, mut asked) = mpsc::channel(4);
            socket.serve(asks).unwrap();
            let answers = async {
                while let Some(PendingRequest { request, answer: back, .. }) = asked.recv().await {
                    assert_eq!(request, Request::Show, "nothing else comes through");
                    back.send(answer(request)).unwrap();
                }
            };
            tokio::select! {
                () = answers => {}
                _ = ended => {}
            }
        });
    });
    assert_eq!(ask_at(&path, "st0", Request::Show).unwrap().0, answer(Request::Show));
    for request in [Request::Down { stays_closed: true }, Request::Reload] {
        let (refused, _) = ask_at(&path, "st0", request).unwrap();
        assert!(matches!(refused, Answer::Refused { message } if message.contains("may only look")));
    }
    end.send(()).unwrap();
    daemon.join().unwrap();
}

#[test]
fn a_client_of_any_version_can_end_a_daemon() {
    let request: Request = serde_json::from_str("{\"command\":\"down\"}").unwrap();
    assert_eq!(request, Request::Down { stays_closed: false });
    // As a daemon reads it that knows no such thing.
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "command", rename_all = "kebab-case")]
    enum Before {
        Down,
    }
    let request = serde_json::to_string(&Request::Down { stays_closed: true }).unwrap();
    assert_eq!(serde_json::from_str::<Before>(&request).unwrap(), Before::Down);
}

#[test]
fn what_a_reload_changed() {
    assert_eq!(Changes::default().to_string(), "no changes");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let changes = Changes { added: names(&["b", "c"]), removed: names(&["a"]), ..Changes::default() };
    assert_eq!(changes.to_string(), "added b, c; removed a");
    let need_restart = names(&["mtu", "forward"]);
    let changes = Changes { changed: names(&["d"]), rules: true, link: true, need_restart, ..changes };
    assert_eq!(
        changes.to_string(),
        "added b, c; removed a; changed d; compression rules changed; link changed; restart needed for mtu, forward"
    );
}

#[test]
fn malformed_requests_are_refused_and_bounded() {
    let (path, daemon) = serve("malformed", answer);
    for request in [
        "\n".to_owned(),
        "{}\n".to_owned(),
        "x".repeat(10_000) + "\n",
        // A request that would be fine if the daemon read as much of it as it is sent.
        " ".repeat(5_000) + "{\"command\":\"show\"}\n",
        "{\"command\":\"format\"}\n".to_owned(),
    ] {
        let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        // A line that is cut off may be answered before it is all sent.
        let _ = stream.write_all(request.as_bytes());
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        assert!(text.is_empty() || text.contains("not a request"), "{text}");
    }
    ask_at(&path, "st0", Request::Down { stays_closed: false }).unwrap();
    daemon.join().unwrap();
}

#[test]
fn silent_connections_lose_their_place_at_the_local_socket() {
    let (path, daemon) = serve("silent", answer);
    let silent = [(); AT_ONCE].map(|()| std::os::unix::net::UnixStream::connect(&path).unwrap());
    // Waits until they have lost their places.
    let (refused, _) = ask_at(&path, "st0", Request::Show).unwrap();
    assert_eq!(refused, answer(Request::Show));
    for mut stream in silent {
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed");
    }
    ask_at(&path, "st0", Request::Down { stays_closed: false }).unwrap();
    daemon.join().unwrap();
}

#[test]
fn stale_socket_is_replaced_and_live_one_is_not() {
    let path = std::env::temp_dir().join(format!("strait-local-stale-{}.sock", std::process::id()));
    let missing = ask_at(&path, "st0", Request::Show).unwrap_err();
    assert!(matches!(missing, ClientError::NotRunning { .. }), "{missing}");
    // As `kill -9` leaves it.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let stale = ask_at(&path, "st0", Request::Show).unwrap_err();
    assert_eq!(
        stale.to_string(),
        format!("no tunnel is running on st0 (no daemon listens at {})", path.display())
    );
    let claimed = LocalSocket::claim_at(&path, "st0", Audience::Owner).unwrap();
    let second = LocalSocket::claim_at(&path, "st0", Audience::Owner).unwrap_err();
    assert!(
        second.to_string().starts_with("a tunnel on st0 is already running; stop it with `strait down st0`")
    );
    drop(claimed);
    assert!(!path.exists());
}
