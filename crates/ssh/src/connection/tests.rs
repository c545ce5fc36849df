//! Channels without what is below them.

use super::*;
use crate::event::{OutputStream, Program};

/// Messages to `ssh`.
#[derive(Default)]
struct Sent(Vec<Vec<u8>>);

impl Outgoing for Sent {
    fn send(&mut self, message: Vec<u8>) -> Result<(), SshError> {
        self.0.push(message);
        Ok(())
    }

    fn is_open(&self) -> bool {
        true
    }

    fn waiting(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }
}

impl Sent {
    /// The kinds of messages, which are forgotten.
    fn kinds(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).iter().map(|message| message[0]).collect()
    }
}

fn open(kind: &[u8], window: u32) -> Vec<u8> {
    let mut message = vec![OPEN];
    message.put_string(kind);
    for field in [7, window, 1000] {
        message.put_number(field);
    }
    message
}

fn about(kind: u8, channel: u32) -> Vec<u8> {
    let mut message = vec![kind];
    message.put_number(channel);
    message
}

fn request(channel: u32, name: &[u8], reply: bool) -> Vec<u8> {
    let mut message = about(REQUEST, channel);
    message.put_string(name);
    message.put_boolean(reply);
    message
}

/// A connection with a session that runs a shell.
fn with_shell() -> (Connection, Sent) {
    let (mut connection, mut sent) = (Connection::default(), Sent::default());
    connection.take(&open(b"session", 2000), &mut sent).unwrap();
    connection.take(&request(0, b"shell", true), &mut sent).unwrap();
    assert_eq!(sent.kinds(), [OPEN_CONFIRMATION, SUCCESS]);
    assert_eq!(connection.next_event(), Some(SshEvent::OpenSession(ChannelNumber(0))));
    assert_eq!(connection.next_event(), Some(SshEvent::Start(ChannelNumber(0), Program::Shell)));
    (connection, sent)
}

#[test]
fn how_a_program_ended_is_told_after_the_client_has_closed_the_channel() {
    let (mut connection, mut sent) = with_shell();
    let channel = ChannelNumber(0);
    connection.take(&about(EOF, 0), &mut sent).unwrap();
    connection.eof(channel, &mut sent).unwrap();
    connection.take(&about(CLOSE, 0), &mut sent).unwrap();
    connection.tell(channel, b"exit-status", |message| message.put_number(3), &mut sent).unwrap();
    connection.close(channel, &mut sent).unwrap();
    assert_eq!(sent.kinds(), [EOF, REQUEST, CLOSE]);
    assert!(connection.channels.is_empty());
}

#[test]
fn a_channel_is_gone_once_both_ends_have_closed_it_and_nothing_is_said_twice() {
    let (mut connection, mut sent) = with_shell();
    let channel = ChannelNumber(0);
    for _ in 0..2 {
        connection.eof(channel, &mut sent).unwrap();
        connection.close(channel, &mut sent).unwrap();
    }
    assert_eq!(sent.kinds(), [EOF, CLOSE]);
    // What was on its way still arrives.
    let mut data = about(DATA, 0);
    data.put_string(b"late");
    connection.take(&data, &mut sent).unwrap();
    connection.take(&about(CLOSE, 0), &mut sent).unwrap();
    assert!(connection.channels.is_empty() && sent.kinds().is_empty());
    assert!(connection.take(&about(EOF, 0), &mut sent).is_err(), "the channel is not there any more");
}

#[test]
fn data_goes_as_the_window_and_the_size_of_packets_allow() {
    let (mut connection, mut sent) = with_shell();
    let channel = ChannelNumber(0);
    assert_eq!(connection.data(channel, OutputStream::Out, &[1; 3000], &mut sent).unwrap(), 2000);
    assert_eq!(sent.kinds(), [DATA, DATA]);
    assert_eq!(connection.data(channel, OutputStream::Err, b"more", &mut sent).unwrap(), 0);
    let mut more = about(WINDOW_ADJUST, 0);
    more.put_number(4);
    connection.take(&more, &mut sent).unwrap();
    assert_eq!(connection.data(channel, OutputStream::Err, b"more", &mut sent).unwrap(), 4);
    assert_eq!(sent.kinds(), [EXTENDED_DATA]);
}

#[test]
fn more_than_the_window_allows_ends_the_connection() {
    let (mut connection, mut sent) = with_shell();
    let mut data = about(DATA, 0);
    data.put_string(&[0; 32 * 1024]);
    for _ in 0..8 {
        connection.take(&data, &mut sent).unwrap();
    }
    assert!(connection.take(&data, &mut sent).is_err());
}

#[test]
fn a_session_runs_one_program_and_a_65th_channel_is_refused() {
    let (mut connection, mut sent) = with_shell();
    connection.take(&request(0, b"shell", true), &mut sent).unwrap();
    connection.take(&request(0, b"x11-req", true), &mut sent).unwrap();
    assert_eq!(sent.kinds(), [FAILURE, FAILURE]);
    for _ in 1..CHANNELS_MAX {
        connection.take(&open(b"session", 0), &mut sent).unwrap();
    }
    assert!(sent.kinds().iter().all(|kind| *kind == OPEN_CONFIRMATION));
    connection.take(&open(b"session", 0), &mut sent).unwrap();
    assert_eq!(sent.kinds(), [OPEN_FAILURE]);
    assert_eq!(connection.open_agent(&mut sent), Ok(None));
}

#[test]
fn no_part_of_a_message_is_enough() {
    let mut exec = request(0, b"exec", false);
    exec.put_string(b"true");
    let mut terminal = request(0, b"pty-req", false);
    terminal.put_string(b"xterm");
    (0..4).for_each(|_| terminal.put_number(80));
    terminal.put_string(&[0]);
    for message in [exec, terminal] {
        for end in 0..=message.len() {
            let (mut connection, mut sent) = (Connection::default(), Sent::default());
            connection.take(&open(b"session", 0), &mut sent).unwrap();
            let taken = connection.take(&message[..end], &mut sent);
            assert_eq!(taken.is_ok(), end == message.len());
        }
    }
}
