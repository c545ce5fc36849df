use super::memory::{CEILING, FLOOR};
use super::*;

fn header(id: u16, part: u8, parts: u8) -> block::Header {
    block::Header { codec: 3, kind: block::BlockKind::Alone, id, part, parts }
}

fn arrival(esn: u64, at: u64) -> PartArrival {
    PartArrival { esn: Esn(esn), ecn: Ecn::NotEct, now: Time::from_millis(at) }
}

/// An association with the memory that it shares with others.
#[derive(Default)]
struct Site {
    assembly: Assembly,
    memory: BlockMemory,
    lost: u64,
}

impl Site {
    /// What comes of a part, and how many blocks were given up for it.
    fn add(&mut self, (id, part, parts): (u16, u8, u8), esn: u64, at: u64, bytes: &[u8]) -> Added {
        let Site { assembly, memory, lost } = self;
        let before = *lost;
        let whole = assembly.add(arrival(esn, at), header(id, part, parts), bytes, memory, lost);
        let whole = whole.map(|whole| whole.map(|whole| whole.bytes.to_vec()));
        assert!(assembly.held <= CEILING && memory.bytes().1 <= 4 << 20);
        (whole, self.lost - before)
    }
}

/// What comes of a part, and how many blocks were given up for it.
type Added = (Result<Option<Vec<u8>>, Reason>, u64);

fn add(site: &mut Site, id: u16, part: u8, parts: u8, at: u64) -> Added {
    site.add((id, part, parts), 0, at, &[part; 3])
}

#[test]
fn parts_in_any_order_make_the_block() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
        let mut site = Site::default();
        assert_eq!(add(&mut site, 7, order[0], 3, 0).0, Ok(None));
        assert_eq!(add(&mut site, 7, order[1], 3, 0).0, Ok(None));
        assert_eq!(add(&mut site, 7, order[2], 3, 0).0, Ok(Some(vec![0, 0, 0, 1, 1, 1, 2, 2, 2])));
    }
}

#[test]
fn contradictions_are_refused_and_end_the_block() {
    // The part again, one of another number of parts, one of another codec.
    for (codec, part, parts) in [(3, 0, 3), (3, 1, 4), (4, 1, 3)] {
        let mut site = Site::default();
        add(&mut site, 1, 0, 3, 0).0.unwrap();
        let Site { assembly, memory, lost } = &mut site;
        let header = block::Header { codec, ..header(1, part, parts) };
        let added = assembly.add(arrival(0, 0), header, &[1; 3], memory, lost).map(|_| ());
        assert_eq!(added, Err(Reason::MalformedBlock));
        assert_eq!((add(&mut site, 1, 2, 3, 0), site.assembly.held), ((Err(Reason::BlockOver), 0), 0));
    }
    let mut site = Site::default();
    assert_eq!(add(&mut site, 2, 0, 65, 0).0, Err(Reason::MalformedBlock));
    assert_eq!(site.add((2, 0, 3), 0, 0, &[]).0, Err(Reason::MalformedBlock));
    assert!(site.assembly.slots.is_empty());
}

#[test]
fn block_beyond_the_largest_is_refused_and_stays_refused() {
    let (mut site, big) = (Site::default(), vec![0; 40_000]);
    assert_eq!(site.add((9, 0, 3), 0, 0, &big).0, Ok(None));
    assert_eq!(site.add((9, 1, 3), 0, 0, &big).0, Err(Reason::BlockTooLong));
    assert_eq!(site.add((9, 2, 3), 0, 0, &big), (Err(Reason::BlockOver), 0));
    assert_eq!((site.assembly.slots.len(), site.assembly.held), (0, 0));
    // Nor is that a way to have one that is delivered again.
    add(&mut site, 10, 0, 2, 0).0.unwrap();
    assert!(add(&mut site, 10, 1, 2, 0).0.unwrap().is_some());
    assert_eq!(add(&mut site, 10, 0, 2, 0).0, Err(Reason::BlockOver));
}

#[test]
fn first_parts_without_end_take_no_more_than_the_ceiling_and_never_come_back() {
    let (mut site, mut newest) = (Site::default(), 0);
    // 15,000 bytes each: more blocks than fit, in less time than a missing part may take.
    for id in 0..1_500_u16 {
        site.add((id, 0, 2), id.into(), u64::from(id) / 4, &[1; 15_000]).0.unwrap();
        newest = id;
    }
    let slots = site.assembly.slots.len() as u64;
    assert!(site.lost > 0 && slots + site.lost == 1_500, "{slots} {}", site.lost);
    assert!(site.assembly.held > CEILING / 4 * 3);
    // The oldest went first, and their parts are refused; the newest are still there.
    for id in 0..site.lost as u16 {
        assert_eq!(site.add((id, 1, 2), 1_500, 400, &[1]), (Err(Reason::BlockOver), 0));
    }
    assert!(site.add((newest, 1, 2), 1_500, 400, &[1]).0.unwrap().is_some());
    assert_eq!(site.assembly.close(&mut site.memory), slots - 1);
    assert_eq!((site.assembly.held, site.memory.bytes().0), (0, 0));
}

