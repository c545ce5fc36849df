//! Seeds of captures and of the frames in them.

use strait_wire::Protocol;

use super::Seed;
use super::packets::{datagram, v4, v6};

/// Numbers of 32 bits, the low byte first.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A block of pcapng.
fn block_of(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len() + 12).unwrap();
    [&words(&[kind, len])[..], body, &words(&[len])].concat()
}

pub fn capture_seeds() -> Vec<Seed> {
    let packet = v4(Protocol::UDP, 0, &datagram(b"query"));
    let frame = [&[7; 12][..], &[8, 0], &packet, &[0; 3]].concat();
    let len = u32::try_from(frame.len()).unwrap();
    let head = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1]);
    let pcap = [&head[..], &words(&[1, 5, len, 1_514]), &frame, &words(&[1, 6, len, len]), &frame].concat();
    let section = block_of(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    let interface = block_of(1, &words(&[1, 64, 0x0001_0009, 9, 0]));
    let enhanced = block_of(6, &[&words(&[0, 0, 7, len, len])[..], &frame, &[0; 2]].concat());
    let simple = block_of(3, &[&words(&[len])[..], &frame, &[0; 2]].concat());
    vec![
        ("capture", "pcap", pcap),
        ("capture", "pcapng", [section, interface, enhanced, simple].concat()),
        ("capture", "trace-sizes", b"    0.001340  1090 \n    0.001508   174 \n".to_vec()),
        ("capture", "trace-ports", b"0.5 2 1 2436 23 0\n0.6 1 2 23 2436 512\n".to_vec()),
        ("capture", "file", b"anything else".to_vec()),
    ]
}

pub fn link_layer_seeds() -> Vec<Seed> {
    let packet = v6(Protocol::UDP, &datagram(b"query"));
    let seed = |link: u16, head: &[u8]| [&link.to_be_bytes()[..], head, &packet].concat();
    vec![
        ("link_layer", "ethernet", seed(1, &[&[7; 12][..], &[0x86, 0xdd]].concat())),
        (
            "link_layer",
            "tagged-pppoe",
            seed(1, &[&[7; 12][..], &[0x81, 0, 0, 5, 0x88, 0x64, 0x11, 0, 0, 1, 0, 50, 0, 0x57]].concat()),
        ),
        ("link_layer", "linux-any", seed(276, &[&[0x86, 0xdd][..], &[0; 18]].concat())),
        ("link_layer", "loopback", seed(0, &[30, 0, 0, 0])),
        ("link_layer", "raw", seed(101, &[])),
    ]
}
