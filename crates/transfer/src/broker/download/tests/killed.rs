//! A visit that is cut off at any step is repeated, and what comes of it is the same.

use super::*;

#[test]
fn a_visit_that_ends_at_any_step_of_the_broker_is_repeated_harmlessly() {
    // Whole, its steps are counted; then each number of them is tried.
    for steps in 0.. {
        let (scratch, a, b, broker, file) = setting(120_000);
        let large = scratch.path().join("large");
        fs::write(&large, noise(300_000)).unwrap();
        let names = [a.put(&broker, &[&b], &[&file]), a.put(&broker, &[&b], &[&large])];
        broker.change(|state| state.steps = Some(steps));
        let (_, ended) = b.visit(&broker);
        let whole = ended.is_ok();
        let had = b.names();
        // What the user takes away after it was received does not come back.
        let remembered = !broker.inbox(&a.key(), LetterKind::Receipt).is_empty();
        broker.change(|state| state.steps = None);
        let (said, again) = b.visit(&broker);
        assert!(again.is_ok() && said.failed.is_empty() && said.left.is_empty(), "{steps}: {said:?}");
        assert_eq!(b.names(), ["data", "large"], "{steps} {had:?} {remembered}");
        assert!(fs::read(b.inbox.join("data")).unwrap() == noise(120_000));
        assert!(fs::read(b.inbox.join("large")).unwrap() == noise(300_000));
        a.visit(&broker).1.unwrap();
        assert_eq!(names.map(|name| a.state(name.id)), ["delivered", "delivered"], "{steps}");
        assert!(broker.change(|state| state.objects.is_empty()), "{steps}");
        if whole {
            assert!(steps > 20, "{steps}");
            return;
        }
    }
}

#[test]
fn a_download_that_was_cut_goes_on_at_its_length() {
    let (_scratch, a, b, broker, file) = setting(LARGE);
    a.put(&broker, &[&b], &[&file]);
    broker.change(|state| state.steps = Some(70));
    assert!(b.visit(&broker).1.is_err());
    let held = b.spooled();
    assert!(held.len() == 1 && held[0] > 1_000_000, "{held:?}");
    broker.change(|state| (state.steps, state.sent) = (None, 0));
    let (said, _) = b.visit(&broker);
    assert_eq!((said.held, said.received.len()), (held[0], 1));
    let asked = broker.change(|state| state.asked.clone());
    assert_eq!(asked, [0, held[0]]);
    assert!(broker.change(|state| state.sent) < LARGE as u64);
    assert!(fs::read(b.inbox.join("data")).unwrap() == noise(LARGE));
    assert!(b.spooled().is_empty());
}

#[test]
fn what_a_power_failure_left_of_a_download_is_not_believed() {
    let (_scratch, a, b, broker, file) = setting(LARGE);
    a.put(&broker, &[&b], &[&file]);
    broker.change(|state| state.steps = Some(70));
    assert!(b.visit(&broker).1.is_err());
    // A hole in the middle.
    for part in fs::read_dir(b.outbox.join("incoming")).unwrap() {
        let path = part.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        bytes[500_000..600_000].fill(0);
        fs::write(&path, bytes).unwrap();
    }
    broker.change(|state| state.steps = None);
    let (said, _) = b.visit(&broker);
    assert_eq!((said.received.len(), said.failed.len()), (1, 0), "{said:?}");
    assert!(fs::read(b.inbox.join("data")).unwrap() == noise(LARGE));
    assert!(b.spooled().is_empty());
}

#[test]
fn a_process_that_ends_between_landing_and_remembering_lands_again() {
    let (_scratch, a, b, broker, file) = setting(LARGE);
    let name = a.put(&broker, &[&b], &[&file]);
    let place = b.place();
    let dies = || Err(io::Error::other("killed"));
    let (said, _) = b.visit_with(&broker, &|_| ArrivalPermission::Take(place.clone()), false, &dies);
    assert_eq!((said.received.len(), said.failed, b.names().len()), (0, vec!["killed".to_owned()], 1));
    assert_eq!(broker.inbox(&b.key(), LetterKind::Transfer), [name]);
    let (said, _) = b.visit(&broker);
    assert_eq!((said.received.len(), said.failed.len(), said.left.len()), (1, 0, 0), "{said:?}");
    a.visit(&broker).1.unwrap();
    assert_eq!(a.state(name.id), "delivered");
}

#[test]
fn a_download_that_is_cut_again_and_again_comes_to_its_end_and_takes_no_byte_twice() {
    let (_scratch, a, b, broker, file) = setting(LARGE);
    a.put(&broker, &[&b], &[&file]);
    let mut chance = strait_clock::Random::new(7);
    let mut cuts = 0;
    loop {
        // As many steps as a third of it takes, and too few for the manifest.
        broker.change(|state| state.steps = Some(usize::try_from(chance.below(45)).unwrap()));
        if b.visit(&broker).1.is_ok() {
            break;
        }
        cuts += 1;
        assert!(cuts < 1_000, "it does not come to an end");
    }
    assert!(cuts > 3, "{cuts}");
    let (asked, sent) = broker.change(|state| (state.asked.clone(), state.sent));
    assert!(asked.is_sorted(), "{asked:?}");
    // What was on its way when the broker hung up may come again.
    assert!(sent <= LARGE as u64 + (1 << 20), "{sent}");
    assert!(fs::read(b.inbox.join("data")).unwrap() == noise(LARGE));
    broker.change(|state| state.steps = None);
    a.visit(&broker).1.unwrap();
    assert!(broker.change(|state| state.objects.is_empty()));
}

#[test]
fn two_visits_at_once_do_not_keep_each_other_from_landing() {
    for len in [1000, 300_000, LARGE] {
        let (_scratch, a, b, broker, file) = setting(len);
        a.put(&broker, &[&b], &[&file]);
        let place = b.place();
        // The first has landed the files, and has not remembered them yet.
        let between = RefCell::new(None);
        let second = || {
            *between.borrow_mut() = Some(b.visit(&broker));
            Ok(())
        };
        let permit = |_: &Manifest| ArrivalPermission::Take(place.clone());
        let (said, first) = b.visit_with(&broker, &permit, false, &second);
        let (left, second) = between.into_inner().unwrap();
        assert_eq!(left.left, ["another command fetches it"], "{left:?}");
        assert_eq!((second.unwrap().received, first.unwrap().received), (0, 1));
        assert_eq!(said.received[0].outcome, DeliveryOutcome::Whole);
        assert!(fs::read(b.inbox.join("data")).unwrap() == noise(len));
        assert_eq!((b.names(), b.spooled()), (vec!["data".to_owned()], vec![]));
    }
}
