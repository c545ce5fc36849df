//! The IPComp header: everything but the flags survives.

use strait_wire::ipcomp::{HEADER_LEN, Header};

/// One buffer with a header in front.
pub fn check(data: &[u8]) {
    let Ok((header, rest)) = Header::parse(data) else {
        assert!(data.len() < HEADER_LEN);
        return;
    };
    let mut bytes = [0xff; HEADER_LEN];
    header.emit(&mut bytes).unwrap();
    assert_eq!((bytes[0], bytes[1], &bytes[2..]), (data[0], 0, &data[2..4]));
    assert_eq!(rest, &data[HEADER_LEN..]);
}
