//! What is done once in a while: sums of what is in the store, what has expired, and uploads that were forgotten.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use object_store::ObjectMeta;
use strait_keying::PublicKey;
use strait_transfer::broker::message::ObjectName;
use tokio::time::{Instant, sleep};

use crate::audit::{Deed, Line};
use crate::charge;
use crate::engine::Engine;
use crate::names::{self, LetterName};
use crate::removal;
use crate::store::StoreFault;
use crate::usage::Sums;

/// A turn takes at most one part in so many of the time.
const SHARE: u32 = 20;
/// Letters that one turn removes at most, and uploads that it collects; the next turn has the others.
const REMOVED: usize = 10_000;
/// Objects that one turn can tell from forgotten uploads: 16 MiB of memory.
const OBJECTS: usize = 2 << 20;
/// The time for which a letter must have been over, by each reading of this host's clock, before it is removed: a clock that a start finds wrong is
/// put right within minutes (RFC 5905 section 10 steps it after 900 s at most).
const SURE: Duration = Duration::from_secs(3600);
/// What is put to learn the store's clock.
const PROBE: &str = "probe";

/// Takes turns until the broker ends.
pub(crate) async fn run(engine: &Engine) {
    let mut ending = engine.ending();
    let mut clock = SureClock::default();
    loop {
        let begun = Instant::now();
        let turn = match clock.read(begun, crate::now()) {
            Some(sure) => sweep(engine, sure).await,
            None => engine.count().await.map(drop),
        };
        if let Err(fault) = turn {
            tracing::warn!("store: {fault}");
        }
        if let Err(error) = engine.tell_status().await {
            tracing::warn!("the status cannot be written: {error}");
        }
        let pause = engine.limits.refresh.max(begun.elapsed() * SHARE);
        tokio::select! {
            () = sleep(pause) => {}
            _ = ending.wait_for(|ending| *ending) => return,
        }
    }
}

/// The readings of this host's clock in the last while. What is over may not be taken back, so no single reading decides.
#[derive(Default)]
struct SureClock {
    readings: VecDeque<(Instant, i64)>,
}

impl SureClock {
    /// Adds a reading; returns the least of those of a while, once there is one that is so old.
    fn read(&mut self, now: Instant, wall: i64) -> Option<i64> {
        self.readings.push_back((now, wall));
        let is_old = |at: &(Instant, i64)| now.duration_since(at.0) >= SURE;
        while self.readings.get(1).is_some_and(is_old) {
            self.readings.pop_front();
        }
        self.readings.front().filter(|at| is_old(at))?;
        self.readings.iter().map(|(_, wall)| *wall).min()
    }
}

/// The findings of a list beside the sums, which are known then.
pub(crate) struct Found {
    expired: Vec<(PublicKey, LetterName)>,
    /// Objects that no letter is about, with the time of their newest piece.
    orphans: BTreeMap<ObjectName, i64>,
}

/// What a list of all letters tells.
struct Letters {
    sums: Sums,
    expired: Vec<(PublicKey, LetterName)>,
    /// Hashes of objects that have a letter, in order; nothing where there are too many.
    objects: Option<Vec<u64>>,
}

/// Lists what there is; one at a time.
pub(crate) async fn count(engine: &Engine) -> Result<Found, StoreFault> {
    let hasher = RandomState::new();
    engine.usage.begin();
    let Letters { mut sums, expired, objects } = list_letters(engine, &hasher).await?;
    let orphans = list_contents(engine, &hasher, objects.as_deref(), &mut sums).await?;
    match engine.spool.pieces().await {
        Ok(pieces) => add_spooled(pieces, &mut sums),
        Err(error) => tracing::warn!("spool: {error}"),
    }
    engine.usage.finish(sums);
    Ok(Found { expired, orphans })
}

/// Adds what streams left that broke.
fn add_spooled(pieces: Vec<(ObjectName, u64, u64)>, sums: &mut Sums) {
    for (object, number, bytes) in pieces {
        sums.growth(&object, number, 0, bytes);
    }
}

