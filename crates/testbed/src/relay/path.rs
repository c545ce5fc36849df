//! A path between two hosts: a link model for each direction, and how frames take it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use strait_clock::Time;
use strait_sim::{LinkCounters, SimLink};
use strait_wire::Tos;

use super::FrameDirection;
use super::forwarder::FrameQueue;

/// Bytes of an Ethernet header; its last two are the type.
const ETHERNET: usize = 14;
/// The bit of a destination's first byte that tells multicast (IEEE 802), which never leaves the hosts' own wire.
const GROUP: u8 = 1;
/// Types of frames (IANA, IEEE 802 numbers).
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Bytes of an IPv6 header, behind which ICMPv6 has its type.
const IPV6_HEADER: usize = 40;
/// ICMPv6 as a next header, and its messages of neighbour discovery (RFC 4861 section 4).
const ICMPV6: u8 = 58;
const NEIGHBOUR_DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;

/// A path of two directions, each with a model of its own; clones are the same path. May be changed while packets take it.
#[derive(Clone, Debug)]
pub struct EmulatedPath {
    links: Arc<Mutex<[SimLink; 2]>>,
    start: Instant,
}

impl EmulatedPath {
    /// A path whose packets go there by the first link and back by the second. The time of both, and with it a recorded rate,
    /// begins now.
    #[must_use]
    pub fn new(there: SimLink, back: SimLink) -> EmulatedPath {
        EmulatedPath { links: Arc::new(Mutex::new([there, back])), start: Instant::now() }
    }

    /// Counts of packets in one direction so far.
    #[must_use]
    pub fn counters(&self, direction: FrameDirection) -> LinkCounters {
        self.change(direction, |link| link.counters())
    }

    /// Changes the link of one direction for the packets that come from now on.
    pub fn change<T>(&self, direction: FrameDirection, change: impl FnOnce(&mut SimLink) -> T) -> T {
        let mut links = self.lock();
        let [there, back] = &mut *links;
        change(match direction {
            FrameDirection::There => there,
            FrameDirection::Back => back,
        })
    }

    fn lock(&self) -> MutexGuard<'_, [SimLink; 2]> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What puts frames into the queue of a relay as the models say.
    pub(super) fn carrier(
        &self,
    ) -> impl FnMut((FrameDirection, Instant), &[u8], &mut FrameQueue) + Send + 'static {
        let path = self.clone();
        move |sent, frame, queue| path.carry(sent, frame, queue)
    }

    /// The path begins behind the hosts' own wires: what stays on those, as ARP does, passes no model. A frame comes to its link when
    /// it was sent, so that a relay that has no processor for a while does not leave the link idle.
    fn carry(&self, (direction, sent_at): (FrameDirection, Instant), frame: &[u8], queue: &mut FrameQueue) {
        let since = sent_at.saturating_duration_since(self.start);
        let Some(tos) = tos(frame) else { return queue.push(sent_at, direction, frame) };
        let len = (frame.len() - ETHERNET) as u64;
        let arrivals = self.change(direction, |link| link.carry(len, tos, Time::ZERO + since));
        for (at, arrived) in arrivals.into_iter().flatten() {
            let due = self.start + at.since(Time::ZERO);
            if arrived == tos {
                queue.push(due, direction, frame);
            } else {
                let mut marked = frame.to_vec();
                set_tos(&mut marked, arrived);
                queue.push(due, direction, &marked);
            }
        }
    }
}

/// DSCP and ECN of the IP packet in a frame; nothing where there is none that would leave the hosts' own wire.
fn tos(frame: &[u8]) -> Option<Tos> {
    let (header, packet) = frame.split_at_checked(ETHERNET)?;
    if header[0] & GROUP != 0 {
        return None;
    }
    match [header[12], header[13]] {
        IPV4 => packet.get(1).map(|tos| Tos(*tos)),
        IPV6 => {
            let [first, second] = *packet.first_chunk()?;
            let finds = packet.get(6) == Some(&ICMPV6)
                && packet.get(IPV6_HEADER).is_some_and(|kind| NEIGHBOUR_DISCOVERY.contains(kind));
            (!finds).then_some(Tos(first << 4 | second >> 4))
        }
        _ => None,
    }
}

