//! Looks at the names of a folder while files arrive in it: each has a whole file, always.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often it looks: a kill and what follows take longer.
const LOOK: Duration = Duration::from_millis(20);
/// Where unfinished files are.
const ASIDE: &str = ".strait-partial";

/// The contents that a name may have: sizes and BLAKE3 hashes.
pub(super) type Permitted = BTreeMap<PathBuf, Vec<(u64, blake3::Hash)>>;

/// Adds what is in a folder to what its names may have.
pub(super) fn permit(folder: &Path, permitted: &mut Permitted) {
    for path in files(folder, Path::new("")).unwrap() {
        let bytes = fs::read(folder.join(&path)).unwrap();
        permitted.entry(path).or_default().push((bytes.len() as u64, blake3::hash(&bytes)));
    }
}

/// A thread that looks.
pub(super) struct Watcher {
    ended: Arc<AtomicBool>,
    looks: Arc<AtomicU64>,
    thread: JoinHandle<Result<usize, String>>,
}

impl Watcher {
    pub(super) fn start(folder: PathBuf, permitted: Permitted) -> Watcher {
        let (ended, looks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (end, count) = (Arc::clone(&ended), Arc::clone(&looks));
        let thread = thread::spawn(move || {
            let mut seen = BTreeSet::new();
            loop {
                // The last look begins after the end, so that it sees all that has arrived.
                let last = end.load(Ordering::Relaxed);
                look(&folder, &permitted, &mut seen)?;
                count.fetch_add(1, Ordering::Relaxed);
                if last {
                    return Ok(seen.len());
                }
                thread::sleep(LOOK);
            }
        });
        Watcher { ended, looks, thread }
    }

    /// Ends it: how often it looked and how many files it saw; panics if one of them was wrong.
    pub(super) fn finish(self) -> (u64, usize) {
        self.ended.store(true, Ordering::Relaxed);
        let seen = self.thread.join().unwrap().unwrap_or_else(|wrong| panic!("{wrong}"));
        (self.looks.load(Ordering::Relaxed), seen)
    }
}

/// Looks once at all files that were not seen in this state.
fn look(
    folder: &Path,
    permitted: &Permitted,
    seen: &mut BTreeSet<(PathBuf, u64, i64)>,
) -> Result<(), String> {
    for path in files(folder, Path::new("")).map_err(|error| error.to_string())? {
        let Ok(mut file) = File::open(folder.join(&path)) else { continue };
        let state = file.metadata().map_err(|error| error.to_string())?;
        let state = (path.clone(), state.ino(), state.ctime() * 1_000_000_000 + state.ctime_nsec());
        if seen.contains(&state) {
            continue;
        }
        let mut hasher = blake3::Hasher::new();
        let size = io::copy(&mut file, &mut hasher).map_err(|error| error.to_string())?;
        let found = (size, hasher.finalize());
        if !permitted.get(&path).is_some_and(|all| all.contains(&found)) {
            return Err(format!("{} has {size} bytes that are no whole file", path.display()));
        }
        seen.insert(state);
    }
    Ok(())
}

/// The files below a folder. What vanishes meanwhile is left out.
pub(super) fn files(folder: &Path, below: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder.join(below)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let path = below.join(entry.file_name());
        match entry.file_type() {
            _ if entry.file_name() == ASIDE => {}
            Ok(kind) if kind.is_dir() => found.extend(files(folder, &path)?),
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
    Ok(found)
}
