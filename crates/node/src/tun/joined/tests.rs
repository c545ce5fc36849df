use super::*;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use strait_wire::ip;

const STEP: usize = 1000;
const LEN: usize = 3_500;

/// A TCP super-packet from 10.77.0.2 to 10.77.0.1, and its header.
fn joined() -> (vnet::Header, Vec<u8>) {
    let mut packet = vec![0; 40];
    let total = u16::try_from(40 + LEN).unwrap().to_be_bytes();
    packet[..20].copy_from_slice(&[
        0x45, 0, total[0], total[1], 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1,
    ]);
    let sum = ip::v4_header_checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[20..40].copy_from_slice(&[0, 7, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    packet.extend((0..LEN).map(|at| u8::try_from(at % 251).unwrap()));
    let header = vnet::Header {
        flags: vnet::NEEDS_CSUM,
        gso_type: vnet::GSO_TCPV4,
        hdr_len: 40,
        gso_size: STEP.try_into().unwrap(),
        csum_start: 20,
        csum_offset: 16,
    };
    (header, packet)
}

/// A host that refuses packets with an error while it is said so.
#[derive(Default)]
struct Host {
    refuses: Cell<Option<i32>>,
    /// The number of calls after which it refuses single packets as well, once.
    refuses_one_at: Cell<usize>,
    calls: Cell<usize>,
    /// The packets that it took, and whether they were joined.
    taken: RefCell<Vec<(bool, Vec<u8>)>>,
}

impl Host {
    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.calls.set(self.calls.get() + 1);
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let (header, packet) = vnet::Header::parse(&bytes).unwrap();
        let is_joined = header.gso_type != vnet::GSO_NONE;
        if self.calls.get() == self.refuses_one_at.get() {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        match self.refuses.get().filter(|_| is_joined) {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => {
                self.taken.borrow_mut().push((is_joined, packet.to_vec()));
                Ok(bytes.len())
            }
        }
    }

    fn hand(&self, path: &FastPath, now: Time) -> io::Result<()> {
        let (header, packet) = joined();
        let (front, back) = packet.split_at(1_234);
        let pieces = [IoSlice::new(front), IoSlice::new(back)];
        hand_over((path, || now), &header, &pieces, |parts| self.write(parts))
    }

    /// Returns how many packets it took, all bytes in their order, and whether they were joined.
    fn takes(&self, path: &FastPath, now: Time) -> (usize, bool) {
        self.hand(path, now).unwrap();
        let taken = self.taken.take();
        let stream: Vec<u8> = taken.iter().flat_map(|(_, packet)| packet[40..].to_vec()).collect();
        assert_eq!(stream, joined().1[40..]);
        for (index, (_, packet)) in taken.iter().enumerate().filter(|(_, (is_joined, _))| !is_joined) {
            assert_whole(index, packet);
        }
        (taken.len(), taken[0].0)
    }
}

/// The packet with this number is what a receiver takes: its place in the stream, its sums.
fn assert_whole(index: usize, packet: &[u8]) {
    assert!(ip::Packet::parse(packet).is_ok());
    let number = u32::from_be_bytes(packet[24..28].try_into().unwrap());
    assert_eq!(number, u32::try_from(index * STEP).unwrap());
    let pseudo = strait_wire::checksum::pseudo(
        [10, 77, 0, 2].into(),
        [10, 77, 0, 1].into(),
        strait_wire::Protocol::TCP,
        u32::try_from(packet.len() - 20).unwrap(),
    );
    assert!(pseudo.add_bytes(&packet[20..]).is_valid(), "packet {index}");
}

#[test]
fn joined_packets_that_are_refused_are_cut_until_they_are_taken_again() {
    let (host, path) = (Host::default(), FastPath::new("a test"));
    let mut now = Time::from_millis(1);
    assert_eq!(host.takes(&path, now), (1, true));
    for errno in [libc::EINVAL, libc::EOPNOTSUPP, libc::ENOBUFS, libc::ENOMEM, libc::EMSGSIZE] {
        let before = path.refused();
        host.refuses.set(Some(errno));
        assert_eq!(host.takes(&path, now), (4, false), "nothing is lost");
        assert_eq!(path.refused(), before + 1);
        let calls = host.calls.get();
        assert_eq!(host.takes(&path, now), (4, false));
        assert_eq!(host.calls.get(), calls + 4, "it is not tried at once");
        now += Duration::from_millis(100);
        assert_eq!(host.takes(&path, now), (4, false), "it is tried, and refused again");
        assert_eq!(path.refused(), before + 2);
        host.refuses.set(None);
        assert_eq!(host.takes(&path, now), (4, false));
        now += Duration::from_millis(200);
        assert_eq!(host.takes(&path, now), (1, true));
        assert_eq!(path.warning(now), None);
    }
}

#[test]
fn an_error_that_is_not_of_joined_packets_closes_no_way() {
    let (host, path, now) = (Host::default(), FastPath::new("a test"), Time::from_millis(1));
    host.refuses.set(Some(libc::EIO));
    assert_eq!(host.hand(&path, now).unwrap_err().raw_os_error(), Some(libc::EIO));
    assert_eq!((path.refused(), host.taken.take().len(), host.calls.get()), (0, 0, 1));
    // Refused one by one as well.
    host.refuses.set(Some(libc::EINVAL));
    host.refuses_one_at.set(3);
    assert!(host.hand(&path, now).is_err());
    assert_eq!((path.refused(), host.taken.take().len()), (0, 0));
    // Not cut at all.
    let (header, packet) = joined();
    let pieces = [IoSlice::new(&packet[..30])];
    assert!(hand_over((&path, || now), &header, &pieces, |parts| host.write(parts)).is_err());
    assert_eq!((path.refused(), host.taken.take().len()), (0, 0));
}

#[test]
fn a_piece_that_is_lost_is_lost_alone() {
    let (host, path, now) = (Host::default(), FastPath::new("a test"), Time::from_millis(1));
    host.refuses.set(Some(libc::EINVAL));
    host.refuses_one_at.set(3);
    assert_eq!(host.hand(&path, now).unwrap_err().raw_os_error(), Some(libc::ENOBUFS));
    assert_eq!(host.taken.take().len(), 3, "of four");
}
