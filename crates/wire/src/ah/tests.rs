use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const HEADER: Header = Header { next: Protocol::TCP, spi: Spi(0x1234_5678), seq: SeqLow(9) };

/// RFC 4302 section 2.2: "if an integrity algorithm that yields a 96-bit authentication value is used, the Payload
/// Length field is 4"; with 128 bits Linux's choice shows.
#[test]
fn lengths_by_icv_and_alignment() {
    for (icv_len, four, eight) in [(0, 12, 16), (12, 24, 24), (16, 28, 32), (24, 36, 40), (32, 44, 48)] {
        assert_eq!((len(icv_len, Align::Four), len(icv_len, Align::Eight)), (four, eight), "{icv_len}");
        for (align, len) in [(Align::Four, four), (Align::Eight, eight)] {
            let mut buf = [0xff; 50];
            assert_eq!(HEADER.emit(&mut buf, icv_len, align), Ok(len));
            assert_eq!((usize::from(buf[1]), &buf[2..4]), (len / 4 - 2, &[0, 0][..]));
            assert!(buf[HEADER_LEN..len].iter().all(|byte| *byte == 0), "ICV and padding");
            assert!(buf[len..].iter().all(|byte| *byte == 0xff), "what follows");
            assert!(HEADER.emit(&mut buf[..len - 1], icv_len, align).is_err());
        }
    }
}

#[test]
fn parse() {
    let bytes = [6, 1, 0xee, 0xdd, 1, 2, 3, 4, 0, 0, 0, 5, 9, 8];
    let view = View::parse(&bytes).unwrap();
    let header = Header { next: Protocol::TCP, spi: Spi(0x0102_0304), seq: SeqLow(5) };
    assert_eq!((view.header(), view.header_len()), (header, 12));
    assert_eq!((&view.fixed[..], view.check, view.payload), (&bytes[..12], &[][..], &[9, 8][..]));
}

#[test]
fn length_field_edges() {
    for (words, len, ok) in [
        (0, 2000, false),
        (1, 12, true),
        (1, 11, false),
        (4, 23, false),
        (255, 1027, false),
        (255, 1028, true),
    ] {
        let mut bytes = vec![0; len];
        bytes[1] = words;
        assert_eq!(View::parse(&bytes).is_ok(), ok, "{words} words in {len} bytes");
    }
}

#[test]
fn icv_fits_one_alignment_or_the_other() {
    for (icv_len, check_len, ok) in [
        (12, 12, true),
        (12, 16, false),
        (16, 16, true),
        (16, 20, true),
        (16, 24, false),
        (16, 12, false),
        (24, 24, true),
        (24, 28, true),
        (10, 12, true),
        (10, 16, false),
        (usize::MAX, 12, false),
    ] {
        let mut bytes = vec![7; HEADER_LEN + check_len];
        bytes[1] = u8::try_from((HEADER_LEN + check_len) / 4 - 2).unwrap();
        let split = View::parse(&bytes).unwrap().icv(icv_len);
        let expected = ok.then(|| (icv_len, check_len - icv_len));
        let lens = split.ok().map(|(icv, padding)| (icv.len(), padding.len()));
        assert_eq!(lens, expected, "{icv_len} of {check_len}");
    }
}

#[test]
fn longest_icv() {
    let mut buf = [0; 1100];
    assert_eq!(HEADER.emit(&mut buf, 1016, Align::Four), Ok(1028));
    assert!(HEADER.emit(&mut buf, 1016, Align::Eight).is_err());
    for icv_len in [1017, usize::MAX] {
        assert!(HEADER.emit(&mut buf, icv_len, Align::Four).is_err());
    }
}

#[test]
fn truncation() {
    let mut bytes = [0; 28];
    HEADER.emit(&mut bytes, 16, Align::Four).unwrap();
    for len in 0..bytes.len() {
        assert!(View::parse(&bytes[..len]).is_err(), "{len} bytes");
    }
}

proptest! {
    #[test]
    fn round_trip(next: u8, spi: u32, seq: u32, icv_len in 0usize..70, eight: bool, payload in vec(any::<u8>(), 0..20)) {
        let header = Header { next: Protocol(next), spi: Spi(spi), seq: SeqLow(seq) };
        let align = if eight { Align::Eight } else { Align::Four };
        let mut bytes = vec![0xff; len(icv_len, align)];
        prop_assert_eq!(header.emit(&mut bytes, icv_len, align), Ok(bytes.len()));
        bytes.extend(&payload);
        let view = View::parse(&bytes).unwrap();
        prop_assert_eq!((view.header(), view.payload), (header, &payload[..]));
        prop_assert_eq!(view.icv(icv_len).unwrap().0.len(), icv_len);
    }
}