/// One turn, at a time that this host's clock has had for a while.
pub(crate) async fn sweep(engine: &Engine, sure: i64) -> Result<(), StoreFault> {
    let Found { mut expired, orphans } = engine.count().await?;
    expired.retain(|(_, name)| name.expires <= sure);
    if !expired.is_empty() {
        tracing::info!(letters = expired.len(), "removing what has expired");
    }
    for (receiver, name) in expired {
        removal::letter(engine, &receiver, &name).await?;
        let mut line = Line::new(Deed::Expire, None, &name.object.sender);
        line.id = Some(name.object.id.to_string());
        line.receivers = vec![receiver.to_string()];
        line.bytes = name.size();
        engine.audit.say(line).await;
    }
    collect(engine, orphans, sure).await?;
    let removed = engine.spool.sweep(engine.limits.forgotten).await;
    if let Err(error) = removed {
        tracing::warn!("spool: {error}");
    }
    if let Some(folder) = engine.store.folder() {
        remove_drafts(folder.to_owned(), engine.limits.forgotten).await;
    }
    Ok(())
}

async fn list_letters(engine: &Engine, hasher: &RandomState) -> Result<Letters, StoreFault> {
    let now = crate::now();
    let begin = || Letters { sums: Sums::default(), expired: Vec::new(), objects: Some(Vec::new()) };
    let each = |all: &mut Letters, about: ObjectMeta| {
        let Some((receiver, name)) = names::parse_letter(&about.location) else { return };
        all.sums.letter(&receiver, &name);
        if let Some(objects) = all.objects.as_mut().filter(|_| name.contents > 0) {
            objects.push(hasher.hash_one(name.object));
            if objects.len() > OBJECTS {
                all.objects = None;
            }
        }
        if name.expires <= now && all.expired.len() < REMOVED {
            all.expired.push((receiver, name));
        }
    };
    let mut all = engine.store.gather(&names::inboxes(), begin, each).await?;
    match &mut all.objects {
        Some(objects) => objects.sort_unstable(),
        None => tracing::warn!("more than {OBJECTS} objects: uploads that were forgotten are not collected"),
    }
    Ok(all)
}

/// Adds contents to the sums; objects that no letter is about, with the time of their newest piece.
async fn list_contents(
    engine: &Engine,
    hasher: &RandomState,
    objects: Option<&[u64]>,
    sums: &mut Sums,
) -> Result<BTreeMap<ObjectName, i64>, StoreFault> {
    type All = (Sums, BTreeMap<ObjectName, i64>);
    let each = |(sums, orphans): &mut All, about: ObjectMeta| {
        let Some((object, number)) = names::parse_piece(&about.location) else { return };
        sums.contents(&object.sender, charge::piece(number, about.size));
        let has_letter = objects.is_none_or(|all| all.binary_search(&hasher.hash_one(object)).is_ok());
        sums.uploads(&object.sender, i128::from(number == 0 && !has_letter));
        if !has_letter && (orphans.len() < REMOVED || orphans.contains_key(&object)) {
            let newest = orphans.entry(object).or_insert(i64::MIN);
            *newest = (*newest).max(about.last_modified.timestamp());
        }
    };
    let (contents, orphans) = engine.store.gather(&names::all_contents(), All::default, each).await?;
    sums.merge(&contents, 1);
    Ok(orphans)
}

/// The newest time of a forgotten upload.
fn too_old(engine: &Engine, now: i64) -> i64 {
    now.saturating_sub(i64::try_from(engine.limits.forgotten.as_secs()).unwrap_or(i64::MAX))
}

/// Seconds since 1970 by the store's clock: when it has what was put just now.
async fn learn_clock(engine: &Engine) -> Result<i64, StoreFault> {
    let path = object_store::path::Path::from(PROBE);
    engine.store.replace(&path, Bytes::from_static(b"probe").into()).await?;
    let about = engine.store.about(&path).await?.ok_or(StoreFault::Missing)?;
    let now = about.last_modified.timestamp();
    engine.store_clock.store(now.saturating_sub(crate::now()), Ordering::Relaxed);
    Ok(now)
}

