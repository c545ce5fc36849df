use proptest::prelude::*;

use super::*;

fn sender() -> PrivateKey {
    PrivateKey::generate(&[1; 32])
}

fn receiver() -> AgeRecipient {
    AgeRecipient::Node(PrivateKey::generate(&[2; 32]).public())
}

fn entry(path: &[u8], kind: SealedKind) -> SealedEntry {
    SealedEntry { path: path.to_vec(), mode: 0o644, mtime: -5, kind }
}

fn file(size: u64) -> SealedKind {
    SealedKind::File { size, root: [4; 32] }
}

fn manifest(entries: Vec<SealedEntry>) -> Manifest {
    Manifest {
        transfer: TransferId::from_bytes([6; 16]),
        sender: sender().public(),
        serial: 12,
        made: 1_700_000_000,
        expires: i64::MAX,
        folder: "inbox".to_owned(),
        below: b"a/b".to_vec(),
        recipients: vec![receiver(), AgeRecipient::X25519([8; 32])],
        entries,
    }
}

fn sample() -> Manifest {
    manifest(vec![
        entry(b"d", SealedKind::Folder),
        entry(b"d/a\xff\n", file(3)),
        entry(b"d/link", SealedKind::Symlink { target: b"../../etc".to_vec() }),
        entry(b"e", SealedKind::HardLink { to: b"d/a\xff\n".to_vec() }),
    ])
}

#[test]
fn a_manifest_round_trips() {
    let bytes = sample().sign(&sender()).unwrap();
    assert_eq!(Manifest::verify(&bytes, &receiver()).unwrap(), sample());
    assert_eq!(sample().content_len(), 3);
}

#[test]
fn every_cut_and_every_changed_byte_is_refused() {
    let bytes = sample().sign(&sender()).unwrap();
    for len in 0..bytes.len() {
        assert!(Manifest::verify(&bytes[..len], &receiver()).is_err(), "{len}");
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert!(Manifest::verify(&changed, &receiver()).is_err(), "{at}");
    }
    assert!(Manifest::verify(&[&bytes[..], &[0]].concat(), &receiver()).is_err());
}

#[test]
fn every_cut_of_what_is_signed_is_refused_also_with_a_good_signature() {
    let bytes = sample().sign(&sender()).unwrap();
    let signed = &bytes[..bytes.len() - SIGNATURE_LEN];
    for len in 0..signed.len() {
        let cut = [&signed[..len], &sender().sign(&signed[..len])].concat();
        assert!(matches!(Manifest::verify(&cut, &receiver()), Err(Malformed(_) | Signature)), "{len}");
    }
}

#[test]
fn a_receiver_cannot_pass_it_on_as_sent_to_a_third() {
    let bytes = sample().sign(&sender()).unwrap();
    let third = AgeRecipient::Node(PrivateKey::generate(&[3; 32]).public());
    assert_eq!(Manifest::verify(&bytes, &third), Err(ManifestError::OtherReceiver));
}

#[test]
fn names_that_lead_out_or_come_twice_are_not_signed_and_not_read() {
    let bad = [
        vec![entry(b"..", file(1))],
        vec![entry(b"a/../b", file(1))],
        vec![entry(b"/etc/passwd", file(1))],
        vec![entry(b"", file(1))],
        vec![entry(b"a//b", file(1))],
        vec![entry(b"a/", file(1))],
        vec![entry(b"a\0b", file(1))],
        vec![entry(&[b'n'; 256], file(1))],
        vec![entry(&b"a/".repeat(2048), file(1))],
        vec![entry(b"a", file(1)), entry(b"a", file(1))],
        vec![entry(b"b", file(1)), entry(b"a", file(1))],
        vec![entry(b"a", SealedKind::HardLink { to: b"b".to_vec() })],
        vec![entry(b"a", SealedKind::HardLink { to: b"b".to_vec() }), entry(b"b", file(1))],
        vec![entry(b"a", SealedKind::Folder), entry(b"b", SealedKind::HardLink { to: b"a".to_vec() })],
        vec![entry(b"a", SealedKind::Symlink { target: Vec::new() })],
        vec![entry(b"a", file(u64::MAX)), entry(b"b", file(1))],
        vec![SealedEntry { mode: 0o4755, ..entry(b"a", file(1)) }],
    ];
    for entries in bad {
        let manifest = manifest(entries);
        assert!(matches!(manifest.sign(&sender()), Err(Malformed(_))), "{manifest:?}");
        // As a sender without our checks would write it.
        let bytes = manifest.encode().unwrap();
        let bytes = [&bytes[..], &sender().sign(&bytes)].concat();
        assert!(matches!(Manifest::verify(&bytes, &receiver()), Err(Malformed(_))), "{manifest:?}");
    }
    for folder in ["", "a/b", "a\nb"] {
        let manifest = Manifest { folder: folder.to_owned(), ..sample() };
        assert!(manifest.sign(&sender()).is_err(), "{folder:?}");
    }
}

#[test]
fn another_key_cannot_sign_for_the_sender() {
    assert!(sample().sign(&PrivateKey::generate(&[9; 32])).is_err());
}

#[test]
fn a_claimed_number_of_names_takes_no_memory() {
    let mut bytes = manifest(Vec::new()).encode().unwrap();
    let len = bytes.len();
    bytes[len - 4..].copy_from_slice(&u32::MAX.to_be_bytes());
    let bytes = [&bytes[..], &sender().sign(&bytes)].concat();
    assert_eq!(Manifest::verify(&bytes, &receiver()), Err(Malformed("it is cut off")));
}

#[test]
fn too_many_names_are_refused_with_what_to_do() {
    let entries =
        (0..200_000_u32).map(|number| entry(format!("{number:0100}").as_bytes(), file(1))).collect();
    assert_eq!(manifest(entries).sign(&sender()), Err(TooLarge));
}

fn kinds() -> impl Strategy<Value = SealedKind> {
    prop_oneof![
        (any::<u32>(), any::<[u8; 32]>())
            .prop_map(|(size, root)| SealedKind::File { size: size.into(), root }),
        Just(SealedKind::Folder),
        proptest::collection::vec(1..=255_u8, 1..40).prop_map(|target| SealedKind::Symlink { target }),
    ]
}

proptest! {
    #[test]
    fn any_manifest_round_trips(
        entries in proptest::collection::btree_map(proptest::collection::vec(48..=255_u8, 1..20), (0..=0o777_u32, any::<i64>(), kinds()), 0..20),
        serial: u64, made: i64, expires: i64,
    ) {
        let entries = entries.into_iter().map(|(path, (mode, mtime, kind))| SealedEntry { path, mode, mtime, kind });
        let manifest = Manifest { serial, made, expires, ..manifest(entries.collect()) };
        let bytes = manifest.sign(&sender()).unwrap();
        prop_assert_eq!(Manifest::verify(&bytes, &receiver()), Ok(manifest));
    }

    #[test]
    fn any_signed_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let bytes = [&MAGIC[..], &[6; 16], sender().public().as_bytes(), &bytes].concat();
        let bytes = [&bytes[..], &sender().sign(&bytes)].concat();
        let _ = Manifest::verify(&bytes, &receiver());
    }
}
