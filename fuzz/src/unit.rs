//! Units that a peer sent: any bytes as a stream.

use std::io::Read;

use strait_stream::unit::{UNIT_HEADER_LEN, UNIT_MAX, UnitHeader, UnitReader};

/// A stream of units.
pub fn check(data: &[u8]) {
    if let Some(Ok(header)) = data.first_chunk().map(UnitHeader::parse) {
        assert_eq!(header.bytes(), data[..UNIT_HEADER_LEN]);
        assert!(header.payload <= header.raw && header.raw <= UNIT_MAX);
    }
    let mut reader = UnitReader::new(data);
    let mut bytes = vec![0; 1 << 16];
    let mut read = 0;
    // Small reads and large ones in turn: they go different ways.
    for room in [3, bytes.len()].into_iter().cycle() {
        match reader.read(&mut bytes[..room]) {
            Ok(0) => {
                assert_eq!(reader.wire(), data.len() as u64);
                break;
            }
            Ok(len) => read += len,
            Err(error) => {
                // What was refused stays refused.
                assert!(
                    reader.read(&mut bytes).is_err() || error.kind() == std::io::ErrorKind::UnexpectedEof
                );
                break;
            }
        }
    }
    assert!(read <= UNIT_MAX * (data.len() / UNIT_HEADER_LEN + 1));
}
