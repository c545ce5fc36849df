use super::*;
use crate::sample::Shape;
use strait_wire::ip::Version;

const RST: u8 = 0x14;

/// A segment of the flow from this port of this host.
fn segment(host: u8, port: u16, seq: u32, len: usize) -> Shape {
    Shape { host, ports: [port, 80], seq, ..Shape::new(Version::V4, Protocol::TCP, vec![7; len]) }
}

fn note(outage: &mut Outage, shape: &Shape, millis: u64) {
    let bytes = shape.packet();
    let packet = SuperPacket::new(&bytes, &vnet::Header::PLAIN).unwrap();
    outage.note(&packet, ReturnPath::default, 1, Time::from_millis(millis));
}

/// One that was heard before, and where something waits for an answer since second 1.
fn silent() -> Outage {
    let mut outage = Outage::default();
    note(&mut outage, &segment(1, 1000, 1, 100), 1000);
    outage
}

/// One in which a host has sent again what waits, until second 2.
fn doubted() -> Outage {
    let mut outage = silent();
    for millis in [1990, 2000] {
        note(&mut outage, &segment(1, 1000, 1, 100), millis);
    }
    outage
}

fn hosts(outage: &Outage) -> Vec<(u8, u16)> {
    let host = |kept: &KeptSegment| match kept.sent.flow.src {
        IpAddr::V4(src) => src.octets()[3],
        IpAddr::V6(src) => src.octets()[15],
    };
    outage.kept.iter().map(|kept| (host(kept), kept.sent.flow.src_port)).collect()
}

#[test]
fn only_what_tcp_sends_again_is_kept_and_only_in_silence() {
    let data = segment(1, 1000, 1, 100);
    let with = |flags: u8| Shape { flags, ..segment(1, 1000, 1, 0) };
    let udp = Shape::new(Version::V4, Protocol::UDP, vec![7; 100]);
    let six = Shape { version: Version::V6, ..data.clone() };
    for (shape, kept) in [
        (&data, 1),
        (&six, 1),
        (&with(0x02), 1),
        (&with(0x11), 1),
        (&with(0x10), 0),
        (&with(RST), 0),
        (&udp, 0),
    ] {
        let mut outage = silent();
        note(&mut outage, shape, 1499);
        assert_eq!(outage.kept.len(), 0, "{shape:?}");
        note(&mut outage, shape, 1500);
        assert_eq!(outage.kept.len(), kept, "{shape:?}");
    }
    let mut outage = Outage::default();
    for millis in (1000..60_000).step_by(100) {
        note(&mut outage, &with(0x10), millis);
        note(&mut outage, &udp, millis);
    }
    assert_eq!((outage.first, outage.due()), (None, None), "nothing is waited for");
    let bytes = data.packet();
    let packet = SuperPacket::new(&bytes, &vnet::Header::PLAIN).unwrap();
    for millis in (1000..60_000).step_by(100) {
        outage.note(&packet, ReturnPath::default, 0, Time::from_millis(millis));
    }
    assert_eq!(outage.due(), None, "the peer was never heard");
}

#[test]
fn newest_segment_of_each_flow_waits_until_the_flow_is_reset() {
    let mut outage = silent();
    for seq in 1..10 {
        note(&mut outage, &segment(1, 1000, seq, 100 * seq as usize), 2000);
        note(&mut outage, &segment(1, 1001, seq, 50), 2000);
    }
    note(&mut outage, &Shape { flags: RST, ..segment(1, 1001, 1, 0) }, 2000);
    let kept: Vec<_> = outage.kept.iter().map(|kept| kept.bytes.clone()).collect();
    assert_eq!(kept, [segment(1, 1000, 9, 900).packet()]);
    assert_eq!(outage.bytes, kept[0].len());
    note(&mut outage, &Shape { flags: RST, ..segment(1, 1000, 1, 0) }, 2000);
    assert_eq!((outage.kept.len(), outage.bytes, outage.probe_at), (0, 0, None));
}

