//! Requests for missing numbers, and payloads that are sent again.

use strait_wire::missing::{MissingRanges, RANGES_MAX};
use strait_wire::repetition::{self, Repeated, Repetition};

/// One buffer, read as a request and as a repetition.
pub fn check(data: &[u8]) {
    if let Ok(missing) = MissingRanges::parse(data) {
        assert!((1..=RANGES_MAX).contains(&missing.ranges().len()));
        assert!(missing.ranges().iter().all(|range| range.count > 0));
        let mut bytes = vec![0xff; missing.wire_len()];
        missing.emit(&mut bytes).unwrap();
        assert_eq!((&bytes[..2], &bytes[4..]), (&data[..2], &data[4..bytes.len()]));
        assert_eq!(MissingRanges::parse(&bytes), Ok(missing));
    }
    let Ok((header, repeated)) = Repetition::parse(data) else { return };
    match repeated {
        Repeated::Payload(payload) => {
            let mut bytes = vec![0xff; repetition::HEADER_LEN];
            header.emit(&mut bytes).unwrap();
            assert_eq!([&bytes[..], payload].concat(), data);
        }
        Repeated::Nothing(count) => {
            let mut bytes = [0xff; repetition::NOTICE_LEN];
            repetition::emit_notice(&mut bytes, header.distance, count).unwrap();
            assert!(data.starts_with(&bytes));
        }
    }
}
