use proptest::prelude::*;
use strait_wire::tcp::TcpFlags;

use super::*;
use crate::packet::{TcpFields, is_intact, put16};
use crate::{FlowShape, NodeId};

/// A host's packets, each with the next number in its IP header.
struct VjHost {
    shape: FlowShape,
    ident: u16,
}

impl VjHost {
    fn new(port: u16) -> VjHost {
        VjHost { shape: FlowShape::new(NodeId(0).inner_v4(port), NodeId(1).inner_v4(513)), ident: 7 }
    }

    fn packet(&mut self, fields: &TcpFields<'_>, payload: &[u8]) -> Vec<u8> {
        self.ident = self.ident.wrapping_add(1);
        numbered(self.shape.tcp_with(fields, payload), self.ident)
    }

    fn segment(&mut self, (seq, ack): (u32, u32), payload: &[u8]) -> Vec<u8> {
        let flags = if payload.is_empty() { TcpFlags(0) } else { TcpFlags::PSH };
        self.packet(&TcpFields { seq, ack, flags, ..TcpFields::default() }, payload)
    }
}

fn numbered(mut packet: Vec<u8>, ident: u16) -> Vec<u8> {
    put16(&mut packet, 4, ident);
    put16(&mut packet, 10, 0);
    let sum = strait_wire::ip::v4_header_checksum(&packet[..IPV4]);
    put16(&mut packet, 10, sum);
    packet
}

/// Bytes that a packet's headers become, which have to come back as they were.
fn headers(ends: &mut (VjCompressor, VjExpander), packet: &[u8], payload: usize) -> usize {
    let sent = ends.0.compress(packet);
    assert_eq!(ends.1.expand(&sent).as_deref(), Some(packet), "{sent:02x?}");
    let (VjPacket::Plain(sent) | VjPacket::Remembered(sent) | VjPacket::Changed(sent)) = sent;
    sent.len() - payload
}

#[test]
fn headers_of_typing_and_of_bulk_data_take_three_to_five_bytes() {
    let (mut ends, mut host) = (<(VjCompressor, VjExpander)>::default(), VjHost::new(1023));
    let (mut seq, mut ack) = (1000, 5000);
    assert_eq!(headers(&mut ends, &host.segment((seq, ack), b"a"), 1), 40, "the first goes whole");
    for character in [b"b", b"c", b"d"] {
        // Its echo was acknowledged with it (RFC 1144 section 3.2.2: S, W and U stand for that).
        (seq, ack) = (seq + 1, ack + 1);
        assert_eq!(headers(&mut ends, &host.segment((seq, ack), character), 1), 3);
    }
    // The acknowledgement of a longer answer, then a character: what moved is a byte each.
    ack += 80;
    assert_eq!(headers(&mut ends, &host.segment((seq + 1, ack), b""), 0), 5);
    assert_eq!(
        headers(&mut ends, &host.segment((seq + 1, ack), b"e"), 1),
        3,
        "data after an acknowledgement"
    );
    // A file: S, A, W and U stand for all that follows the packet before.
    let mut file = VjHost::new(20);
    let block = [7; 256];
    for number in 0..4 {
        let expected = if number == 0 { 40 } else { 3 };
        assert_eq!(headers(&mut ends, &file.segment((number * 256, 9), &block), 256), expected);
    }
    // Another connection's number, or a number of IP that is not the next, is a byte or more.
    assert_eq!(headers(&mut ends, &host.segment((seq + 2, ack + 1), b"f"), 1), 4);
    file.ident += 300;
    assert_eq!(headers(&mut ends, &file.segment((1024, 9), &block), 256), 3 + 1 + 3);
}

#[test]
fn what_cannot_be_left_out_goes_whole() {
    let (mut ends, mut host) = (<(VjCompressor, VjExpander)>::default(), VjHost::new(1023));
    let fields = TcpFields { seq: 5, ..TcpFields::default() };
    let syn = TcpFields { flags: TcpFlags::SYN, ..fields };
    for payload in [&b""[..], b"data"] {
        let packet = host.packet(&syn, payload);
        assert!(matches!(ends.0.compress(&packet), VjPacket::Plain(sent) if sent == packet));
    }
    let datagram = host.shape.udp(b"data");
    assert_eq!(ends.0.compress(&datagram), VjPacket::Plain(datagram));
    assert_eq!(headers(&mut ends, &host.packet(&fields, b"data"), 4), 40);
    // Sent again: nothing moved.
    assert_eq!(headers(&mut ends, &host.packet(&fields, b"data"), 4), 40);
    // Other options, as timestamps are in each packet.
    for options in [[1, 1, 1, 0], [1, 1, 0, 0]] {
        assert_eq!(
            headers(&mut ends, &host.packet(&TcpFields { options: &options, ..fields }, b"data"), 4),
            44
        );
    }
    // More than 16 bits, and back.
    assert_eq!(headers(&mut ends, &host.packet(&TcpFields { seq: 70_000, ..fields }, b"data"), 4), 40);
    assert_eq!(headers(&mut ends, &host.packet(&fields, b"data"), 4), 40);
}

