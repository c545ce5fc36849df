//! Seeds of what brokers hear and store.

use strait_keying::PublicKey;
use strait_transfer::TransferId;
use strait_transfer::broker::message::{
    BrokerAnswer, BrokerFault, BrokerRequest, FaultKind, Letter, LetterBox, LetterKind, ObjectName,
    ObjectPart,
};
use strait_transfer::broker::places::{self, LetterName};
use strait_transfer::message::{WireMessage, frame};

use super::Seed;

fn object() -> ObjectName {
    ObjectName { sender: PublicKey::from_bytes([1; 32]), id: TransferId::from_bytes([2; 16]) }
}

fn letter() -> Letter {
    let receiver = PublicKey::from_bytes([3; 32]);
    let (object, kind) = (object(), LetterKind::Transfer);
    Letter {
        object,
        receiver,
        kind,
        made: 1_700_000_000,
        expires: 1_800_000_000,
        manifest: 300,
        contents: 1 << 40,
    }
}

/// Each message alone, all of a side as a stream, and what a parser has to refuse.
pub fn message_seeds() -> Vec<Seed> {
    let (id, kind) = (object().id, LetterKind::Receipt);
    let receivers = vec![PublicKey::from_bytes([3; 32]), PublicKey::from_bytes([4; 32])];
    let requests = [
        ("put", BrokerRequest::Put { id, kind, made: -1, expires: 1_800_000_000, receivers }),
        ("data", BrokerRequest::Data { at: 5 << 20, bytes: vec![7; 200] }),
        ("manifest", BrokerRequest::Manifest { bytes: vec![8; 3] }),
        ("commit", BrokerRequest::Commit { contents: 300 }),
        ("abandon", BrokerRequest::Abandon { id }),
        ("list", BrokerRequest::List { which: LetterBox::Sent, after: Vec::new() }),
        ("read", BrokerRequest::Read { object: object(), kind, part: ObjectPart::Contents, at: 1 << 30 }),
        ("remove", BrokerRequest::Remove { object: object(), kind }),
        ("alive", BrokerRequest::Alive),
    ];
    let full = BrokerFault::new(FaultKind::Full, "no room");
    let answers = [
        ("welcome", BrokerAnswer::Welcome { now: 1, room: Some(2), largest: 3, keep: 4 }),
        ("welcome-unlimited", BrokerAnswer::Welcome { now: 1, room: None, largest: 3, keep: 4 }),
        ("held", BrokerAnswer::Held { id, stored: 5 << 20, next: 6 << 20 }),
        ("stored", BrokerAnswer::Stored { id }),
        ("letters", BrokerAnswer::Letters(vec![letter(), letter()])),
        ("list-end", BrokerAnswer::ListEnd { next: Vec::new() }),
        ("bytes", BrokerAnswer::Bytes(vec![9; 130])),
        ("read-end", BrokerAnswer::ReadEnd { size: 1 << 35 }),
        ("removed", BrokerAnswer::Removed { object: object() }),
        ("refused", BrokerAnswer::Refused { id: Some(id), fault: full }),
        ("refused-stream", BrokerAnswer::Refused { id: None, fault: FaultKind::TooMany.into() }),
        ("still-alive", BrokerAnswer::Alive),
    ];
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    requests.iter().for_each(|(_, request)| frame(request, &mut asked));
    answers.iter().for_each(|(_, answer)| frame(answer, &mut answered));
    let cut = asked[..asked.len() - 60].to_vec();
    let mut seeds: Vec<Seed> =
        requests.iter().map(|(name, one)| ("broker_message", *name, alone(one))).collect();
    seeds.extend(answers.iter().map(|(name, one)| ("broker_message", *name, alone(one))));
    seeds.extend([
        ("broker_message", "stream-requests", asked),
        ("broker_message", "stream-answers", answered),
        ("broker_message", "stream-cut", cut),
        ("broker_message", "too-long", vec![2, 0xff, 0xff, 0x7f]),
        ("broker_message", "longer-form", vec![9, 0x80, 0]),
        ("broker_message", "four-bytes", vec![2, 0x80, 0x80, 0x80, 1]),
        ("broker_message", "unknown", vec![0x33, 0]),
        ("broker_message", "not-ascending", refused_put()),
    ]);
    seeds
}

/// A message without its length.
fn alone(message: &impl WireMessage) -> Vec<u8> {
    let mut bytes = vec![message.kind()];
    message.emit(&mut bytes);
    bytes
}

fn refused_put() -> Vec<u8> {
    let receivers = vec![PublicKey::from_bytes([4; 32]), PublicKey::from_bytes([3; 32])];
    alone(&BrokerRequest::Put { id: object().id, kind: LetterKind::Transfer, made: 0, expires: 1, receivers })
}

/// Letters and pieces, and names that are none.
pub fn name_seeds() -> Vec<Seed> {
    let Letter { object, receiver, kind, made, expires, manifest, contents } = letter();
    let name = LetterName { kind, object, made, expires, manifest, contents, count: 64 };
    let receipt = LetterName { kind: LetterKind::Receipt, made: -1, contents: 0, count: 1, ..name };
    let text = |name: String| name.into_bytes();
    vec![
        ("broker_names", "file", text(name.file())),
        ("broker_names", "letter", text(places::letter(&receiver, &name))),
        ("broker_names", "receipt", text(places::letter(&receiver, &receipt))),
        ("broker_names", "piece", text(places::piece(&object, 204_799))),
        ("broker_names", "upper-case", text(places::piece(&object, 1).to_uppercase())),
        ("broker_names", "count", text(name.file().replace("-40", "-41"))),
        ("broker_names", "kind", text(name.file().replacen('t', "x", 1))),
        ("broker_names", "more", text(name.file() + "-")),
        ("broker_names", "other", b"probe".to_vec()),
    ]
}
