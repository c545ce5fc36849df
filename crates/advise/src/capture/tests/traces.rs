//! Text traces.

use strait_wire::Protocol;
use strait_wire::ip::Packet;

use super::*;

/// The packet of a trace's frame, filled up to its length.
fn flow(frame: &Taken) -> strait_wire::Flow {
    let mut bytes = frame.bytes.clone();
    bytes.resize(frame.len, 0);
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.bytes().len(), frame.len);
    packet.flow()
}

#[test]
fn sizes_of_ethernet() {
    let (frames, end) = read(b"    0.001340  1090 \n    0.001508   174 \n3.5 19");
    assert!(end.is_ok(), "{end:?}");
    let figures: Vec<(u64, usize)> = frames.iter().map(|frame| (frame.nanos, frame.len)).collect();
    // Nothing is shorter than its own header.
    assert_eq!(figures, [(1_340_000, 1_072), (1_508_000, 156), (3_500_000_000, 20)]);
    assert_eq!(flow(&frames[0]).protocol, Protocol(253));
    assert_eq!((frames[0].link, frames[0].bytes.len()), (101, 20));
}

#[test]
fn conversations_of_a_wide_area() {
    let (frames, end) = read(b"759103514.560000 2 1 2436 23 0\n759103514.570000 65538 3 23 2436 512\n");
    assert!(end.is_ok(), "{end:?}");
    assert_eq!(flow(&frames[0]).to_string(), "tcp 10.0.0.2:2436 -> 10.0.0.1:23");
    assert_eq!(flow(&frames[1]).to_string(), "tcp 10.1.0.2:23 -> 10.0.0.3:2436");
    assert_eq!(frames.iter().map(|frame| frame.len).collect::<Vec<_>>(), [40, 552]);
    assert_eq!(frames[1].nanos - frames[0].nanos, 10_000_000);
}

#[test]
fn traces_without_needed_fields_are_refused() {
    for text in
        ["0.5 1 2 3161 9030\n0.6 2 3 2234 27358\n", "0.722337 35 36 1199 21 S 790272000:790272000 0\n"]
    {
        assert!(matches!(CaptureReader::open(text.as_bytes()), Err(ReadError::Unsupported(_))), "{text}");
    }
}

#[test]
fn data_resembling_a_capture_is_read_as_file() {
    for text in [
        "1 64\n2 64\n",
        "0.5 64\nhello\n",
        "0.5 64\n0.6 64 1 2 3 4\n",
        "0.5\n0.6\n",
        "0.5,64\n0.6,64\n",
        ". 64\n. 64\n",
        "1.x 64\n",
        "0.5 -64\n",
    ] {
        assert_eq!(CaptureReader::open(text.as_bytes()).unwrap().kind(), CaptureKind::File, "{text}");
    }
}

#[test]
fn malformed_line_ends_parsing() {
    let good = "0.5 64\n0.6 64\n";
    for bad in
        ["hello\n", "0.7\n", "0.7 64 65\n", "0.7 65536\n", "18446744074.0 64\n", "\n", &"9".repeat(500)]
    {
        let (frames, end) = read([good, bad].concat().as_bytes());
        assert_eq!(frames.len(), 2, "{bad}");
        assert!(matches!(end, Err(ReadError::Line { at: 14, columns: 2 })), "{bad}: {end:?}");
    }
    for len in 0..good.len() {
        // Whatever it is taken for, it has an end.
        let _ = read(&good.as_bytes()[..len]);
    }
}
