//! Seeds of lone packets: what both ends do, and units that no sender makes.

use super::Seed;

/// The oldest unit comes, a receipt for it leaves, and comes.
const ANSWERED: [u8; 3] = [0x60, 0xb0, 0xc0];

/// Sends readings with these operations in turn, `after` behind each.
fn readings(operations: &[u8], count: u8, after: &[u8]) -> Vec<u8> {
    let reading = |number: u8| {
        let content = format!(
            "{number:04}temperature=2{} and {}",
            number % 7,
            ["north", "south"][usize::from(number % 2)]
        );
        let operation = operations[usize::from(number) % operations.len()];
        [&[operation, u8::try_from(content.len()).unwrap()][..], content.as_bytes(), after].concat()
    };
    (0..count).flat_map(reading).collect()
}

/// Units that no sender makes, behind readings that are kept.
fn forged() -> Vec<u8> {
    let units: [&[u8]; 18] = [
        &[],
        &[0xe0, 0],
        &[0xe3, 0, 0x10, 1, 2],
        &[0xe0, 9, 0x10, 0],
        &[0xe0, 0, 0x1f, 0],
        &[0xe0, 0, 0x11],
        &[0xe0, 0, 0x21, 0x40, 0],
        &[0xe0, 0, 0x21, 0x80, 1],
        &[0xe0, 0, 0x21, 0x20, 0xc0, 0x40, 0],
        &[0xe0, 0, 0x21, 0x00, 1, 2, 3],
        &[0xe4, 0, 0x21, 0x00],
        &[0xe4, 0, 0x21, 0x00, 0x30, 1],
        &[0xe4, 0, 0x21, 0x00, 0x11, 0x90, 0x90],
        &[0xe4, 0, 0x21, 0x00, 0x1f, 0],
        &[0xe4, 0, 0x21, 0x00, 0x20, 0x80, 1, 0xff],
        &[0xe4, 0, 0x21, 0x00, 0x20, 0x7f, 0xff, 0xff],
        &[0xe4, 0, 0x21, 0x00, 0x20, 0x00, 1, 0xff, 0xff],
        &[0xe0, 0, 0x30, 0x20, 0],
    ];
    let forge = |unit: &[u8]| [&[0xff, u8::try_from(unit.len()).unwrap()][..], unit].concat();
    [readings(&[0], 6, &ANSWERED), units.into_iter().flat_map(forge).collect()].concat()
}

pub fn lone_unit_seeds() -> Vec<Seed> {
    let flows = [0x00, 0x01, 0x20, 0x21, 0x30, 0x31];
    let lost =
        [readings(&[0], 8, &ANSWERED), readings(&[0], 14, &[0xa0, 0xe9]), readings(&[0], 6, &ANSWERED)]
            .concat();
    let around =
        [readings(&[0], 6, &ANSWERED), readings(&[0], 4, &[0x60, 0xe4]), readings(&[0], 8, &ANSWERED)]
            .concat();
    let waiting =
        [readings(&[0], 40, &[0x60]), vec![0xe8, 0xb0, 0xc0], readings(&[0], 9, &[0x60, 0xe8, 0xb0, 0xd0])]
            .concat();
    let keys =
        [readings(&[0x30], 6, &ANSWERED), vec![0xf0], readings(&[0x30], 6, &[0x6f, 0xb0, 0xc0]), vec![0xf1]]
            .concat();
    let long = [&[0x00, 200][..], &[b'x'; 200]].concat();
    let long = [&long[..], &ANSWERED].concat();
    vec![
        ("lone_unit", "polls", readings(&[0], 40, &ANSWERED)),
        ("lone_unit", "segments", readings(&[0x30], 30, &ANSWERED)),
        ("lone_unit", "service", readings(&[0x08, 0x09], 20, &ANSWERED)),
        ("lone_unit", "headers-alone", readings(&[0x24], 12, &ANSWERED)),
        ("lone_unit", "more-flows-than-contexts", readings(&flows, 60, &ANSWERED)),
        ("lone_unit", "overtaking", readings(&[0], 40, &[0x63, 0xb0, 0xc0])),
        ("lone_unit", "lost", lost),
        ("lone_unit", "numbers-come-around", around),
        ("lone_unit", "receipts-wait", waiting),
        ("lone_unit", "keys-and-restart", keys),
        ("lone_unit", "long", [long.repeat(12), readings(&[0], 3, &ANSWERED)].concat()),
        ("lone_unit", "forged", forged()),
        ("lone_unit", "no-packet", readings(&[0x50], 3, &ANSWERED)),
        ("lone_unit", "unit", vec![0xe5, 7, 0x3f, 0x80, 1, 0, 9]),
        ("lone_unit", "receipts", vec![0xe8, 0x80, 1, 0x80, 2, 0x80, 3]),
    ]
}