#[test]
fn path_is_doubted_when_a_host_sends_again_and_not_when_it_goes_on() {
    let mut outage = silent();
    for part in 0..100 {
        for (port, first) in [(1000, 101), (1001, u32::MAX - 1_500)] {
            let millis = 2000 + 1000 * u64::from(part);
            note(&mut outage, &segment(1, port, first.wrapping_add(100 * part), 100), millis);
        }
    }
    assert_eq!(outage.due(), Some(Time::from_millis(101_000) + FORGET_AFTER), "no probe");
    // The last of what was sent, as a tail loss probe is (RFC 8985), and the first, which is missing.
    for seq in [9_907, 7] {
        for (millis, due) in [(1600, 2000), (4000, 4000)] {
            let mut outage = silent();
            note(&mut outage, &segment(1, 1001, 7, 10_000), 1500);
            assert_eq!(outage.probe_at, None);
            for millis in [millis, 5000] {
                note(&mut outage, &segment(1, 1001, seq, 100), millis);
                assert_eq!(outage.due(), Some(Time::from_millis(due)), "{seq}");
            }
        }
    }
    // The first of the silence, once more.
    let mut outage = silent();
    note(&mut outage, &segment(1, 1000, 1, 100), 1500);
    assert_eq!(outage.due(), Some(Time::from_millis(2000)));
}

#[test]
fn many_flows_of_one_host_take_nothing_from_others() {
    for len in [10, 1400, 20_000] {
        let mut outage = silent();
        for port in 0..10 {
            note(&mut outage, &segment(1, port, 1, len), 2000);
        }
        let own = hosts(&outage);
        for port in 0..1000 {
            note(&mut outage, &segment(2, port, 1, len), 3000 + u64::from(port));
        }
        assert!(outage.kept.len() <= FLOWS && outage.bytes <= BYTES, "{outage:?}");
        let left: Vec<_> = hosts(&outage).into_iter().filter(|(host, _)| *host == 1).collect();
        assert_eq!(left, own, "{len}");
        if len < 10_000 {
            assert!(hosts(&outage).contains(&(2, 999)), "the newest of the many");
            assert!(!hosts(&outage).contains(&(2, 0)));
        }
    }
}

/// Returns the times of probes in a silence of so many seconds, in which a host sends again every minute.
fn probes(seconds: u64, path: ReturnPath) -> Vec<u64> {
    let (mut outage, mut at) = (doubted(), Vec::new());
    for millis in (1000..1000 + seconds * 1000).step_by(10) {
        if millis % 60_000 == 0 {
            note(&mut outage, &segment(1, 1000, 1, 100), millis);
        }
        let now = Time::from_millis(millis);
        if outage.asks(now) {
            outage.asked(100, path, now);
            at.push(millis);
        }
    }
    at
}

#[test]
fn probes_are_a_half_second_apart_at_first_and_five_seconds_in_the_end() {
    let usual = ReturnPath::default();
    assert_eq!(probes(5, usual)[..5], [2000, 3000, 3500, 4000, 4500]);
    let at = probes(7200, usual);
    let apart = |from: usize| at[from] - at[from - 1];
    assert!((10..190).all(|probe| apart(probe) == 500));
    assert!((190..at.len()).all(|probe| apart(probe) <= 520.max(at[probe] / 200 + 20)));
    assert_eq!(apart(at.len() - 1), 5000);
    let slow = ReturnPath { rate: strait_scheduler::Rate::from_bits(9600), ..usual };
    let at = probes(60, slow);
    // 100 bytes are 83 ms of 9,600 bit/s, of which a fiftieth is taken.
    assert!(at.windows(2).all(|pair| pair[1] - pair[0] >= 50 * 83), "{:?}", &at[..4]);
    let far = ReturnPath { round_trip: Some(Duration::from_secs(2)), ..usual };
    assert_eq!(probes(12, far)[..3], [2000, 6000, 7000]);
}

#[test]
fn what_is_not_sent_again_is_forgotten() {
    let mut outage = doubted();
    assert!(outage.asks(Time::from_millis(151_999)));
    assert!(!outage.asks(Time::from_millis(152_000)));
    assert_eq!((outage.due(), outage.bytes), (None, 0));
}

#[test]
fn an_answer_to_the_first_probe_is_no_outage() {
    for (probes, again) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
        let mut outage = doubted();
        for probe in 0..probes {
            let now = Time::from_millis(2000 + 1000 * probe);
            assert!(outage.asks(now));
            outage.asked(100, ReturnPath::default(), now);
        }
        assert!(!outage.is_over(1) && outage.is_over(2));
        assert_eq!(outage.end(2, Time::from_millis(10_000)).len(), again, "{probes}");
        assert!(!outage.is_over(3) && outage.due().is_none());
    }
}

#[test]
fn segments_that_are_too_old_do_not_leave_when_keys_come_late() {
    for (end, left) in [(151_999, 1), (152_000, 0)] {
        let mut outage = doubted();
        for now in [2000, 3000].map(Time::from_millis) {
            assert!(outage.asks(now));
            outage.asked(100, ReturnPath::default(), now);
        }
        outage.renew();
        assert_eq!(outage.end(2, Time::from_millis(end)).len(), left);
    }
}
