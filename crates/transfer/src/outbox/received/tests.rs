use proptest::prelude::*;

use super::super::disk::faulty::FaultyDisk;
use super::*;

fn node() -> PrivateKey {
    PrivateKey::generate(&[1; 32])
}

fn sender(seed: u8) -> PublicKey {
    PrivateKey::generate(&[seed; 32]).public()
}

fn random() -> RandomBytes {
    let mut count = 0_u64;
    Box::new(move || {
        count += 1;
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&count.to_be_bytes());
        bytes
    })
}

fn id(number: u64) -> TransferId {
    TransferId::from_bytes([[0; 8], number.to_be_bytes()].as_flattened().try_into().unwrap())
}

fn receipt(number: u64, of: u8) -> DeliveryReceipt {
    DeliveryReceipt {
        transfer: id(number),
        sender: sender(of),
        receiver: node().public(),
        at: -7,
        outcome: DeliveryOutcome::Partly,
        entries: 5,
        bytes: u64::MAX,
        failed: 1,
        failures: Vec::new(),
    }
}

#[test]
fn what_was_received_is_answered_with_the_same_receipt_after_a_restart() {
    let mut disk = FaultyDisk::new();
    let mut received = ReceivedTransfers::new(&mut disk, &node());
    assert_eq!(received.seen(&sender(2), 5, id(5)).unwrap(), SeenBefore::New);
    received.remember(&receipt(5, 2), 5, &mut random()).unwrap();
    let received = ReceivedTransfers::new(&mut disk, &node());
    assert_eq!(received.seen(&sender(2), 5, id(5)).unwrap(), SeenBefore::Received(receipt(5, 2)));
    assert_eq!(received.seen(&sender(2), 5, id(6)).unwrap(), SeenBefore::OtherTransfer);
    assert_eq!(
        received.seen(&sender(2), 4, id(4)).unwrap(),
        SeenBefore::New,
        "a stick may be slower than the next one"
    );
    assert_eq!(received.seen(&sender(3), 5, id(5)).unwrap(), SeenBefore::New);
}

#[test]
fn what_is_older_than_all_that_is_remembered_is_not_taken_again() {
    let mut record = SenderRecord::default();
    for number in 1..=REMEMBERED as u64 {
        record.entries.insert(number * 2, (id(number * 2), said(&receipt(number * 2, 2))));
    }
    let mut disk = FaultyDisk::new();
    let name = name(&sender(2));
    let sealed = Vault::new(&node()).seal(&name, &record.encode(), [1; 32]).unwrap();
    assert!(sealed.len() as u64 <= FILE_MAX);
    replace(&mut disk, &name, &sealed).unwrap();
    let mut received = ReceivedTransfers::new(&mut disk, &node());
    assert_eq!(received.seen(&sender(2), 1, id(1)).unwrap(), SeenBefore::New);
    let newest = REMEMBERED as u64 * 2 + 2;
    received.remember(&receipt(newest, 2), newest, &mut random()).unwrap();
    for number in [1, 2] {
        assert_eq!(received.seen(&sender(2), number, id(number)).unwrap(), SeenBefore::TooOld, "{number}");
    }
    assert_eq!(received.seen(&sender(2), 3, id(3)).unwrap(), SeenBefore::New);
    assert!(matches!(received.seen(&sender(2), 4, id(4)).unwrap(), SeenBefore::Received(_)));
}

#[test]
fn a_damaged_file_takes_nothing_rather_than_everything_again() {
    let mut disk = FaultyDisk::new();
    ReceivedTransfers::new(&mut disk, &node()).remember(&receipt(5, 2), 5, &mut random()).unwrap();
    let name = name(&sender(2));
    let mut bytes = disk.read(&name, FILE_MAX).unwrap();
    bytes[40] ^= 1;
    disk.write(&name, &bytes).unwrap();
    assert!(ReceivedTransfers::new(&mut disk, &node()).seen(&sender(2), 6, id(6)).is_err());
}

proptest! {
    #[test]
    fn any_record_round_trips(floor: u64, entries in proptest::collection::btree_map(any::<u64>(), (any::<[u8; 16]>(), any::<[u8; 32]>(), any::<u8>()), 0..20)) {
        let entries: BTreeMap<_, _> = entries.into_iter().map(|(serial, (id, said, outcome))| {
            let mut bytes = [outcome; 33];
            bytes[..32].copy_from_slice(&said);
            (serial, (TransferId::from_bytes(id), bytes))
        }).collect();
        let record = SenderRecord { entries, floor };
        let bytes = record.encode();
        let read = SenderRecord::decode(&bytes).unwrap();
        prop_assert!(read.entries == record.entries && read.floor == floor);
        for len in 0..bytes.len() {
            prop_assert!(SenderRecord::decode(&bytes[..len]).is_none_or(|cut| cut.entries.len() < record.entries.len()));
        }
    }
}
