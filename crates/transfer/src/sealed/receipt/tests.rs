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
    let failures = vec![EntryFailure { path: Vec::new(), reason: long.clone() }; 5];
    let receipt = DeliveryReceipt { failures, ..receipt() };
    let read = DeliveryReceipt::verify(&receipt.sign(&key(2)).unwrap(), &key(1).public()).unwrap();
    assert_eq!((read.failures.len(), &*read.failures[0].reason), (5, &long[..254]));
}

#[test]
fn a_receipt_names_as_many_failures_as_fit_and_the_first_reason_always() {
    for (length, named) in [(0, 179), (100, 24), (2000, 1), (PATH_MAX, 1)] {
        let failure = EntryFailure { path: vec![b'a'; length], reason: "is too large".to_owned() };
        let receipt = DeliveryReceipt { failed: 9999, failures: vec![failure.clone(); 1000], ..receipt() };
        let signed = receipt.sign(&key(2)).unwrap();
        assert!(signed.len() <= RECEIPT_ROOM);
        let read = DeliveryReceipt::verify(&signed, &key(1).public()).unwrap();
        assert_eq!((read.failed, read.failures.len()), (9999, named), "{length}");
        let fits = length < RECEIPT_ROOM;
        assert_eq!(&read.failures[0].path, if fits { &failure.path } else { &b""[..] });
        assert_eq!(read.failures[0].reason, failure.reason);
    }
}

#[test]
fn the_longest_receipt_is_sealed_to_what_brokers_take() {
    let mut noise = blake3::Hasher::new().finalize_xof();
    let mut failure = || {
        let mut path = vec![0; 300];
        noise.fill(&mut path);
        EntryFailure { path, reason: String::new() }
    };
    let mut failures: Vec<_> = std::iter::repeat_with(&mut failure).take(9).collect();
    failures.push(EntryFailure { path: failure().path.split_off(164), reason: String::new() });
    let signed = DeliveryReceipt { failures, ..receipt() }.sign(&key(2)).unwrap();
    assert_eq!(signed.len(), RECEIPT_ROOM, "all of it is taken");
    let recipients = [super::super::AgeRecipient::Node(key(1).public())];
    let padding = crate::sealed::frames::SizePadding::Padme;
    let sealing = super::super::ObjectSealing { recipients: &recipients, level: 9, padding };
    let seed = super::super::ObjectSeed::new([3; 32]);
    let sealed = super::super::seal_message(&signed, Vec::new(), seed, &sealing).unwrap();
    assert!(sealed.len() as u64 <= crate::broker::message::RECEIPT_MAX, "{}", sealed.len());
}

proptest! {
    #[test]
    fn any_receipt_round_trips(at: i64, counts: [u64; 3], paths: Vec<Vec<u8>>, reason in ".{0,60}") {
        let failures = paths.into_iter().map(|path| EntryFailure { path, reason: reason.clone() }).collect();
        let [entries, bytes, failed] = counts;
        let mut receipt = DeliveryReceipt { at, entries, bytes, failed, failures, ..receipt() };
        let signed = receipt.sign(&key(2)).unwrap();
        let read = DeliveryReceipt::verify(&signed, &key(1).public()).unwrap();
        receipt.failures.truncate(read.failures.len());
        prop_assert_eq!(read, receipt);
    }
}
