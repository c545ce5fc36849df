//! AGGFRAG payloads: headers survive a round trip, data blocks lie back to back and in order.

use strait_wire::aggfrag::{self, CONGESTION_LEN, DataBlock, Header, PLAIN_LEN, Payload, Subtype};
use strait_wire::delivery::{self, Delivery};
use strait_wire::ip;

/// One payload under next header 144.
pub fn check(data: &[u8]) {
    let Ok(payload) = Payload::parse(data) else { return };
    assert!(matches!(aggfrag::subtype(data), Some(Subtype::Plain | Subtype::Congestion)));
    check_header(&payload);
    check_blocks(&payload);
}

fn check_header(payload: &Payload<'_>) {
    let mut bytes = match payload.header {
        Header::Plain { .. } => vec![0xff; PLAIN_LEN],
        Header::Congestion { .. } => vec![0xff; CONGESTION_LEN],
    };
    match &payload.header {
        Header::Plain { offset } => aggfrag::emit_plain(&mut bytes, *offset),
        Header::Congestion { offset, report } => aggfrag::emit_congestion(&mut bytes, *offset, report),
    }
    .unwrap();
    assert_eq!(Payload::parse(&bytes).unwrap().header, payload.header);
}

fn check_blocks(payload: &Payload<'_>) {
    let offset = usize::from(payload.header.offset());
    let mut covered = 0;
    let (mut ended, mut pad) = (false, None);
    for (index, block) in payload.blocks().enumerate() {
        assert!(!ended, "something behind the last block");
        let rest = &payload.region[covered..];
        match block {
            DataBlock::Continuation(bytes) => {
                assert_eq!((index, bytes), (0, &rest[..offset.min(rest.len())]));
                covered += bytes.len();
            }
            DataBlock::Whole(bytes) => {
                assert!(rest.starts_with(bytes));
                assert_eq!(ip::declared_len(rest), Ok(bytes.len()));
                covered += bytes.len();
            }
            DataBlock::Start { bytes, len } => {
                assert_eq!(bytes, rest);
                assert!(len.is_none_or(|len| len > bytes.len()));
                assert_eq!(len, ip::declared_len(bytes).ok());
                (covered, ended) = (payload.region.len(), true);
            }
            DataBlock::Pad => {
                assert_eq!(rest[0] >> 4, 0);
                check_delivery(rest);
                pad = Some(rest);
                (covered, ended) = (payload.region.len(), true);
            }
            DataBlock::Bad(malformed) => {
                assert_eq!(malformed.len, rest.len());
                (covered, ended) = (payload.region.len(), true);
            }
        }
    }
    assert_eq!(covered, payload.region.len());
    assert_eq!(payload.padding(), pad);
}

/// What a report says in its pad block.
fn check_delivery(pad: &[u8]) {
    let Ok(delivery) = Delivery::parse(pad) else { return };
    let mut bytes = vec![0xff; delivery::LEN];
    delivery.emit(&mut bytes).unwrap();
    // One without marks has room for them where it is written.
    let marked = delivery.marked.or(Some(0));
    assert_eq!(Delivery::parse(&bytes), Ok(Delivery { marked, ..delivery }));
}