/// Writes DSCP and ECN, and IPv4's checksum with them (RFC 1624, equation 3).
fn set_tos(frame: &mut [u8], tos: Tos) {
    let Some((header, packet)) = frame.split_at_mut_checked(ETHERNET) else { return };
    match ([header[12], header[13]], packet) {
        (IPV4, [version, before, rest @ ..]) => {
            let (old, new) = ([*version, *before], [*version, tos.0]);
            *before = tos.0;
            let Some(checksum) = rest.get_mut(8..10) else { return };
            let word = |bytes: [u8; 2]| u32::from(u16::from_be_bytes(bytes));
            let sum = word([!checksum[0], !checksum[1]]) + (0xffff - word(old)) + word(new);
            let folded = (sum & 0xffff) + (sum >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            let [_, _, high, low] = (!folded).to_be_bytes();
            checksum.copy_from_slice(&[high, low]);
        }
        (IPV6, [first, second, ..]) => {
            *first = *first & 0xf0 | tos.0 >> 4;
            *second = *second & 0x0f | tos.0 << 4;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071 over a header whose checksum is right gives zero.
    fn checksum(header: &[u8]) -> u16 {
        let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        !u16::try_from((folded & 0xffff) + (folded >> 16)).unwrap()
    }

    fn ipv4(tos: u8) -> Vec<u8> {
        let mut frame = [[0; 12].as_slice(), &IPV4].concat();
        let mut header =
            [[0x45, tos, 0, 20, 1, 2, 0x40, 0, 64, 17, 0, 0], [10, 1, 2, 3, 10, 3, 2, 1, 0, 0, 0, 0]]
                .concat();
        header.truncate(20);
        let sum = checksum(&header).to_be_bytes();
        header[10..12].copy_from_slice(&sum);
        frame.extend(header);
        frame
    }

    #[test]
    fn a_mark_is_written_and_the_checksum_stays_right() {
        for before in 0..=255 {
            for after in 0..=255 {
                let mut frame = ipv4(before);
                assert_eq!(tos(&frame), Some(Tos(before)));
                set_tos(&mut frame, Tos(after));
                assert_eq!((tos(&frame), checksum(&frame[ETHERNET..])), (Some(Tos(after)), 0));
            }
        }
        let mut frame = [[0; 12].as_slice(), &IPV6, &[0x6a, 0x5f, 0xff, 0xff], &[0; 36]].concat();
        assert_eq!(tos(&frame), Some(Tos(0xa5)));
        set_tos(&mut frame, Tos(0x3c));
        assert_eq!(frame[ETHERNET..ETHERNET + 4], [0x63, 0xcf, 0xff, 0xff]);
    }

    #[test]
    fn only_packets_of_hosts_pass_the_model() {
        let arp = [[0; 12].as_slice(), &[0x08, 0x06], &[0; 28]].concat();
        assert_eq!(tos(&arp), None);
        let mut neighbour =
            [[0; 12].as_slice(), &IPV6, &[0x60, 0, 0, 0, 0, 32, ICMPV6, 255], &[0; 32], &[135]].concat();
        assert_eq!(tos(&neighbour), None);
        *neighbour.last_mut().unwrap() = 128;
        assert_eq!(tos(&neighbour), Some(Tos(0)), "an echo request");
        let mut multicast = ipv4(0);
        multicast[0] = 0x01;
        assert_eq!(tos(&multicast), None);
        for short in 0..ETHERNET + 1 {
            assert_eq!(tos(&ipv4(0)[..short]), None);
        }
    }
}
