//! Sealed objects: what a stranger, a peer or a broken stick gives a node to read. The first byte says what the rest is.

use std::io::Read;

use strait_keying::{PrivateKey, PublicKey};
use strait_transfer::sealed::chunks::{ChunkReader, ChunkWriter};
use strait_transfer::sealed::frames::FrameReader;
use strait_transfer::sealed::header;
use strait_transfer::sealed::object::open_message;
use strait_transfer::sealed::{AgeIdentity, AgeRecipient, DeliveryReceipt, Manifest};

/// Most bytes of a frame that are looked at.
const EXPANDED: u64 = 1 << 20;

/// The node that reads.
pub fn receiver() -> PrivateKey {
    PrivateKey::generate(&[2; 32])
}

/// The node that signs what is read, so that a fuzzer comes behind the signature.
pub fn signer() -> PrivateKey {
    PrivateKey::generate(&[1; 32])
}

/// One part of an object, or a whole one.
pub fn check(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let identity = receiver();
    let identity = AgeIdentity::Node(&identity);
    match kind % 7 {
        0 => drop(header::read(&mut &data[..], &identity)),
        1 => chunks(data),
        2 => drop(FrameReader::new(data).take(EXPANDED).read_to_end(&mut Vec::new())),
        3 => manifest(data),
        4 => receipt(data),
        5 => drop(open_message(data, &identity)),
        _ => keys(data),
    }
}

/// Content that is sealed, changed at one place that the input names, and opened: what comes out is the beginning of the content.
fn chunks(data: &[u8]) {
    let Some((place, content)) = data.split_first_chunk::<3>() else { return };
    let content = content.repeat(1 + 100_000 / (content.len() + 1));
    let mut writer = ChunkWriter::new(Vec::new(), &[5; 32]);
    std::io::Write::write_all(&mut writer, &content).expect("a vector takes all");
    let mut sealed = writer.finish().expect("a vector takes all");
    let at = u32::from_be_bytes([0, place[0], place[1], place[2]]) as usize;
    let changed = at < sealed.len();
    if changed {
        sealed[at] ^= 1;
    }
    let mut opened = Vec::new();
    let result = ChunkReader::new(&sealed[..], &[5; 32]).read_to_end(&mut opened);
    assert_eq!(result.is_err(), changed);
    assert!(if changed { content.starts_with(&opened) } else { content == opened });
}

/// A manifest without its signature, which is made here.
fn manifest(data: &[u8]) {
    let signed = [data, &signer().sign(data)].concat();
    let receiver = AgeRecipient::Node(receiver().public());
    if let Ok(manifest) = Manifest::verify(&signed, &receiver) {
        assert_eq!(manifest.sign(&signer()).as_deref(), Ok(&signed[..]), "there is one spelling");
        let mut paths = manifest.entries.iter().map(|entry| &entry.path);
        assert!(paths.all(
            |path| !path.starts_with(b"/") && !path.split(|byte| *byte == b'/').any(|name| name == b"..")
        ));
    }
}

/// The same of a receipt.
fn receipt(data: &[u8]) {
    let signed = [data, &signer().sign(data)].concat();
    if let Ok(receipt) = DeliveryReceipt::verify(&signed, &receiver().public()) {
        assert_eq!(receipt.sign(&signer()).as_deref(), Ok(&signed[..]), "there is one spelling");
    }
}

/// Keys as OpenSSH and age write them; no error repeats one.
fn keys(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    if let Ok(key) = PrivateKey::from_openssh(text) {
        let again = PrivateKey::from_openssh(&key.to_openssh(1, "")).map(|key| key.public());
        assert_eq!(again, Ok(key.public()));
    }
    if let Ok(key) = PublicKey::from_openssh(text) {
        assert_eq!(PublicKey::from_openssh(&key.to_openssh("")), Ok(key));
    }
    let _ = AgeIdentity::x25519(text);
    if let Ok(recipient) = text.parse::<AgeRecipient>() {
        assert_eq!(recipient.to_string().parse(), Ok(recipient));
    }
}