#[test]
fn associations_that_take_all_shared_memory_leave_each_other_its_floor() {
    const SHARED: usize = 32 << 20;
    let (mut memory, mut lost) = (BlockMemory::new(SHARED), 0);
    let mut greedy: Vec<_> = (0..20).map(|_| Assembly::default()).collect();
    for id in 0..1_000 {
        for assembly in &mut greedy {
            assembly.add(arrival(0, 0), header(id, 0, 2), &[1; 15_000], &mut memory, &mut lost).ok().unwrap();
        }
    }
    let held: usize = greedy.iter().map(|assembly| assembly.held).sum();
    assert!(memory.bytes().0 <= SHARED && held <= SHARED + greedy.len() * FLOOR, "{held}");
    assert!(memory.bytes().0 > SHARED / 10 * 9);
    // Another one has two of the largest blocks at once all the same.
    let (mut honest, part) = (Assembly::default(), [7; 1_213]);
    lost = 0;
    for number in 0..108 {
        let header = header(number % 2, (number / 2) as u8, 54);
        let whole = honest.add(arrival(u64::from(number), 0), header, &part, &mut memory, &mut lost);
        assert_eq!(whole.ok().unwrap().is_some(), number >= 106);
    }
    assert_eq!(lost, 0);
    // Its own oldest blocks are given up for more, and none of the others'.
    for number in 0..60 {
        let header = header(10 + number, 0, 54);
        let added = honest.add(arrival(200, 0), header, &part, &mut memory, &mut lost);
        assert!(added.ok().unwrap().is_none());
    }
    let now: usize = greedy.iter().map(|assembly| assembly.held).sum();
    assert!(now == held && lost > 0, "{now} {held} {lost}");
}

#[test]
fn missing_part_is_waited_for_as_long_as_parts_lie_apart() {
    let expires_after = |apart: u64| {
        let mut site = Site::default();
        let mut at = 0;
        // Blocks whose two parts lie this far apart, until that is what is known of the path.
        for id in 0..2_000 {
            add(&mut site, id, 0, 2, at).0.unwrap();
            at += apart;
            add(&mut site, id, 1, 2, at).0.unwrap();
        }
        add(&mut site, 2_000, 0, 2, at).0.unwrap();
        (0..100).find(|step| add(&mut site, 2_001 + step, 0, 1, at + u64::from(*step) * 100).1 > 0).unwrap()
    };
    // In tenths of a second.
    assert_eq!(expires_after(1), 11, "no less than a second");
    assert!((20..30).contains(&expires_after(600)), "{}", expires_after(600));
    assert_eq!(expires_after(3_000), 51, "no more than five");
}

#[test]
fn progress_keeps_a_block_on_a_slow_path() {
    let mut site = Site::default();
    for part in 0..54 {
        let (whole, lost) = add(&mut site, 7, part, 54, u64::from(part) * 900);
        assert_eq!((whole.unwrap().is_some(), lost), (part == 53, 0));
    }
}

#[test]
fn reused_block_number_starts_another_block() {
    let mut site = Site::default();
    let mut add = |esn, part, byte| (site.add((5, part, 2), esn, 0, &[byte]).0, site.lost);
    assert_eq!(add(10, 0, 1), (Ok(None), 0));
    assert_eq!(add(10 + (1 << 16), 1, 4), (Ok(None), 1));
    assert_eq!(add(9 + (1 << 16), 0, 3), (Ok(Some(vec![3, 4])), 1));
    assert_eq!(add(20, 1, 2), (Ok(None), 1));
    assert_eq!(add(10, 0, 1), (Ok(Some(vec![1, 2])), 1));
}

#[test]
fn numbers_wrap_and_jump() {
    let mut site = Site::default();
    let mut esn = 0;
    for step in [1_u16, 1, 3, 700, 2_047, 2_048, 2_049, 30_000, 40_000] {
        for round in 0..50_u16 {
            let id = (step % 5).wrapping_add(round.wrapping_mul(step));
            esn += u64::from(step) * 2;
            add_at(&mut site, id, 0, esn).0.unwrap();
            assert!(add_at(&mut site, id, 1, esn + 1).0.unwrap().is_some(), "{step} {round}");
        }
        esn += 1 << 17;
    }
    assert_eq!(site.assembly.held, 0);
}

fn add_at(site: &mut Site, id: u16, part: u8, esn: u64) -> Added {
    site.add((id, part, 2), esn, 0, &[1; 3])
}

proptest::proptest! {
    /// Whatever comes, the books of memory are right, and each slot is found.
    #[test]
    fn any_parts_keep_the_books(
        parts in proptest::collection::vec((0..40_u16, 0..5_u8, 1..2_000_usize, 0..300_u64, 0..50_u8), 1..300),
    ) {
        let (mut site, mut at) = (Site::default(), 0);
        for (esn, (id, part, len, wait, jump)) in (0..).zip(parts) {
            at += wait;
            let id = if jump == 0 { id.wrapping_mul(1_000) } else { id };
            let _ = site.add((id, part % 4, 4), esn, at, &vec![1; len]);
            let held: usize = site.assembly.slots.iter().map(|slot| SLOT + slot.bytes.capacity()).sum();
            proptest::prop_assert_eq!(site.assembly.held, held);
            proptest::prop_assert_eq!(site.memory.bytes().0, held.saturating_sub(FLOOR));
            for (at, slot) in site.assembly.slots.iter().enumerate() {
                proptest::prop_assert_eq!(site.assembly.fates.get(slot.id), BlockFate::InSlot(at as u16));
            }
        }
        site.assembly.close(&mut site.memory);
        proptest::prop_assert_eq!((site.assembly.held, site.memory.bytes().0), (0, 0));
    }
}