/// Removes the pieces of uploads that were forgotten; looks at each again before.
async fn collect(engine: &Engine, orphans: BTreeMap<ObjectName, i64>, sure: i64) -> Result<(), StoreFault> {
    if orphans.is_empty() {
        return Ok(());
    }
    let ahead = learn_clock(engine).await? - crate::now();
    // By the store's clock, which in a folder is this host's.
    let old = too_old(engine, sure.saturating_add(ahead));
    for (object, _) in orphans.into_iter().filter(|(_, newest)| *newest <= old) {
        if engine.active.has(&object) || removal::has_letter(engine, &object).await? {
            continue;
        }
        let (bytes, newest) = engine
            .store
            .gather(
                &names::contents(&object),
                || (0, i64::MIN),
                |(bytes, newest): &mut (u64, i64), about| {
                    *bytes += about.size;
                    *newest = (*newest).max(about.last_modified.timestamp());
                },
            )
            .await?;
        if newest > old {
            continue;
        }
        removal::all_pieces(engine, &object).await?;
        let mut line = Line::new(Deed::Collect, None, &object.sender);
        line.id = Some(object.id.to_string());
        line.bytes = bytes;
        engine.audit.say(line).await;
    }
    Ok(())
}

/// Removes what puts into a folder left that were killed: files beside their final names, which no list has (`NAME#1`).
async fn remove_drafts(folder: PathBuf, age: Duration) {
    let walked = tokio::task::spawn_blocking(move || {
        let now = SystemTime::now();
        walk(&folder, 4, &mut |path, about| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let is_draft = name.rsplit_once('#').is_some_and(|(_, number)| {
                !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
            });
            let is_old = about.modified().ok().and_then(|at| now.duration_since(at).ok());
            if is_draft && is_old.is_some_and(|since| since >= age) {
                let _ = fs::remove_file(path);
            }
        });
    });
    let _ = walked.await;
}

fn walk(folder: &Path, depth: usize, each: &mut impl FnMut(&Path, &fs::Metadata)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        // Only names with the mark are looked at: the others are many.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth > 1 {
            walk(&entry.path(), depth - 1, each);
        } else if !is_folder
            && entry.file_name().to_string_lossy().contains('#')
            && let Ok(about) = entry.metadata()
        {
            each(&entry.path(), &about);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a clock each minute; returns what it is sure of at last.
    fn read(readings: impl IntoIterator<Item = i64>) -> Option<i64> {
        let (mut clock, begun) = (SureClock::default(), Instant::now());
        let mut sure = None;
        for (minute, wall) in (0..).zip(readings) {
            sure = clock.read(begun + Duration::from_secs(60 * minute), wall);
            assert!(clock.readings.len() <= 62, "{}", clock.readings.len());
        }
        sure
    }

    #[test]
    fn a_clock_is_believed_after_an_hour_and_for_what_it_said_an_hour_ago() {
        let right = |minute: i64| 1_000_000 + 60 * minute;
        assert_eq!(read((0..60).map(right)), None);
        assert_eq!(read((0..=60).map(right)), Some(right(0)));
        assert_eq!(read((0..=500).map(right)), Some(right(440)));
    }

    #[test]
    fn a_clock_that_was_ahead_for_a_while_decides_nothing() {
        let (right, ahead) = (|minute: i64| 60 * minute, 40 * 24 * 3600);
        // A start with a wrong clock, and one that is set wrong later, for less than an hour.
        for wrong in [0..5, 0..59, 100..150] {
            for end in [61, 120, 160, 400] {
                let clock = |minute: i64| right(minute) + if wrong.contains(&minute) { ahead } else { 0 };
                let sure = read((0..=end).map(clock));
                assert!(sure.is_some_and(|sure| sure <= right(end)), "{wrong:?} {end}: {sure:?}");
            }
        }
    }
}
