//! Parts of Strait blocks, and the packets of an expanded one.

use strait_wire::block::{self, HEADER_LEN, Header, PADDING_MIN};
use strait_wire::history::BlockCache;
use strait_wire::ip;

/// One buffer, read as a part, as a padded block and as an expanded one.
pub fn check(data: &[u8]) {
    if let Ok((header, rest)) = Header::parse(data) {
        assert!(header.part < header.parts);
        let mut bytes = vec![0; HEADER_LEN];
        header.emit(&mut bytes).unwrap();
        bytes.extend_from_slice(rest);
        assert_eq!(bytes, data);
        check_packets(rest);
    }
    if let Ok((said, rest)) = BlockCache::parse(data) {
        let mut bytes = vec![0; said.head_len()];
        said.emit(&mut bytes).unwrap();
        bytes.extend_from_slice(rest);
        assert_eq!(bytes, data);
    }
    if let Ok(block) = block::without_padding(data) {
        assert!(data.starts_with(block) && data.len() >= block.len() + PADDING_MIN);
        let mut again = data.to_vec();
        block::pad(&mut again, block.len()).unwrap();
        assert_eq!(block::without_padding(&again), Ok(block));
    }
    check_packets(data);
}

fn check_packets(data: &[u8]) {
    let mut rest = data;
    let mut packets = block::packets(data);
    for packet in packets.by_ref() {
        match packet {
            Ok(packet) => {
                assert!(rest.starts_with(packet));
                assert_eq!(ip::declared_len(rest), Ok(packet.len()));
                rest = &rest[packet.len()..];
            }
            Err(malformed) => {
                assert_eq!(malformed.len, rest.len());
                assert!(ip::Packet::parse(rest).is_err());
                rest = &[];
            }
        }
    }
    assert!(rest.is_empty() && packets.next().is_none());
}
