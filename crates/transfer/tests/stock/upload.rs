//! What a broker has of an upload that was cut and went on is opened by the stock programs, with the receiver's key and with that of
//! a recipient who only reads.

use std::io::{BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use strait_keying::PrivateKey;
use strait_transfer::broker::client::BrokerClient;
use strait_transfer::broker::journal::UploadJournal;
use strait_transfer::broker::message::{BrokerAnswer, BrokerRequest};
use strait_transfer::broker::upload::{UploadMeans, UploadObject, UploadOrder, upload};
use strait_transfer::message::{MessageReader, frame};
use strait_transfer::sealed::frames::SizePadding;
use strait_transfer::sealed::gather::GatheredSource;
use strait_transfer::source::patterns::Patterns;

use super::{AgeRecipient, Folder, bytes, shell};

/// Serial numbers, and of what random bytes are made.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// A broker that keeps one object, and closes the stream once it has so many bytes of it.
fn serve(stream: &UnixStream, (contents, manifest): (&mut Vec<u8>, &mut Vec<u8>), most: usize) {
    let say = |answer: &BrokerAnswer| {
        let mut bytes = Vec::new();
        frame(answer, &mut bytes);
        let mut stream = stream;
        // A client that is gone hears nothing.
        let _ = stream.write_all(&bytes);
    };
    say(&BrokerAnswer::Welcome { now: 0, room: None, largest: u64::MAX, keep: 1 << 30 });
    let mut reader = MessageReader::new(BufReader::new(stream));
    let mut current = None;
    while let Ok(Some(request)) = reader.next_message::<BrokerRequest>() {
        match request {
            BrokerRequest::Put { id, .. } => {
                current = Some(id);
                manifest.clear();
                say(&BrokerAnswer::Held { id, stored: 0, next: contents.len() as u64 });
            }
            BrokerRequest::Data { at, bytes } => {
                assert_eq!(at, contents.len() as u64);
                contents.extend(bytes);
            }
            BrokerRequest::Manifest { bytes } => manifest.extend(bytes),
            BrokerRequest::Commit { .. } => say(&BrokerAnswer::Stored { id: current.unwrap() }),
            _ => {}
        }
        if contents.len() > most {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// Uploads a file to a broker that takes so many bytes; whether it came to its end.
fn put(folder: &Folder, order: &UploadOrder<'_>, kept: (&mut Vec<u8>, &mut Vec<u8>), most: usize) -> bool {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let journal = UploadJournal::open(&folder.0.join("uploads"), "00", order.node).unwrap();
    let hang_up = || drop(ours.shutdown(Shutdown::Both));
    let numbers = || NUMBERS.fetch_add(1, Ordering::Relaxed);
    let means = UploadMeans {
        random: Box::new(move || *blake3::hash(&numbers().to_be_bytes()).as_bytes()),
        serial: Box::new(move || Ok(numbers())),
        event: &|_| (),
        hang_up: &hang_up,
        rate: None,
    };
    let plain = folder.0.join("plain");
    let gather = move || GatheredSource::gather([plain.as_path()], Patterns::default());
    let (place, below, source) = (b"plain".to_vec(), Vec::new(), Box::new(gather));
    let object = UploadObject { place, id: None, serial: None, below, source };
    thread::scope(|scope| {
        scope.spawn(|| serve(&theirs, kept, most));
        let client = BrokerClient::begin(ours.try_clone().unwrap(), ours.try_clone().unwrap()).unwrap();
        let ended = upload(client, journal, &mut [object].into_iter(), order, means);
        hang_up();
        ended.is_ok_and(|tally| tally.stored == 1)
    })
}

#[test]
fn age_and_zstd_open_what_was_uploaded_in_two_parts() {
    let folder = Folder::new("upload");
    let [sender, receiver] = [1, 2].map(|seed| PrivateKey::generate(&[seed; 32]));
    folder.write("id_ed25519", receiver.to_openssh(5, "node").as_bytes());
    let Some(line) = shell(&folder.0, "age-keygen -o key.txt 2>/dev/null; age-keygen -y key.txt") else {
        return;
    };
    let reader: AgeRecipient = String::from_utf8(line).unwrap().parse().unwrap();
    folder.write("plain", &bytes());
    let order = UploadOrder {
        node: &sender,
        receivers: vec![receiver.public()],
        readers: vec![reader],
        folder: "inbox".to_owned(),
        padding: SizePadding::Padme,
        made: 0,
        expires: 100,
    };
    let (mut contents, mut manifest) = (Vec::new(), Vec::new());
    assert!(!put(&folder, &order, (&mut contents, &mut manifest), 130_000));
    let first = contents.len();
    assert!(put(&folder, &order, (&mut contents, &mut manifest), usize::MAX));
    assert!(first > 130_000 && first < contents.len(), "it was cut in the middle");
    folder.write("contents", &contents);
    folder.write("manifest", &manifest);
    for identity in ["id_ed25519", "key.txt"] {
        let plain = shell(&folder.0, &format!("age -d -i {identity} contents | zstd -d")).unwrap();
        assert!(plain == bytes(), "{identity}");
        let names = shell(&folder.0, &format!("age -d -i {identity} manifest | zstd -d")).unwrap();
        assert!(names.starts_with(b"strait manifest 1\n"), "{identity}");
    }
}
