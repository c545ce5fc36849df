//! Seeds of what transfers keep and read: records, patterns of names, sealed objects.

use strait_transfer::folder::records::TransferRecord;
use strait_transfer::path::EntryPath;
use strait_transfer::pieces::Subtree;

use super::Seed;

pub fn transfer_record_seeds() -> Vec<Seed> {
    let path = EntryPath::new(*b"folder/file \xff").unwrap();
    let held = |first, level| TransferRecord::Held {
        slot: 1,
        subtree: Subtree::new(first, level, [first as u8; 32]).unwrap(),
    };
    let records = [
        TransferRecord::Head { transfer: [7; 16] },
        TransferRecord::Begin { slot: 1, size: Some(5 << 20), version: [2; 8], path: path.clone() },
        held(0, 1),
        held(3, 0),
        held(2, 0),
        held(4, 0),
        TransferRecord::Begin { slot: 2, size: None, version: [0; 8], path },
        held(3, 0),
        held(8, 3),
        held(1 << 42, 42),
        TransferRecord::Dropped { slot: 1 },
    ];
    let mut whole = vec![0];
    records.iter().for_each(|record| record.put(&mut whole));
    let mut bodies = vec![1];
    for record in &records {
        let mut one = Vec::new();
        record.put(&mut one);
        let body = &one[2..one.len() - 8];
        bodies.push(u8::try_from(body.len()).unwrap());
        bodies.extend(body);
    }
    let cut = whole[..whole.len() - 3].to_vec();
    let odd: [(&str, &[u8]); 8] = [
        ("unknown", &[1, 1, 9]),
        ("slot", &[1, 3, 2, 0, 0]),
        ("begin", &[1, 14, 1, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2]),
        ("no-size", &[1, 23, 1, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, b'a']),
        ("path", &[1, 24, 1, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, b'a', b'/']),
        ("dropped", &[1, 6, 3, 0, 0, 0, 1, 0]),
        ("head", &[1, 1, 0]),
        ("long", &[0, 0xff, 0xff, 1]),
    ];
    let level = [&[1, 46, 2, 0, 0, 0, 1, 44, 0, 0, 0, 0, 0, 0, 0, 0][..], &[5; 32]].concat();
    let named = [("whole", whole), ("bodies", bodies), ("cut", cut), ("level", level)];
    let odd = odd.into_iter().map(|(name, bytes)| (name, bytes.to_vec()));
    named.into_iter().chain(odd).map(|(name, bytes)| ("transfer_records", name, bytes)).collect()
}

pub fn pattern_seeds() -> Vec<Seed> {
    let seeds: [(&str, &[u8]); 6] = [
        ("rules", b"+*/\n+*.c\n/top/\n*\ntop/a.c"),
        ("stars", b"a**z\n**/foo\ndir/***\nfoo/*/bar\n?x\na/b/z"),
        ("sets", b"[a-c]x\n[!a-c]\n[^]]y\n[[:digit:][:alpha:]]*\n[[:none:]]\n[a\n[\\]]\n7up"),
        ("classes", b"[[:alnum:][:upper:][:lower:][:space:][:blank:][:punct:][:xdigit:][:cntrl:][:graph:][:print:]]\n~"),
        ("escapes", b"\\*x*\na\\b\n\\\n*\\\n\n/\n\x1b[2J\xff\xe2\x80\xae/x\\"),
        ("paths", b"+x\na/../b"),
    ];
    seeds.map(|(name, bytes)| ("patterns", name, bytes.to_vec())).to_vec()
}

