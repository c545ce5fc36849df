//! Messages of a login: what reads is written the same, alone and in a stream, wherever the stream is cut; both ends of a session and of
//! a forwarded connection survive any stream.

use strait_clock::Time;
use strait_login::message::{LoginMessage, MessageFrame, MessageFramer};
use strait_login::{
    ClientOptions, Forwarded, LoginClient, LoginServer, Program, RequestReader, ServerOptions, SessionNumber,
    SessionRequest, Terminal, Ticket, WindowSize,
};

/// A stream of messages; also as what one end hears of the other.
pub fn check(data: &[u8]) {
    let whole = taken(data, data.len().max(1));
    assert_eq!(taken(data, 3), whole);
    assert!(data.starts_with(&whole), "what is read is written the same");
    let _ = RequestReader::new().read(data);
    at_server(data);
    at_client(data);
    for mut end in [Forwarded::client(None), Forwarded::server(None)] {
        end.received(data);
        while let Ok(Some(_)) = end.next_event() {}
    }
}

/// The messages of a stream that comes so many bytes at once, written again.
fn taken(data: &[u8], step: usize) -> Vec<u8> {
    let (mut framer, mut again) = (MessageFramer::new(), Vec::new());
    for piece in data.chunks(step) {
        framer.push(piece);
        loop {
            match framer.next_message() {
                Ok(Some((ack, message))) => {
                    let before = again.len();
                    message.put(u64::from(ack), &mut again);
                    let frame = MessageFrame::parse(&again[before..]);
                    let (frame, _) = frame.expect("it is a message").expect("it is whole");
                    assert!(LoginMessage::parse(frame.head, frame.body).is_ok());
                }
                Ok(None) => break,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return again;
                }
            }
        }
    }
    again
}

/// A session of a terminal, or of a command, to which a client says this.
fn at_server(data: &[u8]) {
    for terminal in [None, Some(WindowSize::USUAL)] {
        let (ticket, account) = (Ticket::new(SessionNumber(1), [1; 32]), String::new());
        let options = ServerOptions { ticket, account, terminal, rate_bits: None };
        let mut server = LoginServer::new(options, Time::ZERO);
        let attached = server.attach(None, Time::ZERO);
        assert!(attached.is_ok(), "the first stream");
        let _ = server.received(data, Time::ZERO);
        while server.next_event().is_some() {}
        server.send(&mut Vec::new(), 1 << 16, Time::from_millis(200));
    }
}

/// A client to which a server says this.
fn at_client(data: &[u8]) {
    let terminal = Terminal { term: Vec::new(), size: WindowSize::USUAL, modes: Vec::new() };
    for terminal in [None, Some(terminal)] {
        let (program, environment) = (Program::Shell, Vec::new());
        let request = SessionRequest { program, terminal, environment, agent: false };
        let mut client =
            LoginClient::start(Ticket::new(SessionNumber(1), [1; 32]), request, ClientOptions::default());
        let mut sent = Vec::new();
        client.send(&mut sent, 1 << 16, Time::ZERO);
        assert!(matches!(RequestReader::new().read(&sent), Ok(Some(_))), "a client asks rightly");
        let _ = client.received(data, Time::ZERO);
        while client.next_event().is_some() {}
        client.send(&mut sent, 1 << 16, Time::from_millis(200));
    }
}
