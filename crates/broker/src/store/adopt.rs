//! Files of the same file system that become objects by their name: nothing is copied.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path as FilePath;
use std::time::SystemTime;

use object_store::path::Path;
use tokio::task::spawn_blocking;

use super::{COMPARED, Made, Store, StoreFailure, StoreFault};
use crate::spool::SpoolFile;

impl Store {
    /// Returns true if files of `folder` can become objects: the store is a folder to which one could be linked. Of two mounts of one file
    /// system the device number is the same, and link(2) between them fails.
    #[must_use]
    pub fn adopts(&self, folder: &FilePath) -> bool {
        let Some(own) = self.folder() else { return false };
        let name = format!(".probe-{}", std::process::id());
        let [from, to] = [folder, own].map(|folder| folder.join(&name));
        let linked = File::create(&from).and_then(|_| fs::hard_link(&from, &to));
        [from, to].iter().for_each(|path| drop(fs::remove_file(path)));
        linked.is_ok()
    }

    /// Gives a file of the spool, of which all was written, the name `path` as well, if nothing has it; durable when it returns.
    ///
    /// # Errors
    /// [`StoreFault::Other`] when something else is there.
    pub async fn adopt(&self, spooled: &SpoolFile, path: &Path) -> Result<Made, StoreFault> {
        let failed = StoreFailure::of;
        let folder = self.folder().ok_or_else(|| failed("the store is no folder"))?;
        let (file, from) = spooled.named().ok_or_else(|| failed("the file has no name"))?;
        // Names of pieces have letters, digits and slashes alone, which stand for themselves in a folder.
        let (root, to, from) = (folder.to_owned(), folder.join(path.as_ref()), from.to_owned());
        let place = to.clone();
        let work = move || adopt(&file, &from, &root, &to);
        match spawn_blocking(work).await.map_err(io::Error::other).flatten() {
            Ok(made) => made.ok_or(StoreFault::Other),
            Err(error) => {
                let all = format!("{}: {error}", place.display());
                Err(self.note(StoreFault::of_system(&error, all)))
            }
        }
    }
}

/// Nothing, if something else is there.
fn adopt(file: &File, from: &FilePath, root: &FilePath, to: &FilePath) -> io::Result<Option<Made>> {
    // It may have waited in the spool for hours, and is new in the store.
    file.set_modified(SystemTime::now())?;
    file.sync_all()?;
    let parent = to.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut linked = fs::hard_link(from, to);
    let missing = linked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if missing {
        fs::create_dir_all(parent)?;
        linked = fs::hard_link(from, to);
    }
    match linked {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Ok(is_same(&mut File::open(from)?, &mut File::open(to)?)?.then_some(Made::Same));
        }
        Err(error) => return Err(error),
    }
    // New folders are names in the ones above them.
    let above = parent.ancestors().take_while(|folder| folder.starts_with(root));
    above.take(if missing { usize::MAX } else { 1 }).try_for_each(|folder| File::open(folder)?.sync_all())?;
    Ok(Some(Made::New))
}

fn is_same(one: &mut File, other: &mut File) -> io::Result<bool> {
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        for (file, part) in [(&mut *one, &mut left), (&mut *other, &mut right)] {
            part.clear();
            file.take(COMPARED).read_to_end(part)?;
        }
        if left != right {
            return Ok(false);
        }
        if left.is_empty() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::ObjectStore;
    use object_store::memory::InMemory;
    use strait_keying::PrivateKey;
    use strait_node::config::BrokerStore;
    use strait_testbed::Workdir;
    use strait_testdata::skip::{Need, skip};
    use strait_transfer::TransferId;
    use strait_transfer::broker::message::ObjectName;

    use super::*;
    use crate::spool::Spool;
    use crate::store::{Patience, open};

    #[tokio::test]
    async fn a_file_becomes_an_object_once() {
        let dir = Workdir::create().unwrap();
        let (folder, spool) = (dir.path().join("store"), dir.path().join("spool"));
        fs::create_dir(&spool).unwrap();
        let store = open(&BrokerStore::Folder(folder.clone()), Patience::default()).unwrap();
        assert!(store.adopts(&spool) && !store.adopts(FilePath::new("/proc")));
        let path = Path::from("contents/ab/12/000000000000");
        let files = Spool::open(&spool).unwrap();
        let object = ObjectName {
            sender: PrivateKey::generate(&[2; 32]).public(),
            id: TransferId::from_bytes([3; 16]),
        };
        let put = async |number: u64, bytes: &[u8]| {
            let mut file = files.begin(&object, number).await.unwrap();
            file.append(bytes.to_vec()).await.unwrap();
            store.adopt(&file, &path).await
        };
        assert_eq!(put(1, b"bytes").await, Ok(Made::New));
        assert_eq!(put(2, b"bytes").await, Ok(Made::Same));
        assert_eq!(put(3, b"other").await, Err(StoreFault::Other));
        assert_eq!(put(4, b"bytes and more").await, Err(StoreFault::Other));
        fs::remove_dir_all(&spool).unwrap();
        assert_eq!(store.read(&path, 0..5).await.unwrap(), "bytes");
        let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        assert!(!Store::new(memory, Patience::default()).adopts(&folder), "a bucket adopts nothing");
    }

    /// In the process that this test starts: the folder with a mount of a part of it.
    const MOUNTED: &str = "STRAIT_TEST_MOUNTED";

    #[test]
    fn another_mount_of_the_same_file_system_has_no_files_to_adopt() {
        if let Some(dir) = std::env::var_os(MOUNTED).map(std::path::PathBuf::from) {
            let store = open(&BrokerStore::Folder(dir.join("store")), Patience::default()).unwrap();
            assert!(!store.adopts(&dir.join("spool")), "a link leads to no other mount");
            assert!(store.adopts(&dir.join("own")));
            return;
        }
        if !strait_node::privileges::is_root() && !skip(Need::Root, "may not mount") {
            return;
        }
        let dir = Workdir::create().unwrap();
        ["store", "spool", "own"].iter().for_each(|name| fs::create_dir(dir.path().join(name)).unwrap());
        let mount = format!("mount --bind {0}/spool {0}/spool && exec \"$@\"", dir.path().display());
        let test = "store::adopt::tests::another_mount_of_the_same_file_system_has_no_files_to_adopt";
        let mut again = std::process::Command::new("unshare");
        again.args(["--mount", "sh", "-c", &mount, "sh"]).arg(std::env::current_exe().unwrap());
        assert!(again.args([test, "--exact"]).env(MOUNTED, dir.path()).status().unwrap().success());
    }
}