/// The kinds of [`strait_fuzz::sealed::check`], each with one whole input, and those that a parser has to refuse.
pub fn sealed_seeds() -> Vec<Seed> {
    use strait_fuzz::sealed::{receiver, signer};
    use strait_transfer::TransferId;
    use strait_transfer::sealed::frames::{FrameWriter, SizePadding};
    use strait_transfer::sealed::object::{ObjectSealing, seal_message};
    use strait_transfer::sealed::{
        AgeRecipient, DeliveryOutcome, DeliveryReceipt, EntryFailure, Manifest, ObjectSeed, SealedEntry,
        SealedKind,
    };

    let node = AgeRecipient::Node(receiver().public());
    let other = AgeRecipient::X25519([9; 32]);
    let seed = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    let object = |recipients: &[AgeRecipient], content: &[u8]| {
        let sealing = ObjectSealing { recipients, level: 3, padding: SizePadding::Padme };
        seal_message(content, Vec::new(), ObjectSeed::new([3; 32]), &sealing).unwrap()
    };
    let mut frames = FrameWriter::new(Vec::new(), 3);
    std::io::Write::write_all(&mut frames, &b"a line that comes again\n".repeat(200)).unwrap();
    let frames = frames.finish(SizePadding::Padme).unwrap();
    let entry = |path: &[u8], kind| SealedEntry { path: path.to_vec(), mode: 0o644, mtime: 1, kind };
    let manifest = Manifest {
        transfer: TransferId::from_bytes([6; 16]),
        sender: signer().public(),
        serial: 1,
        made: 2,
        expires: 3,
        folder: "inbox".to_owned(),
        below: b"a/b".to_vec(),
        recipients: vec![node, other],
        entries: vec![
            entry(b"d", SealedKind::Folder),
            entry(b"d/f", SealedKind::File { size: 5, root: [4; 32] }),
            entry(b"e", SealedKind::Symlink { target: b"d".to_vec() }),
            entry(b"g", SealedKind::HardLink { to: b"d/f".to_vec() }),
        ],
    };
    let manifest = manifest.sign(&signer()).unwrap();
    let manifest = &manifest[..manifest.len() - 64];
    let receipt = |outcome| {
        let receipt = DeliveryReceipt {
            transfer: TransferId::from_bytes([6; 16]),
            sender: receiver().public(),
            receiver: signer().public(),
            at: 1,
            outcome,
            entries: 2,
            bytes: 3,
            failed: 1,
            failures: vec![EntryFailure { path: b"d".to_vec(), reason: "no room".to_owned() }],
        };
        let bytes = receipt.sign(&signer()).unwrap();
        bytes[..bytes.len() - 64].to_vec()
    };
    // A manifest with other bytes at one place: each seed reaches another refusal.
    let changed = |at: usize, bytes: &[u8]| {
        let mut manifest = manifest.to_vec();
        manifest[at..at + bytes.len()].copy_from_slice(bytes);
        seed(3, &manifest)
    };
    let ssh = receiver().to_openssh(7, "comment");
    let recipients_at = 18 + 16 + 32 + 24 + 2 + 5 + 2 + 3;
    let entries_at = recipients_at + 2 + 2 * 33 + 4;
    vec![
        ("sealed", "header", seed(0, &object(&[other, node], b"x"))),
        ("sealed", "header-others", seed(0, &object(&[other], b"x"))),
        ("sealed", "header-cut", seed(0, b"age-encryption.org/v1\n-> X25519 a\n")),
        ("sealed", "header-no-stanza", seed(0, b"age-encryption.org/v1\nx\n")),
        ("sealed", "header-blank", seed(0, b"age-encryption.org/v1\n-> a  b\n\n")),
        ("sealed", "header-base64", seed(0, b"age-encryption.org/v1\n-> a\n====\n")),
        ("sealed", "chunks", seed(1, &[&[255, 255, 255][..], &[7; 1000]].concat())),
        ("sealed", "chunks-changed", seed(1, &[&[1, 0, 30][..], &[7; 1000]].concat())),
        ("sealed", "frames", seed(2, &frames)),
        ("sealed", "frames-cut", seed(2, &frames[..20])),
        ("sealed", "manifest", seed(3, manifest)),
        ("sealed", "manifest-folder", changed(18 + 16 + 32 + 24 + 2, b"in/ox")),
        ("sealed", "manifest-recipients", changed(recipients_at, &[0, 0])),
        ("sealed", "manifest-kind", changed(recipients_at + 2, &[9])),
        ("sealed", "manifest-dots", changed(entries_at + 2, b"/")),
        ("sealed", "manifest-order", changed(entries_at + 2, b"z")),
        ("sealed", "manifest-mode", changed(entries_at + 3, &[0xff])),
        ("sealed", "manifest-entry-kind", changed(entries_at + 13, &[9])),
        ("sealed", "manifest-cut", seed(3, &manifest[..manifest.len() - 1])),
        ("sealed", "receipt-whole", seed(4, &receipt(DeliveryOutcome::Whole))),
        ("sealed", "receipt-partly", seed(4, &receipt(DeliveryOutcome::Partly))),
        ("sealed", "receipt-refused", seed(4, &receipt(DeliveryOutcome::Refused))),
        ("sealed", "object", seed(5, &object(&[node], b"a whole object"))),
        ("sealed", "ssh-private", seed(6, ssh.as_bytes())),
        ("sealed", "ssh-public", seed(6, receiver().public().to_openssh("comment").as_bytes())),
        ("sealed", "ssh-rsa", seed(6, b"ssh-rsa AAAA")),
        ("sealed", "age-recipient", seed(6, other.to_string().as_bytes())),
    ]
}
