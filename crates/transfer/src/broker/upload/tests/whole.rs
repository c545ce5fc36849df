//! Uploads that are not cut.

use super::*;
use crate::scratch::ScratchFolder;

fn run<'a>(scratch: &'a ScratchFolder, broker: &'a Arc<FakeBroker>) -> Run<'a> {
    Run { folder: scratch.path(), broker, cut: usize::MAX, padding: SizePadding::Padme, made: 1000 }
}

#[test]
fn an_object_opens_with_the_receivers_key_and_its_journal_is_gone() {
    let (scratch, broker) = (ScratchFolder::new(), Arc::default());
    let sent = files(&[("a", bytes(2_500_000, 1)), ("b", Vec::new()), ("c/d", bytes(70_000, 2))]);
    let (ended, events) = run(&scratch, &broker).go(vec![object("all", &sent)]);
    let tally = ended.unwrap();
    assert_eq!((tally.stored, tally.before, tally.failed), (1, 0, 0));
    assert_eq!(events, ["begun anew", "stored"]);
    let [(id, stored)] = &broker.committed()[..] else { panic!() };
    let (manifest, found) = opened(&stored.manifest, &stored.contents);
    assert!(found.0 == sent.0);
    let fields = (manifest.transfer, manifest.serial, manifest.made, manifest.expires, &manifest.folder[..]);
    assert_eq!(fields, (*id, 1_000_000, 1000, 1100, "inbox"));
    assert_eq!(manifest.sender, sender().public());
    let size = tally.size;
    assert_eq!(size.plain, 2_570_000);
    assert_eq!((size.contents, size.manifest), (stored.contents.len() as u64, stored.manifest.len() as u64));
    assert!(size.padding > 0 && size.padding < size.contents / 8, "{size:?}");
    assert_eq!(tally.sent, size.contents);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn many_small_objects_share_a_stream_and_come_in_the_order_of_their_ids() {
    let (scratch, broker) = (ScratchFolder::new(), Arc::default());
    let many: Vec<Files> = (0..500).map(|number| files(&[("x", bytes(number, number as u8))])).collect();
    let objects = many.iter().enumerate().map(|(number, files)| object(&number.to_string(), files)).collect();
    let tally = run(&scratch, &broker).go(objects).0.unwrap();
    assert_eq!((tally.stored, tally.failed), (500, 0));
    let stored = broker.committed();
    assert_eq!(stored.len(), 500);
    for ((_, stored), sent) in stored.iter().zip(&many) {
        assert!(opened(&stored.manifest, &stored.contents).1.0 == sent.0);
    }
}

/// Fails to find anything.
struct Lost;

impl UploadSource for Lost {
    fn gather(&mut self) -> io::Result<GatheredObject> {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[test]
fn what_is_refused_or_lost_fails_alone_and_goes_on_later() {
    let (scratch, full) =
        (ScratchFolder::new(), Arc::new(FakeBroker { most: Some(2), ..FakeBroker::default() }));
    let small = files(&[("x", bytes(5_000, 1))]);
    let objects = || {
        let mut objects: Vec<_> = ["0", "1", "2"].map(|place| object(place, &small)).into();
        objects.insert(1, UploadObject { source: Box::new(Lost), ..object("lost", &small) });
        objects
    };
    let tally = run(&scratch, &full).go(objects()).0.unwrap();
    assert_eq!((tally.stored, tally.before, tally.failed), (2, 0, 2));
    assert!(matches!(tally.first, Some(UploadFailure::Gather(_) | UploadFailure::Refused(_))));
    // The journal is there, so the same command knows what it stored.
    let roomy = Arc::new(FakeBroker {
        objects: Mutex::new(full.objects.lock().unwrap().clone()),
        ..FakeBroker::default()
    });
    let (ended, events) = run(&scratch, &roomy).go(objects());
    let tally = ended.unwrap();
    assert_eq!((tally.stored, tally.before, tally.failed), (3, 2, 1));
    assert_eq!(events.iter().filter(|event| *event == "stored before").count(), 2);
    assert_eq!(roomy.committed().len(), 3);
}

#[test]
fn a_source_that_changes_under_the_reader_begins_anew_with_another_key() {
    /// Says once that the file changed.
    #[derive(Clone)]
    struct Restless(Files, Arc<AtomicU64>);
    impl Contents for Restless {
        fn open(&mut self, path: &[u8]) -> io::Result<Box<dyn Read + '_>> {
            self.0.open(path)
        }
        fn unchanged(&mut self, _: &SealedEntry) -> io::Result<bool> {
            Ok(self.1.fetch_sub(1, Ordering::Relaxed) == 0)
        }
    }
    impl UploadSource for Restless {
        fn gather(&mut self) -> io::Result<GatheredObject> {
            let found = self.0.gather()?;
            Ok(GatheredObject { contents: Box::new(self.clone()), ..found })
        }
    }
    for (changes, expected) in [(1, "stored"), (1000, "failed: it changes while it is read")] {
        let (scratch, broker) = (ScratchFolder::new(), Arc::default());
        let sent = files(&[("a", bytes(1_500_000, 1))]);
        let source = Restless(sent.clone(), Arc::new(AtomicU64::new(changes)));
        let object = UploadObject { source: Box::new(source), ..object("all", &sent) };
        let (ended, events) = run(&scratch, &broker).go(vec![object]);
        assert_eq!(ended.unwrap().failed, u64::from(changes > 1));
        assert_eq!(events[..3], ["begun anew", "changed", "begun anew"]);
        assert_eq!(events.last().unwrap(), expected);
        assert_eq!(broker.objects.lock().unwrap().len() as u64, u64::from(changes == 1));
    }
}
