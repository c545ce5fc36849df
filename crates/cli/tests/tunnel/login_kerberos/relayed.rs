//! A client that was talked into another connection: between it and its daemon stands one that keeps what it says, and says it again.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use strait_kerberos::{Binding, TokenFrame, TokenReader};
use strait_node::client::{OpenedStream, StreamOptions, open_stream_at};
use strait_node::local::{Answer, KerberosWay};
use strait_stream::StreamPriority;

use super::{Desk, SECTION, SERVICE, can_run};
use crate::pair::PATIENCE;

/// A stream to the second site by the daemon of the first, which tells of Kerberos.
pub(super) fn stream(desk: &Desk) -> OpenedStream {
    let socket = desk.place.sites[0].folder().join("run/strait0.sock");
    let options = StreamOptions { priority: StreamPriority::Now, kerberos: true };
    let opened = open_stream_at(&socket, "site-b", options).unwrap();
    opened.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    opened
}

/// What a client says first that was told of this connection: the head of its stream and its token.
fn first_words(desk: &Desk, name: &str, binding: Binding) -> Vec<u8> {
    let folder = desk.path(name);
    std::fs::create_dir(&folder).unwrap();
    let listener = UnixListener::bind(folder.join("strait0.sock")).unwrap();
    let mut command = desk.command("alice", &[SERVICE, "--tunnel", "strait0", "site-b", "true"]);
    let mut client = command.env("STRAIT_RUNTIME_DIR", &folder).spawn().unwrap();
    let said = loop {
        let (socket, _) = listener.accept().unwrap();
        let (mut reader, mut line) = (BufReader::new(socket.try_clone().unwrap()), String::new());
        reader.read_line(&mut line).unwrap();
        // It may look first who is there.
        if !line.contains("open") {
            continue;
        }
        assert!(line.contains("\"kerberos\":true"), "{line}");
        let way = KerberosWay { binding, service: None };
        let answer = Answer::Connected { rate_bits: None, kerberos: Some(way) };
        writeln!(&socket, "{}", serde_json::to_string(&answer).unwrap()).unwrap();
        break head_and_token(&mut reader);
    };
    client.kill().unwrap();
    client.wait().unwrap();
    said
}

fn head_and_token(client: &mut impl Read) -> Vec<u8> {
    let mut said = vec![0; 3];
    client.read_exact(&mut said).unwrap();
    assert_eq!(said, [4, 1, 0], "service, version, no account");
    let mut header = [0; 3];
    client.read_exact(&mut header).unwrap();
    let mut token = vec![0; usize::from(u16::from_be_bytes([header[1], header[2]]))];
    client.read_exact(&mut token).unwrap();
    [said, header.to_vec(), token].concat()
}

/// What the second site answers on a stream: all frames.
fn answers(mut stream: UnixStream, said: &[u8]) -> Vec<TokenFrame> {
    stream.write_all(said).unwrap();
    let _ = stream.shutdown(Shutdown::Write);
    let mut bytes = Vec::new();
    // A stream that is closed before all was read is reset.
    let _ = stream.read_to_end(&mut bytes);
    let (mut reader, mut rest, mut frames) = (TokenReader::default(), &bytes[..], Vec::new());
    while let Ok(Some(frame)) = reader.read(&mut rest) {
        frames.push(frame);
    }
    frames
}

fn texts(frames: &[TokenFrame]) -> String {
    frames.iter().filter_map(TokenFrame::said).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_a_client_said_once_is_good_for_nothing_else() {
    if !can_run() {
        return;
    }
    let mut desk = Desk::new(SECTION);
    let OpenedStream { stream: first, kerberos, .. } = stream(&desk);
    let way = kerberos.unwrap();
    let said = first_words(&desk, "one", way.binding.clone());
    // It is what the client said: on that connection it is taken.
    let frames = answers(first, &said);
    assert!(frames.contains(&TokenFrame::Accepted), "{frames:?} {}", desk.log());
    // Once.
    let OpenedStream { stream: second, kerberos, .. } = stream(&desk);
    assert_eq!(kerberos.unwrap().binding, way.binding, "the same connection");
    let frames = answers(second, &said);
    assert!(!frames.contains(&TokenFrame::Accepted), "{frames:?}");
    assert!(texts(&frames).contains("replay"), "{frames:?}");
    // Words that were not heard yet, on another connection.
    let unheard = first_words(&desk, "two", way.binding.clone());
    desk.place.stop(0);
    desk.place.start(0, "");
    desk.place.wait_for_session();
    let OpenedStream { stream: third, kerberos, .. } = stream(&desk);
    assert_ne!(kerberos.unwrap().binding, way.binding, "another connection");
    let frames = answers(third, &unheard);
    assert!(!frames.contains(&TokenFrame::Accepted), "{frames:?}");
    assert!(texts(&frames).contains("channel bindings"), "{frames:?}");
    // A client that was told of another connection than it is on.
    let elsewhere = first_words(&desk, "three", Binding::new([7; 32]));
    let frames = answers(stream(&desk).stream, &elsewhere);
    assert!(texts(&frames).contains("channel bindings"), "{frames:?}");
    // A session without a ticket is not to be had by the other service, either, whatever stands in the stream.
    let OpenedStream { stream: mut plain, .. } = stream(&desk);
    plain.write_all(&[&[2][..], &said[1..]].concat()).unwrap();
    let mut refusal = Vec::new();
    let _ = plain.read_to_end(&mut refusal);
    assert!(String::from_utf8_lossy(&refusal).contains("take a Kerberos ticket"), "{refusal:?}");
}

#[test]
fn what_is_no_token_or_none_at_all_is_refused_in_time_and_harms_no_one() {
    if !can_run() {
        return;
    }
    let desk = Desk::new(SECTION);
    let head = [4, 1, 0];
    for nonsense in [
        &[0, 0, 4, 1, 2, 3, 4][..],
        &[0xff; 4096],
        &[1, 0, 0],
        &[0, 0xff, 0xff],
        &[0, 0, 1, 0x60, 0, 0, 1, 0x60],
        b"\x40\x00\x00",
    ] {
        let frames = answers(stream(&desk).stream, &[&head, nonsense].concat());
        assert!(matches!(frames.last(), Some(TokenFrame::Refused(_))), "{nonsense:?}: {frames:?}");
    }
    // One that says nothing, for which there is no process, and one that says half of a token and waits.
    let waits: Vec<_> = [(&[][..], ""), (&[0], "took too long"), (&[0, 1, 0, 0x60], "took too long")]
        .into_iter()
        .map(|(part, expected)| {
            let mut stream = stream(&desk).stream;
            stream.write_all(&[&head, part].concat()).unwrap();
            let reading = thread::spawn(move || {
                let mut said = Vec::new();
                let _ = stream.read_to_end(&mut said);
                String::from_utf8_lossy(&said).into_owned()
            });
            (reading, expected)
        })
        .collect();
    for (one, expected) in waits {
        let said = one.join().unwrap();
        assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{said:?}");
    }
    desk.ends(0, "alice", &[SERVICE, "site-b", "true"]);
}

#[test]
fn tickets_that_are_refused_without_end_fill_no_log() {
    if !can_run() {
        return;
    }
    let desk = Desk::new(SECTION);
    for _ in 0..120 {
        let frames = answers(stream(&desk).stream, &[4, 1, 0, 1, 0, 0]);
        assert!(matches!(frames.last(), Some(TokenFrame::Refused(_))), "{frames:?}");
    }
    let lines = crate::login::banned::found(&desk.log()).len();
    assert!((1..100).contains(&lines), "{lines} lines");
}
