use proptest::prelude::*;

use super::*;

fn key(seed: u8) -> PrivateKey {
    PrivateKey::generate(&[seed; 32])
}

fn receipt() -> DeliveryReceipt {
    DeliveryReceipt {
        transfer: TransferId::from_bytes([6; 16]),
        sender: key(1).public(),
        receiver: key(2).public(),
        at: 1_700_000_000,
        outcome: DeliveryOutcome::Partly,
        entries: 3,
        bytes: 500,
        failed: 1,
        failures: vec![EntryFailure { path: b"a\xff".to_vec(), reason: "is a directory".to_owned() }],
    }
}

#[test]
fn every_cut_and_every_changed_byte_is_refused() {
    let bytes = receipt().sign(&key(2)).unwrap();
    assert_eq!(DeliveryReceipt::verify(&bytes, &key(1).public()), Ok(receipt()));
    for len in 0..bytes.len() {
        assert!(DeliveryReceipt::verify(&bytes[..len], &key(1).public()).is_err(), "{len}");
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(DeliveryReceipt::verify(&changed, &key(1).public()).is_err(), "{at}");
    }
}

#[test]
fn only_the_receiver_signs_and_only_the_sender_reads_it() {
    assert!(receipt().sign(&key(3)).is_err());
    let bytes = receipt().sign(&key(2)).unwrap();
    assert_eq!(DeliveryReceipt::verify(&bytes, &key(3).public()), Err(ManifestError::OtherReceiver));
}

#[test]
fn a_manifest_is_no_receipt() {
    // The same key signs both; the first words keep them apart.
    let bytes = receipt().sign(&key(2)).unwrap();
    let receiver = super::super::AgeRecipient::Node(key(1).public());
    assert!(super::super::Manifest::verify(&bytes, &receiver).is_err());
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let long = "\u{e4}".repeat(300);
    let failures = vec![EntryFailure { path: Vec::new(), reason: long.clone() }; FAILURES_MAX + 5];
    let receipt = DeliveryReceipt { failures, ..receipt() };
    let read = DeliveryReceipt::verify(&receipt.sign(&key(2)).unwrap(), &key(1).public()).unwrap();
    assert_eq!(read.failures.len(), FAILURES_MAX);
    assert_eq!(read.failures[0].reason, long[..254]);
}

proptest! {
    #[test]
    fn any_receipt_round_trips(at: i64, counts: [u64; 3], paths: Vec<Vec<u8>>, reason in ".{0,60}") {
        let failures = paths.into_iter().map(|path| EntryFailure { path, reason: reason.clone() }).collect();
        let [entries, bytes, failed] = counts;
        let receipt = DeliveryReceipt { at, entries, bytes, failed, failures, ..receipt() };
        let signed = receipt.sign(&key(2)).unwrap();
        prop_assert_eq!(DeliveryReceipt::verify(&signed, &key(1).public()), Ok(receipt));
    }
}
