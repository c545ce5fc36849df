//! A bucket that fails: what is acknowledged is there, and the rest ends with a clear error. The broker's own tests have silence, and
//! each fault in each request; they need not wait a minute for each that lasts.

use std::fs;

use strait_bucket::{ClockShift, Fault, Rule};

use super::{Scene, allowed_with_broker, files};
use crate::files::noise;

/// Seconds of a day.
const DAY: i64 = 86_400;

impl Scene {
    /// A broker with a bucket, its sender, and a file of several pieces.
    fn failing() -> Scene {
        let mut scene = Scene::with_bucket();
        scene.start_sender();
        fs::write(scene.source().join("file"), noise(12_000_000, 3)).unwrap();
        scene
    }

    fn rules(&self, rules: impl IntoIterator<Item = Rule>) {
        self.bucket.as_ref().unwrap().faults().set(rules);
    }

    fn faults_met(&self) -> u64 {
        self.bucket.as_ref().unwrap().faults().met()
    }

    /// Puts the file, and fetches it.
    fn passes(&mut self) {
        self.good(self.put(&["file"]));
        self.start_receiver();
        self.good(self.fetch());
        assert!(fs::read(self.source().join("file")).unwrap() == fs::read(self.here().join("file")).unwrap());
        assert!(self.listed().is_empty());
    }
}

#[test]
fn a_store_that_fails_for_a_while_is_waited_for() {
    if !allowed_with_broker() {
        return;
    }
    let put = |fault| Rule::every(fault).method("PUT");
    let mut scene = Scene::failing();
    scene.rules([
        put(Fault::Slow(1500)).on("/contents/").times(1),
        put(Fault::Status(500)).on("/contents/").times(1),
        put(Fault::Status(503)).on("/contents/").times(2),
        put(Fault::CutRequest(1 << 20)).on("/contents/").times(1),
        put(Fault::LostAnswer).on("/contents/").times(1),
        put(Fault::LostAnswer).on("/inbox/").times(1),
        put(Fault::Status(503)).on("/inbox/").times(1),
        Rule::every(Fault::Status(503)).method("GET").times(2),
        Rule::every(Fault::CutAnswer(100_000)).method("GET").on("/contents/").times(1),
    ]);
    scene.passes();
    assert!(scene.faults_met() >= 10, "{} faults met", scene.faults_met());
}

#[test]
fn a_store_that_fails_for_good_gives_a_clear_error_and_acknowledges_nothing() {
    if !allowed_with_broker() {
        return;
    }
    let mut scene = Scene::failing();
    scene.rules([Rule::every(Fault::Status(503)).method("PUT").on("/inbox/")]);
    let said = scene.bad(scene.put(&["file"]));
    assert!(said.contains("store"), "{said}");
    assert!(scene.letters().is_empty());
    // The bytes are there: the next attempt has only the end to do.
    scene.rules([]);
    scene.passes();
}

#[test]
fn clocks_that_are_off_lose_nothing() {
    if !allowed_with_broker() {
        return;
    }
    let mut scene = Scene::failing();
    let shift = |scene: &Scene, seconds| {
        scene.bucket.as_ref().unwrap().faults().shift_clock(ClockShift { seconds, strict: false });
    };
    for (seconds, name) in [(-3 * DAY, "before"), (3 * DAY, "ahead")] {
        shift(&scene, seconds);
        fs::write(scene.source().join(name), noise(6_000_000, 5)).unwrap();
        scene.good(scene.put(&[name]));
    }
    scene.restart_broker();
    scene.start_receiver();
    scene.good(scene.fetch());
    assert_eq!(files(&scene.here()).len(), 2);
    shift(&scene, 0);
    scene.good(scene.put(&["file"]));
}