#[test]
fn connections_beyond_the_sixteenth_take_the_place_of_the_one_used_the_longest_ago() {
    let mut ends = <(VjCompressor, VjExpander)>::default();
    let mut hosts: Vec<VjHost> = (0..18).map(|number| VjHost::new(1000 + number)).collect();
    for host in &mut hosts {
        assert_eq!(headers(&mut ends, &host.segment((0, 0), b"a"), 1), 40);
    }
    assert_eq!(headers(&mut ends, &hosts[2].segment((1, 0), b"a"), 1), 4);
    assert_eq!(headers(&mut ends, &hosts[0].segment((1, 0), b"a"), 1), 40);
    assert_eq!(headers(&mut ends, &hosts[2].segment((2, 0), b"a"), 1), 4);
    assert_eq!(headers(&mut ends, &hosts[3].segment((1, 0), b"a"), 1), 40);
}

#[test]
fn after_a_loss_nothing_is_put_together_until_a_packet_names_its_connection() {
    let (mut ends, mut host) = (<(VjCompressor, VjExpander)>::default(), VjHost::new(1023));
    headers(&mut ends, &host.segment((0, 0), b"a"), 1);
    ends.1.toss();
    let sent = ends.0.compress(&host.segment((1, 0), b"b"));
    assert!(matches!(sent, VjPacket::Changed(_)));
    assert_eq!(ends.1.expand(&sent), None);
    let again = host.segment((1, 0), b"b");
    headers(&mut ends, &again, 1);
}

#[test]
fn every_truncated_packet_is_refused_or_shorter() {
    let (mut ends, mut host) = (<(VjCompressor, VjExpander)>::default(), VjHost::new(1023));
    let first = host.segment((0, 0), b"abc");
    let VjPacket::Remembered(first) = ends.0.compress(&first) else { panic!("the first goes whole") };
    for len in 0..first.len() {
        assert_eq!(ends.1.clone().expand(&VjPacket::Remembered(first[..len].to_vec())), None);
    }
    ends.1.expand(&VjPacket::Remembered(first)).unwrap();
    let VjPacket::Changed(sent) = ends.0.compress(&host.segment((700, 900), b"abc")) else {
        panic!("the second has changes")
    };
    for len in 0..sent.len() {
        let expanded = ends.1.clone().expand(&VjPacket::Changed(sent[..len].to_vec()));
        assert!(expanded.is_none_or(|packet| !is_intact(&packet)), "{len}");
    }
}

prop_compose! {
    /// How a packet differs from the one before.
    fn steps()(port in 0..20_u16, seq in 0..4_u32, ack in 0..4_u32, window in any::<u16>(), far in any::<u32>(),
               flags in any::<u8>(), urgent in 0..3_u16, ident in 0..3_u16, len in 0..40_usize) -> [u32; 9] {
        [port.into(), seq, ack, window.into(), far, flags.into(), urgent.into(), ident.into(), len as u32]
    }
}

proptest! {
    #[test]
    fn packets_come_back_as_they_were(steps in prop::collection::vec(steps(), 1..60)) {
        let mut ends = <(VjCompressor, VjExpander)>::default();
        let (mut seq, mut ack, mut window, mut ident, mut last) = (0_u32, 0_u32, 0_u16, 0_u16, 0_u32);
        for [port, seq_step, ack_step, new_window, far, flags, urgent, ident_step, len] in steps {
            let step = |kind| match kind { 0 => 0, 1 => last, 2 => far & 0x3ff, _ => far };
            seq = seq.wrapping_add(step(seq_step));
            ack = ack.wrapping_add(step(ack_step));
            if new_window % 3 == 0 {
                window = new_window as u16;
            }
            ident = ident.wrapping_add(if ident_step == 2 { far as u16 } else { ident_step as u16 });
            let shape = FlowShape::new(NodeId(0).inner_v4(port as u16 % 3), NodeId(1).inner_v4(9));
            let fields = TcpFields { seq, ack, window, flags: TcpFlags(flags as u8 & 0xe8), options: &[] };
            let mut packet = shape.tcp_with(&fields, &vec![flags as u8; len as usize]);
            // The checksum with it does not matter here: it is carried as it is.
            put16(&mut packet, 38, urgent as u16);
            let packet = numbered(packet, ident);
            headers(&mut ends, &packet, len as usize);
            last = len;
        }
    }

    #[test]
    fn whatever_comes_nothing_panics(packets in prop::collection::vec((0..3_u8, prop::collection::vec(any::<u8>(), 0..60)), 0..20)) {
        let mut expander = VjExpander::default();
        for (kind, bytes) in packets {
            expander.expand(&match kind {
                0 => VjPacket::Plain(bytes),
                1 => VjPacket::Remembered(bytes),
                _ => VjPacket::Changed(bytes),
            });
        }
    }
}
