//! A client against answers that were written before.

use std::io::{self, Read};

use super::*;
use crate::TransferId;
use crate::broker::message::{BrokerFault, FaultKind, MAX_DATA};
use crate::message::{MessageReader, frame};
use strait_keying::{PrivateKey, PublicKey};

fn key(number: u8) -> PublicKey {
    PrivateKey::generate(&[number; 32]).public()
}

fn object() -> ObjectName {
    ObjectName { sender: key(1), id: TransferId::from_bytes([7; 16]) }
}

fn welcome() -> BrokerAnswer {
    BrokerAnswer::Welcome { now: 5, room: Some(9), largest: 10, keep: 11 }
}

fn answers(answers: &[BrokerAnswer]) -> io::Cursor<Vec<u8>> {
    let mut bytes = Vec::new();
    answers.iter().for_each(|answer| frame(answer, &mut bytes));
    io::Cursor::new(bytes)
}

fn asked(bytes: &[u8]) -> Vec<BrokerRequest> {
    let mut reader = MessageReader::new(bytes);
    std::iter::from_fn(|| reader.next_message().unwrap()).collect()
}

fn letter(number: u8) -> Letter {
    let object = ObjectName { sender: key(1), id: TransferId::from_bytes([number; 16]) };
    Letter {
        object,
        receiver: key(2),
        kind: LetterKind::Transfer,
        made: 1,
        expires: 2,
        manifest: 3,
        contents: 4,
    }
}

#[test]
fn questions_get_their_answers_and_signs_of_life_are_left_out() {
    let said = answers(&[
        BrokerAnswer::Alive,
        welcome(),
        BrokerAnswer::Letters(vec![letter(1)]),
        BrokerAnswer::Alive,
        BrokerAnswer::ListEnd { next: b"here".to_vec() },
        BrokerAnswer::Letters(vec![letter(2)]),
        BrokerAnswer::ListEnd { next: Vec::new() },
        BrokerAnswer::Bytes(b"ab".to_vec()),
        BrokerAnswer::Bytes(b"c".to_vec()),
        BrokerAnswer::ReadEnd { size: 3 },
        BrokerAnswer::Refused { id: Some(object().id), fault: FaultKind::NotFound.into() },
        BrokerAnswer::Removed { object: object() },
    ]);
    let mut out = Vec::new();
    let mut client = BrokerClient::begin(said, &mut out).unwrap();
    assert_eq!(client.welcome(), BrokerWelcome { now: 5, room: Some(9), largest: 10, keep: 11 });
    let mut letters = Vec::new();
    client.list(LetterBox::Inbox, |letter| letters.push(letter)).unwrap();
    assert_eq!(letters, [letter(1), letter(2)]);
    let wanted =
        WantedPart { object: object(), kind: LetterKind::Transfer, part: ObjectPart::Manifest, at: 0 };
    client.ask(&wanted).unwrap();
    client.ask(&wanted).unwrap();
    assert_eq!(client.take_small(3).unwrap(), b"abc");
    let refused = client.take(|_| Ok(())).unwrap_err();
    assert!(matches!(refused, BrokerError::Refused { id: Some(_), .. }), "{refused}");
    client.remove(object(), LetterKind::Transfer).unwrap();
    assert!(matches!(client.next_answer(), Err(BrokerError::Closed)));
    drop(client);
    let WantedPart { object, kind, part, at } = wanted;
    let read = BrokerRequest::Read { object, kind, part, at };
    let expected = [
        BrokerRequest::List { which: LetterBox::Inbox, after: Vec::new() },
        BrokerRequest::List { which: LetterBox::Inbox, after: b"here".to_vec() },
        read.clone(),
        read,
        BrokerRequest::Remove { object, kind: LetterKind::Transfer },
    ];
    assert_eq!(asked(&out), expected);
}

#[test]
fn data_is_cut_into_messages_that_a_broker_reads() {
    let mut out = Vec::new();
    let mut requests = BrokerRequests::new(&mut out);
    let bytes: Vec<u8> = (0..MAX_DATA + 5).map(|at| at as u8).collect();
    requests.data(1000, &bytes).unwrap();
    requests.data(77, b"").unwrap();
    requests.manifest(&bytes).unwrap();
    requests.flush().unwrap();
    drop(requests);
    let (first, rest) = bytes.split_at(MAX_DATA);
    let expected = [
        BrokerRequest::Data { at: 1000, bytes: first.to_vec() },
        BrokerRequest::Data { at: 1000 + MAX_DATA as u64, bytes: rest.to_vec() },
        BrokerRequest::Manifest { bytes: first.to_vec() },
        BrokerRequest::Manifest { bytes: rest.to_vec() },
    ];
    assert!(asked(&out) == expected);
}

#[test]
fn a_peer_that_is_no_broker_and_one_that_breaks_off_are_told_apart() {
    let begin = |said: &[BrokerAnswer]| BrokerClient::begin(answers(said), io::sink());
    assert!(matches!(begin(&[]), Err(BrokerError::NoBroker)));
    assert!(matches!(begin(&[BrokerAnswer::ListEnd { next: Vec::new() }]), Err(BrokerError::Protocol(_))));
    let fault = BrokerFault::new(FaultKind::Forbidden, "no");
    let refused = begin(&[BrokerAnswer::Refused { id: None, fault }]).err().map(|error| error.to_string());
    assert_eq!(refused.as_deref(), Some("the broker refuses: the broker does not allow it: no"));
    let mut cut = answers(&[welcome(), BrokerAnswer::Bytes(b"abc".to_vec())]);
    cut.get_mut().pop();
    let mut client = BrokerClient::begin(cut, io::sink()).unwrap();
    assert!(matches!(client.take(|_| Ok(())), Err(BrokerError::Closed)));
    let mut longer = BrokerClient::begin(
        answers(&[welcome(), BrokerAnswer::Bytes(b"abc".to_vec()), BrokerAnswer::ReadEnd { size: 3 }]),
        io::sink(),
    )
    .unwrap();
    assert!(matches!(longer.take_small(2), Err(BrokerError::Protocol(_))));
    let mut garbage = answers(&[welcome()]);
    garbage.get_mut().extend([0xff, 0]);
    let mut client = BrokerClient::begin(garbage, io::sink()).unwrap();
    assert!(matches!(client.next_answer(), Err(BrokerError::Message(_))));
}

/// Takes nothing, as a stream whose other end is closed.
struct Shut;

impl Write for Shut {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_the_broker_said_before_it_closed_the_stream_is_the_reason() {
    let fault: BrokerFault = FaultKind::Ending.into();
    let said = [
        welcome(),
        BrokerAnswer::ListEnd { next: Vec::new() },
        BrokerAnswer::Refused { id: None, fault: fault.clone() },
    ];
    let mut client = BrokerClient::begin(answers(&said), Shut).unwrap();
    let error = client.say(&BrokerRequest::Alive).unwrap_err();
    assert!(error.is_transient() && matches!(error, BrokerError::Refused { id: None, .. }), "{error}");
    let mut client = BrokerClient::begin(answers(&said[..1]), Shut).unwrap();
    assert!(matches!(client.say(&BrokerRequest::Alive), Err(BrokerError::Closed)));
}

/// Says nothing for longer than the stream waits.
struct Quiet;

impl Read for Quiet {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

#[test]
fn silence_is_told() {
    assert!(matches!(BrokerClient::begin(Quiet, io::sink()), Err(BrokerError::Silent)));
}
