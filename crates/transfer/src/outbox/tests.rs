use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use strait_clock::Random;
use strait_keying::PublicKey;

use super::disk::faulty::FaultyDisk;
use super::*;
use crate::scratch::ScratchFolder;
use crate::sealed::{DeliveryOutcome, DeliveryReceipt};

const NOW: i64 = 1_700_000_000;

fn node() -> PrivateKey {
    PrivateKey::generate(&[1; 32])
}

fn peer(seed: u8) -> PublicKey {
    PrivateKey::generate(&[seed; 32]).public()
}

fn random(seed: u64) -> RandomBytes {
    let mut random = Random::new(seed);
    Box::new(move || {
        let mut bytes = [0; 32];
        bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|part| *part = random.next_u64().to_be_bytes());
        bytes
    })
}

fn to(seed: u8) -> TransferOrder {
    TransferOrder {
        peer: peer(seed),
        name: format!("peer-{seed}"),
        folder: "inbox".to_owned(),
        below: PathBytes::default(),
        paths: vec![PathBytes(b"/tmp/a\xff".to_vec())],
        patterns: vec!["- *.o".to_owned()],
        xattrs: false,
        spooled: false,
    }
}

fn outbox<D: OutboxDisk>(disk: D) -> Outbox<D> {
    Outbox::open(disk, &node(), random(7)).unwrap()
}

fn receipt(id: TransferId, of: u8) -> DeliveryReceipt {
    DeliveryReceipt {
        transfer: id,
        sender: node().public(),
        receiver: peer(of),
        at: NOW,
        outcome: DeliveryOutcome::Whole,
        entries: 1,
        bytes: 2,
        failed: 0,
        failures: Vec::new(),
    }
}

fn accept<D: OutboxDisk>(outbox: &mut Outbox<D>, limits: TransferLimits) -> TransferId {
    let id = outbox.new_id();
    outbox.accept(id, to(2), limits, NOW).unwrap();
    id
}

fn ids<D: OutboxDisk>(outbox: &Outbox<D>) -> Vec<TransferId> {
    outbox.waiting().map(|transfer| transfer.id).collect()
}

#[test]
fn what_was_accepted_is_there_after_a_restart_with_all_that_was_said_of_it() {
    let scratch = ScratchFolder::new();
    let path = scratch.path().join("outbox");
    let mut first = outbox(FolderDisk::open(&path).unwrap());
    let limits = TransferLimits {
        priority: TransferPriority::Bulk,
        between: Some("22:00-06:00".parse().unwrap()),
        expires: Some(NOW + 100),
        max_rate: Some(1_000),
        max_bytes: Some(5_000),
    };
    let id = accept(&mut first, limits);
    let expected = first.get(id).unwrap().clone();
    drop(first);
    let second = outbox(FolderDisk::open(&path).unwrap());
    assert_eq!(second.get(id).unwrap(), &expected);
    assert_eq!(ids(&second), [id]);
}

#[test]
fn only_the_owner_can_read_the_folder_and_nothing_in_it_names_what_is_sent() {
    let scratch = ScratchFolder::new();
    let path = scratch.path().join("outbox");
    let id = accept(&mut outbox(FolderDisk::open(&path).unwrap()), TransferLimits::default());
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    let file = path.join(format!("{id}.transfer"));
    assert_eq!(mode(&file), 0o600);
    let bytes = std::fs::read(file).unwrap();
    assert!(!bytes.windows(4).any(|part| part == b"peer" || part == b"/tmp"));
    // A folder that others could read is closed.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let _open = FolderDisk::open(&path).unwrap();
    assert_eq!(mode(&path), 0o700);
}

