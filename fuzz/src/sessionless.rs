//! Headers, key packets and acknowledgements without a session: what can be read is written the same.

use strait_wire::sessionless::{Acknowledgement, Header, KeyPacket};

/// One buffer, read as each of the three.
pub fn check(data: &[u8]) {
    if let Ok((header, rest)) = Header::parse(data) {
        let mut bytes = vec![0; header.wire_len()];
        header.emit(&mut bytes).unwrap();
        assert_eq!([&bytes[..], rest].concat(), data);
        assert!(header.bound_len() < bytes.len());
    }
    if let Ok(packet) = KeyPacket::parse(data) {
        let mut bytes = vec![0; packet.wire_len()];
        packet.emit(&mut bytes).unwrap();
        assert_eq!(bytes, data);
    }
    if let Ok(acknowledgement) = Acknowledgement::parse(data) {
        assert_eq!(Acknowledgement::parse(&acknowledgement.to_bytes()), Ok(acknowledgement));
    }
}
