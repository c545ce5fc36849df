//! Repair symbols and source symbols.

use strait_wire::symbol::{self, RepairSymbol};

/// One buffer, read as a repair symbol and as a source symbol.
pub fn check(data: &[u8]) {
    if let Ok(read) = RepairSymbol::parse(data) {
        let mut bytes = vec![0; symbol::header_len(read.covered) + read.symbol.len()];
        symbol::emit_header(read.covered, &mut bytes).unwrap().copy_from_slice(read.symbol);
        assert_eq!(bytes, data);
        let numbers: Vec<u64> = read.numbers(1000).collect();
        assert_eq!(numbers.len(), read.covered.count_ones() as usize);
        assert!(numbers.is_sorted_by(|newer, older| newer > older));
        assert!(numbers.iter().all(|number| (872..1000).contains(number)));
    }
    if let Ok((next, payload)) = symbol::source_payload(data) {
        let header = symbol::source_header(next, payload.len()).unwrap();
        let bytes = [&header[..], payload].concat();
        assert!(data.starts_with(&bytes) && data[bytes.len()..].iter().all(|byte| *byte == 0));
    }
}
