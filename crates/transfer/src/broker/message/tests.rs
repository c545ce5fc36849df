use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::message::{MessageReader, frame, length};

fn key() -> impl Strategy<Value = PublicKey> {
    any::<[u8; 32]>().prop_map(PublicKey::from_bytes)
}

fn id() -> impl Strategy<Value = TransferId> {
    any::<[u8; 16]>().prop_map(TransferId::from_bytes)
}

fn object() -> impl Strategy<Value = ObjectName> {
    (key(), id()).prop_map(|(sender, id)| ObjectName { sender, id })
}

fn kind() -> impl Strategy<Value = LetterKind> {
    prop_oneof![Just(LetterKind::Transfer), Just(LetterKind::Receipt)]
}

fn letter() -> impl Strategy<Value = Letter> {
    (object(), key(), kind(), any::<(i64, i64, u64, u64)>()).prop_map(
        |(object, receiver, kind, (made, expires, manifest, contents))| Letter {
            object,
            receiver,
            kind,
            made,
            expires,
            manifest,
            contents,
        },
    )
}

fn request() -> impl Strategy<Value = BrokerRequest> {
    let part = prop_oneof![Just(ObjectPart::Manifest), Just(ObjectPart::Contents)];
    prop_oneof![
        (id(), kind(), any::<(i64, i64)>(), vec(key(), 1..8)).prop_map(
            |(id, kind, (made, expires), mut receivers)| {
                receivers.sort();
                receivers.dedup();
                BrokerRequest::Put { id, kind, made, expires, receivers }
            }
        ),
        (0..u64::MAX - 300, vec(any::<u8>(), 0..300))
            .prop_map(|(at, bytes)| BrokerRequest::Data { at, bytes }),
        vec(any::<u8>(), 0..300).prop_map(|bytes| BrokerRequest::Manifest { bytes }),
        any::<u64>().prop_map(|contents| BrokerRequest::Commit { contents }),
        id().prop_map(|id| BrokerRequest::Abandon { id }),
        (prop_oneof![Just(LetterBox::Inbox), Just(LetterBox::Sent)], vec(any::<u8>(), 0..MAX_TEXT))
            .prop_map(|(which, after)| BrokerRequest::List { which, after }),
        (object(), kind(), part, any::<u64>()).prop_map(|(object, kind, part, at)| BrokerRequest::Read {
            object,
            kind,
            part,
            at
        }),
        (object(), kind()).prop_map(|(object, kind)| BrokerRequest::Remove { object, kind }),
        Just(BrokerRequest::Alive),
    ]
}

fn answer() -> impl Strategy<Value = BrokerAnswer> {
    let fault = (1..=16_u8, "[a-zé ]{0,200}")
        .prop_map(|(number, text)| BrokerFault::new(FaultKind::of_number(number).unwrap(), text));
    prop_oneof![
        (any::<i64>(), any::<Option<u64>>(), any::<(u64, u64)>())
            .prop_map(|(now, room, (largest, keep))| BrokerAnswer::Welcome { now, room, largest, keep }),
        (id(), any::<(u64, u64)>()).prop_map(|(id, (one, other))| BrokerAnswer::Held {
            id,
            stored: one.min(other),
            next: one.max(other)
        }),
        id().prop_map(|id| BrokerAnswer::Stored { id }),
        vec(letter(), 0..5).prop_map(BrokerAnswer::Letters),
        vec(any::<u8>(), 0..MAX_TEXT).prop_map(|next| BrokerAnswer::ListEnd { next }),
        vec(any::<u8>(), 0..300).prop_map(BrokerAnswer::Bytes),
        any::<u64>().prop_map(|size| BrokerAnswer::ReadEnd { size }),
        object().prop_map(|object| BrokerAnswer::Removed { object }),
        (proptest::option::of(id()), fault).prop_map(|(id, fault)| BrokerAnswer::Refused { id, fault }),
        Just(BrokerAnswer::Alive),
    ]
}

proptest! {
    #[test]
    fn requests_come_back_as_they_were_written(all in vec(request(), 0..6)) {
        let mut bytes = Vec::new();
        all.iter().for_each(|one| frame(one, &mut bytes));
        let mut reader = MessageReader::new(&bytes[..]);
        for one in all {
            prop_assert_eq!(reader.next_message::<BrokerRequest>().unwrap(), Some(one));
        }
        prop_assert!(reader.next_message::<BrokerRequest>().unwrap().is_none());
    }

    #[test]
    fn answers_come_back_as_they_were_written(all in vec(answer(), 0..6)) {
        let mut bytes = Vec::new();
        all.iter().for_each(|one| frame(one, &mut bytes));
        let mut reader = MessageReader::new(&bytes[..]);
        for one in all {
            prop_assert_eq!(reader.next_message::<BrokerAnswer>().unwrap(), Some(one));
        }
        prop_assert!(reader.next_message::<BrokerAnswer>().unwrap().is_none());
    }

    #[test]
    fn what_parses_is_written_so(kind in any::<u8>(), body in vec(any::<u8>(), 0..200)) {
        let mut again = Vec::new();
        if let Ok(message) = BrokerRequest::parse(kind, &body) {
            message.emit(&mut again);
            prop_assert_eq!(&again, &body);
        }
        again.clear();
        if let Ok(message) = BrokerAnswer::parse(kind, &body) {
            message.emit(&mut again);
            prop_assert_eq!(&again, &body);
        }
    }
}

#[test]
fn the_largest_messages_fit_and_larger_ones_are_refused() {
    let mut bytes = Vec::new();
    frame(&BrokerRequest::Data { at: u64::MAX / 2, bytes: vec![7; MAX_DATA] }, &mut bytes);
    assert!(MessageReader::new(&bytes[..]).next_message::<BrokerRequest>().unwrap().is_some());
    let letter = Letter {
        object: ObjectName { sender: PublicKey::from_bytes([1; 32]), id: TransferId::from_bytes([2; 16]) },
        receiver: PublicKey::from_bytes([3; 32]),
        kind: LetterKind::Receipt,
        made: -1,
        expires: i64::MAX,
        manifest: u64::MAX,
        contents: u64::MAX,
    };
    bytes.clear();
    frame(&BrokerAnswer::Letters(vec![letter; MAX_LETTERS]), &mut bytes);
    assert!(MessageReader::new(&bytes[..]).next_message::<BrokerAnswer>().unwrap().is_some());
    assert_eq!(BrokerAnswer::parse(0x45, &[0; MAX_TEXT + 1]), Err(MessageFault::Bound));
    let long = BrokerRequest::parse(0x03, &vec![0; MAX_DATA + 1]);
    assert_eq!(long, Err(MessageFault::Bound));
    assert_eq!(length::<BrokerRequest>(&[0xff, 0xff, 0x7f]), Err(MessageFault::Bound));
    assert_eq!(length::<BrokerRequest>(&[0x80, 0]), Err(MessageFault::Number));
    assert_eq!(length::<BrokerRequest>(&[0x80, 0x80, 0x80]), Err(MessageFault::Number));
}