#[test]
fn two_processes_cannot_have_it_at_once() {
    let scratch = ScratchFolder::new();
    let first = FolderDisk::open(scratch.path()).unwrap();
    assert_eq!(FolderDisk::open(scratch.path()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(first);
    FolderDisk::open(scratch.path()).unwrap();
}

#[test]
fn a_damaged_or_foreign_record_is_named_and_costs_no_other() {
    let scratch = ScratchFolder::new();
    let mut first = outbox(FolderDisk::open(scratch.path()).unwrap());
    let (a, b) =
        (accept(&mut first, TransferLimits::default()), accept(&mut first, TransferLimits::default()));
    drop(first);
    let name = |id| scratch.path().join(format!("{id}.transfer"));
    // One record in the place of another is as wrong as a changed byte.
    std::fs::copy(name(a), name(b)).unwrap();
    std::fs::write(scratch.path().join("x.transfer"), vec![0; 2_000_000]).unwrap();
    let second = outbox(FolderDisk::open(scratch.path()).unwrap());
    assert_eq!(ids(&second), [a]);
    let mut damaged = second.damaged().to_vec();
    damaged.sort();
    let mut expected = vec![format!("{b}.transfer"), "x.transfer".to_owned()];
    expected.sort();
    assert_eq!(damaged, expected);
    drop(second);
    let other = PrivateKey::generate(&[9; 32]);
    let third = Outbox::open(FolderDisk::open(scratch.path()).unwrap(), &other, random(1)).unwrap();
    assert_eq!((third.waiting().count(), third.damaged().len()), (0, 3));
}

#[test]
fn the_users_order_outlives_a_restart_and_later_ones_go_behind() {
    let mut first = outbox(FaultyDisk::new());
    let all: Vec<_> = (0..4).map(|_| accept(&mut first, TransferLimits::default())).collect();
    first.reorder(all[3], OrderPlace::First).unwrap();
    first.reorder(all[0], OrderPlace::Last).unwrap();
    first.reorder(all[1], OrderPlace::Before(all[3])).unwrap();
    first.reorder(all[1], OrderPlace::Before(all[1])).unwrap();
    let later = accept(&mut first, TransferLimits::default());
    let expected = [all[1], all[3], all[2], all[0], later];
    assert_eq!(ids(&first), expected);
    let second = outbox(first.disk.clone());
    assert_eq!(ids(&second), expected);
    first.cancel(all[2], NOW).unwrap();
    assert!(matches!(first.reorder(all[2], OrderPlace::First), Err(OutboxError::Over(_, "cancelled"))));
    assert!(matches!(first.reorder(all[0], OrderPlace::Before(all[2])), Err(OutboxError::Over(..))));
}

#[test]
fn a_receipt_ends_a_transfer_once_and_only_its_own_peers() {
    let mut outbox = outbox(FaultyDisk::new());
    let id = accept(&mut outbox, TransferLimits::default());
    assert!(matches!(outbox.delivered(&receipt(id, 3), NOW), Err(OutboxError::Unknown(_))));
    outbox.carried(id, NOW).unwrap();
    assert_eq!(ids(&outbox), [id], "a stick can get lost");
    outbox.delivered(&receipt(id, 2), NOW).unwrap();
    let ended = outbox.get(id).unwrap().clone();
    assert_eq!(ended.state.name(), "delivered");
    outbox.delivered(&receipt(id, 2), NOW + 5).unwrap();
    assert_eq!(outbox.get(id).unwrap(), &ended);
    assert!(outbox.cancel(id, NOW).is_err() && outbox.waiting().next().is_none());
}

fn copy() -> BrokerCopy {
    BrokerCopy { broker: peer(9), name: "store".to_owned(), at: NOW, until: NOW + 100 }
}

#[test]
fn a_copy_at_a_broker_waits_for_the_receipt_and_is_useless_when_the_transfer_is_over() {
    let mut outbox = outbox(FaultyDisk::new());
    let id = accept(&mut outbox, TransferLimits::default());
    outbox.failed_try(id, "the broker was away", NOW).unwrap();
    outbox.at_broker(id, copy()).unwrap();
    let transfer = outbox.get(id).unwrap();
    assert_eq!(ListedTransfer::of(transfer).state, "at broker");
    assert_eq!(ListedTransfer::of(transfer).broker.as_deref(), Some("store"));
    assert!(transfer.waits_at(NOW + 99).is_some() && transfer.waits_at(NOW + 100).is_none());
    assert_eq!(outbox.useless_copies(&peer(9)), []);
    outbox.delivered(&receipt(id, 2), NOW).unwrap();
    assert_eq!((outbox.useless_copies(&peer(9)), outbox.useless_copies(&peer(8))), (vec![id], vec![]));
    outbox.gone_from_broker(id).unwrap();
    assert_eq!(outbox.useless_copies(&peer(9)), []);
    assert_eq!(ListedTransfer::of(outbox.get(id).unwrap()).state, "delivered");
}

#[test]
fn tries_come_later_each_time_but_at_least_every_hour() {
    let mut outbox = outbox(FaultyDisk::new());
    let id = accept(&mut outbox, TransferLimits::default());
    let mut pauses = Vec::new();
    for _ in 0..40 {
        outbox.failed_try(id, "no route", NOW).unwrap();
        pauses.push(outbox.get(id).unwrap().tries.retry_at - NOW);
    }
    assert_eq!(pauses[..3], [30, 60, 120]);
    assert!(pauses.is_sorted() && pauses[39] == 3600);
    outbox.went_on(id).unwrap();
    outbox.failed_try(id, "no route", NOW).unwrap();
    assert_eq!(outbox.get(id).unwrap().tries.retry_at - NOW, 30);
}

#[test]
fn a_days_bytes_are_counted_before_they_are_sent_and_anew_each_day() {
    let mut first = outbox(FaultyDisk::new());
    let id = accept(&mut first, TransferLimits { max_bytes: Some(100), ..TransferLimits::default() });
    let zone = TimeZone::UTC;
    assert_eq!(first.grant(id, 60, NOW, &zone).unwrap(), 60);
    // Killed here: the 60 bytes count as sent.
    let mut second = outbox(first.disk.clone());
    assert_eq!(second.grant(id, 60, NOW, &zone).unwrap(), 40);
    assert_eq!(second.grant(id, 60, NOW, &zone).unwrap(), 0);
    second.unused(id, 10, NOW, &zone).unwrap();
    assert_eq!(second.grant(id, 60, NOW, &zone).unwrap(), 10);
    assert_eq!(second.grant(id, 60, NOW + 86_400, &zone).unwrap(), 60);
    second.unused(id, 60, NOW, &zone).unwrap();
    assert_eq!(
        second.grant(id, 60, NOW + 86_400, &zone).unwrap(),
        40,
        "nothing is given back to another day"
    );
    let free = accept(&mut second, TransferLimits::default());
    assert_eq!(second.grant(free, u64::MAX, NOW, &zone).unwrap(), u64::MAX);
}

#[test]
fn numbers_rise_also_when_the_clock_is_set_back_and_old_records_are_gone() {
    let mut outbox = outbox(FaultyDisk::new());
    let mut numbers = Vec::new();
    for now in [NOW, NOW, NOW - 1_000_000, NOW + 5, 0] {
        let id = outbox.new_id();
        outbox.accept(id, to(2), TransferLimits::default(), now).unwrap();
        numbers.push(outbox.get(id).unwrap().serial);
        outbox.cancel(id, now).unwrap();
        outbox.tidy(NOW + 100 * 86_400).unwrap();
        assert_eq!(outbox.over().len(), 1, "the highest number stays");
    }
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

#[test]
fn numbers_that_were_taken_go_to_no_transfer_also_after_a_restart() {
    let mut outbox = outbox(FaultyDisk::new());
    let first = outbox.take_serials(1000, NOW).unwrap();
    assert_eq!(first, NOW.unsigned_abs() * 1_000_000);
    assert_eq!(outbox.take_serials(1, NOW).unwrap(), first + 1000);
    let disk = outbox.disk;
    let mut outbox = Outbox::open(disk, &node(), random(8)).unwrap();
    let id = accept(&mut outbox, TransferLimits::default());
    assert_eq!(outbox.get(id).unwrap().serial, first + 1001);
    assert_eq!(outbox.take_serials(1, NOW - 86_400).unwrap(), first + 1002);
    assert!(outbox.damaged().is_empty());
}

#[test]
fn a_transfer_with_too_many_paths_is_refused_with_what_to_do() {
    let mut outbox = outbox(FaultyDisk::new());
    let id = outbox.new_id();
    let order = TransferOrder { paths: vec![PathBytes(vec![b'a'; 4_000]); 200], ..to(2) };
    let error = outbox.accept(id, order, TransferLimits::default(), NOW).unwrap_err();
    assert!(error.to_string().contains("name a folder"), "{error}");
    assert!(outbox.waiting().next().is_none());
}

#[test]
fn the_queue_is_bounded_in_bytes_and_says_what_to_do() {
    let mut outbox = outbox(FaultyDisk::new());
    let order = TransferOrder { paths: vec![PathBytes(vec![b'a'; 4_000]); 100], ..to(2) };
    let full = (0..1_000).find_map(|_| {
        let id = outbox.new_id();
        outbox.accept(id, order.clone(), TransferLimits::default(), NOW).err()
    });
    assert!(matches!(&full, Some(OutboxError::Full)) && full.unwrap().to_string().contains("cancel some"));
    let waiting = outbox.waiting().count();
    assert!((150..=168).contains(&waiting), "{waiting} times 400 kB");
    let id = ids(&outbox)[0];
    outbox.cancel(id, NOW).unwrap();
    accept(&mut outbox, TransferLimits::default());
}

#[test]
fn a_transfer_is_found_by_its_first_digits_if_no_other_has_them() {
    let mut outbox = outbox(FaultyDisk::new());
    for first in [0xab, 0xac] {
        let id = TransferId::from_bytes([first; 16]);
        outbox.accept(id, to(2), TransferLimits::default(), NOW).unwrap();
    }
    assert_eq!(outbox.find("AB").unwrap().as_bytes(), &[0xab; 16]);
    assert!(outbox.find("a").unwrap_err().to_string().contains("several"));
    assert!(outbox.find("b").unwrap_err().to_string().contains("no transfer"));
}

/// What a user or the daemon does, and whether it was acknowledged.
fn act(outbox: &mut Outbox<FaultyDisk>, chance: &mut Random) -> Result<(), OutboxError> {
    let known: Vec<_> = ids(outbox);
    let pick = |chance: &mut Random| known[usize::try_from(chance.below(known.len() as u64)).unwrap()];
    if known.is_empty() || chance.below(3) == 0 {
        let id = outbox.new_id();
        return outbox.accept(
            id,
            to(2),
            TransferLimits { max_bytes: Some(1_000), ..TransferLimits::default() },
            NOW,
        );
    }
    let id = pick(chance);
    match chance.below(9) {
        0 => outbox.cancel(id, NOW),
        1 => outbox.delivered(&receipt(id, 2), NOW),
        2 => outbox.failed_try(id, "x", NOW),
        3 => outbox.grant(id, 10, NOW, &TimeZone::UTC).map(drop),
        4 => outbox.carried(id, NOW),
        6 => outbox.at_broker(id, copy()),
        7 => outbox.gone_from_broker(id),
        5 => outbox.tidy(NOW + chance.below(60 * 86_400).cast_signed()),
        _ => outbox.reorder(id, OrderPlace::Before(pick(chance))),
    }
}

/// Everything that was acknowledged, and what the last action would have made of it.
type Kept = BTreeMap<TransferId, QueuedTransfer>;

fn check(after: &Outbox<FaultyDisk>, acknowledged: &Kept, attempted: &Kept) {
    assert!(after.damaged().is_empty(), "{:?}", after.damaged());
    for (id, transfer) in acknowledged {
        match after.transfers.get(id) {
            Some(found) => {
                assert!(found == transfer || attempted.get(id) == Some(found), "{found:?}\n{transfer:?}")
            }
            // Only tidying forgets, and only what is over.
            None => assert!(transfer.state.over().is_some(), "{id} was accepted and is lost"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn after_a_power_failure_at_any_step_everything_acknowledged_is_there_whole(seed: u64, steps in 1..120_u64) {
        let mut chance = Random::new(seed);
        let mut disk = FaultyDisk::new();
        // Several failures one after the other, each a while after the last.
        for round in 0..3 {
            disk.left = 2 + chance.below(steps);
            let Ok(mut outbox) = Outbox::open(disk.clone(), &node(), random(seed ^ round)) else { break };
            let mut acknowledged = outbox.transfers.clone();
            let mut attempted = loop {
                let before = outbox.transfers.clone();
                match act(&mut outbox, &mut chance) {
                    Ok(()) => acknowledged = outbox.transfers.clone(),
                    Err(_) => break before,
                }
            };
            // The change that failed may be there or not: what it would have been.
            let after_power = outbox.disk.after_power_failure(&mut chance);
            let again = Outbox::open(after_power.clone(), &node(), random(1)).unwrap();
            for (id, found) in &again.transfers {
                if acknowledged.get(id).is_some_and(|transfer| transfer != found) {
                    attempted.insert(*id, found.clone());
                    prop_assert!(found.serial == acknowledged[id].serial && found.order == acknowledged[id].order);
                }
            }
            check(&again, &acknowledged, &attempted);
            // What was forgotten may come back, as what it was: over.
            let forgotten =
                |it: &&QueuedTransfer| !acknowledged.contains_key(&it.id) && it.state.over().is_some();
            let found = again.transfers.values().filter(|it| acknowledged.get(&it.id) != Some(it));
            let changed = found.filter(|it| !forgotten(it)).count();
            prop_assert!(changed <= 1, "one action at most was under way");
            disk = after_power;
        }
    }
}

#[test]
fn after_a_write_that_failed_nothing_more_is_acknowledged_until_it_is_opened_again() {
    let mut first = outbox(FaultyDisk::new());
    let id = accept(&mut first, TransferLimits::default());
    first.disk.left = 3;
    assert!(matches!(first.cancel(id, NOW), Err(OutboxError::Disk(_))), "the folder was not synchronised");
    first.disk.left = u64::MAX;
    assert!(matches!(first.cancel(id, NOW), Err(OutboxError::Doubtful)));
    outbox(first.disk.clone()).get(id).unwrap();
}
