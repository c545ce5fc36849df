//! What header compression gains on a thin link.

use super::*;

/// What one packet of an aggregate takes on the wire, all around it included; everything has to arrive.
fn wire_each(line: &mut Line, packets: impl Iterator<Item = (u64, Shape)>) -> f64 {
    let (began, mut count) = (line.sender.now, 0);
    for (micros, shape) in packets {
        line.run_until(began + Duration::from_micros(micros));
        line.send(&shape);
        count += 1;
    }
    line.run_for(2_000);
    assert_eq!((line.arrived.len(), line.sender.dropped()), (count, 0));
    line.sender.peer.out_wire.get() as f64 / count as f64
}

/// A receiver's acknowledgements of a transfer at 10 Mbit/s, of every segment of 1,348 bytes, as Linux sends them where nothing
/// joins segments.
fn acknowledgement(number: u16) -> (u64, Shape) {
    let micros = u64::from(number) * 1_125;
    let millis = u32::try_from(micros / 1_000).unwrap();
    let mut shape = Shape::new(Version::V4, Protocol::TCP, Vec::new());
    shape.id = 700 + number;
    shape.ack = 2 + u32::from(number) * 1_348;
    // The receiver's buffer grows now and then.
    shape.window = 464 + number / 3;
    let stamps = [5_000_000 + millis, 9_000_000 + millis].map(u32::to_be_bytes).concat();
    shape.options = [&[1, 1, 8, 10][..], &stamps].concat();
    (micros, shape)
}

#[test]
fn acknowledgements_of_a_transfer_leave_the_thin_direction_free() {
    let all = Queueing { thin_acks: false, ..Queueing::NORMAL };
    let mut line = Line::new(128_000, Vec::new(), all);
    let each = wire_each(&mut line, (0..2_000).map(acknowledgement));
    assert!(each <= 25.0, "{each:.1} bytes each");
    let mut alone = Line::new(10_000_000, Vec::new(), Queueing { window: 1, ..Queueing::NORMAL });
    let apart = wire_each(&mut alone, (0..2_000).map(acknowledgement));
    assert!(apart > 100.0, "{apart:.1} bytes each");
}

#[test]
fn random_telemetry_passes_at_nearly_twice_the_rate() {
    let delivered = |queueing| {
        let mut line = Line::new(1_500_000, Vec::new(), queueing);
        let mut random = strait_clock::Random::new(3);
        for number in 0..20_000_u16 {
            let payload = (0..64).map(|_| random.next_u64().to_be_bytes()[0]).collect();
            line.send(&Shape { payload, id: number, ..text(80, 0) });
            line.run_for(u64::from(number % 4 == 3));
        }
        line.arrived.len() as f64
    };
    let alone = delivered(Queueing { window: 1, ..Queueing::NORMAL });
    let together = delivered(Queueing::NORMAL);
    assert!(together >= 1.9 * alone, "{together} aggregated, {alone} alone");
}
