//! A broker that returns something else: each is told, nothing gets a name, and what others sent comes.

use super::*;

/// Visits a broker that lies of one of two transfers: what is said of it.
fn told(len: usize, lie: impl FnOnce(ObjectName) -> Lie) -> String {
    let (scratch, a, b, broker, file) = setting(len);
    let (good, other) = (scratch.path().join("good"), scratch.path().join("other"));
    fs::write(&good, "good").unwrap();
    fs::write(&other, noise(len + 1)).unwrap();
    let name = a.put(&broker, &[&b], &[&file]);
    let c = Site::new(&scratch, 3);
    // What the broker may give in its place is for the same receiver, and lies there, too.
    let second = c.put(&broker, &[&b], &[&other]);
    a.put(&broker, &[&b], &[&good]);
    broker.change(|state| state.lie = Some((Some(name), lie(second))));
    let (said, tally) = b.visit(&broker);
    assert_eq!(
        (tally.unwrap().received, b.names()),
        (2, vec!["good".to_owned(), "other".to_owned()]),
        "{said:?}"
    );
    assert!(broker.inbox(&b.key(), LetterKind::Transfer).contains(&name), "it stays for an honest day");
    assert_eq!((said.failed.len(), said.left.len()), (1, 0), "{said:?}");
    // It tells the truth again.
    broker.change(|state| state.lie = None);
    assert_eq!(b.visit(&broker).0.received.len(), 1);
    assert!(fs::read(b.inbox.join("data")).unwrap() == noise(len));
    assert!(b.spooled().is_empty());
    said.failed[0].clone()
}

#[test]
fn an_object_of_another_a_short_one_a_changed_one_and_none_are_told_and_get_no_name() {
    use ObjectPart::{Contents, Manifest};
    for len in [1_000, 400_000, LARGE] {
        for (lie, words) in [
            (Lie::Short(Manifest, 1), "fewer bytes"),
            (Lie::Short(Contents, 1), "fewer bytes"),
            (Lie::Short(Contents, 500), "fewer bytes"),
            (Lie::Long(Manifest, 10), "another length"),
            (Lie::Changed(Manifest, 5), ""),
            (Lie::Changed(Manifest, 400), ""),
            (Lie::Changed(Contents, 300), ""),
            (Lie::Changed(Contents, usize::MAX), ""),
            (Lie::Nothing, "does not have it"),
            (Lie::Nonsense, "broke the protocol"),
        ] {
            let said = told(len, |_| lie.clone());
            assert!(said.contains(words), "{len} {lie:?}: {said}");
        }
        let said = told(len, |_| Lie::Long(Contents, 1));
        assert!(said.contains("more bytes") || said.contains("another length"), "{said}");
    }
}

#[test]
fn an_object_of_another_sender_in_its_place_is_told_by_its_length_or_by_its_name() {
    assert!(!told(1_000, Lie::Other).is_empty());
}

#[test]
fn a_letter_that_names_a_transfer_or_a_sender_wrongly_is_told() {
    let (scratch, a, b, broker, file) = setting(1_000);
    let c = Site::new(&scratch, 3);
    let name = a.put(&broker, &[&b], &[&file]);
    let object = broker.change(|state| state.objects.remove(&(LetterKind::Transfer, name)).unwrap());
    let other = ObjectName { id: TransferId::from_bytes([9; 16]), ..name };
    let stolen = ObjectName { sender: c.key(), ..name };
    let stranger = ObjectName { sender: PrivateKey::generate(&[77; 32]).public(), ..name };
    for (wrong, words) in [
        (other, "another transfer in its place"),
        (stolen, "signed by another node"),
        (stranger, "none of the peers"),
    ] {
        broker.change(|state| {
            state.objects.clear();
            state.objects.insert((LetterKind::Transfer, wrong), object.clone());
        });
        let (said, tally) = b.visit(&broker);
        assert_eq!((tally.unwrap().failed, b.names().len()), (1, 0));
        assert!(said.failed[0].contains(words), "{said:?}");
    }
}

#[test]
fn a_manifest_that_its_sender_did_not_sign_or_that_is_for_another_is_told() {
    let (scratch, a, b, broker, file) = setting(1_000);
    let c = Site::new(&scratch, 3);
    // Sealed to b by c, signed by a for c: what c has of a, it passes on as a's to b.
    let name = a.put_as(&broker, &[&b], &[&file], |manifest| Manifest {
        recipients: vec![AgeRecipient::Node(c.key())],
        ..manifest
    });
    let (said, _) = b.visit(&broker);
    assert!(said.failed[0].contains("did not send it to this key"), "{said:?}");
    // The same with a signature of another.
    let mut source = GatheredSource::gather([file.as_path()], Patterns::default()).unwrap();
    let recipients = [AgeRecipient::Node(b.key())];
    let mut manifest = Manifest {
        transfer: name.id,
        sender: c.key(),
        serial: 1,
        made: NOW,
        expires: i64::MAX,
        folder: "inbox".to_owned(),
        below: Vec::new(),
        recipients: recipients.to_vec(),
        entries: source.entries(),
    };
    let sealing = ObjectSealing { recipients: &recipients, level: 1, padding: SizePadding::Padme };
    seal(&mut manifest, &mut source, Vec::new(), ObjectSeed::new([8; 32]), &sealing).unwrap();
    let mut signed = manifest.sign(&c.node).unwrap();
    // The sender's key stands behind the magic and the transfer.
    signed[34..66].copy_from_slice(a.key().as_bytes());
    let sealed = seal_message(&signed, Vec::new(), ObjectSeed::new([9; 32]), &sealing).unwrap();
    broker.change(|state| {
        state.objects.get_mut(&(LetterKind::Transfer, name)).unwrap().manifest = sealed;
    });
    let (said, _) = b.visit(&broker);
    assert!(said.failed[0].contains("signature is wrong"), "{said:?}");
    assert_eq!(b.names().len(), 0);
}

#[test]
fn receipts_of_other_transfers_or_nodes_end_nothing() {
    let (scratch, a, b, broker, file) = setting(1_000);
    let c = Site::new(&scratch, 3);
    let first = a.put(&broker, &[&b], &[&file]);
    let second = a.put(&broker, &[&c], &[&file]);
    b.visit(&broker).1.unwrap();
    c.visit(&broker).1.unwrap();
    // The broker gives each in the place of the other.
    broker.change(|state| {
        let of = |sender: PublicKey, id| (LetterKind::Receipt, ObjectName { sender, id });
        let one = state.objects.remove(&of(b.key(), first.id)).unwrap();
        let other = state.objects.remove(&of(c.key(), second.id)).unwrap();
        state.objects.insert(of(b.key(), second.id), one);
        state.objects.insert(of(b.key(), first.id), other);
    });
    let (said, tally) = a.visit(&broker);
    assert_eq!((tally.unwrap().delivered, said.failed.len()), (0, 2), "{said:?}");
    assert_eq!((a.state(first.id), a.state(second.id)), ("waiting", "waiting"));
}

#[test]
fn names_of_the_working_folder_are_not_made() {
    let (_scratch, a, b, broker, file) = setting(1_000);
    a.put_as(&broker, &[&b], &[&file], |mut manifest| {
        manifest.entries[0].path = b".strait-partial/x.arrived".to_vec();
        manifest
    });
    fs::create_dir(b.inbox.join(".strait-partial")).unwrap();
    let (said, _) = b.visit(&broker);
    assert_eq!(said.received[0].outcome, DeliveryOutcome::Partly);
    assert_eq!(fs::read_dir(b.inbox.join(".strait-partial")).unwrap().count(), 0);
}
