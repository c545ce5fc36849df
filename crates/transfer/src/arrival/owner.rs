//! What is done in a folder is done as its owner, by a thread: Linux keeps users and groups for each thread (credentials(7)).

use std::io;
use std::thread;

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// As whom a folder's files are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FolderOwner {
    /// As who runs this process.
    #[default]
    Same,
    /// As another; root alone can.
    Other {
        /// The number of the user.
        user: u32,
        /// The number of its group.
        group: u32,
    },
}

impl FolderOwner {
    /// Does something as the owner, with none of root's rights where the owner is another.
    ///
    /// # Errors
    /// As the system's when this process may not become another; nothing was done then.
    pub fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let FolderOwner::Other { user, group } = self else { return Ok(work()) };
        thread::scope(|scope| {
            let done = scope.spawn(move || {
                become_owner(user, group)?;
                Ok(work())
            });
            done.join().unwrap_or_else(|_| Err(io::Error::other("the thread for the folder's owner failed")))
        })
    }
}

/// For this thread, until it ends. A thread that leaves user 0 loses all capabilities (capabilities(7)).
fn become_owner(user: u32, group: u32) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    Ok(set_thread_res_uid(user, user, user)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use strait_testdata::skip::{Need, skip};

    use super::*;
    use crate::scratch::ScratchFolder;

    #[test]
    fn another_owner_has_its_own_rights_and_only_in_its_thread() {
        if !(rustix::process::geteuid().is_root() || skip(Need::Root, "only root can become another")) {
            return;
        }
        let scratch = ScratchFolder::new();
        let (mine, theirs) = (scratch.folder("mine"), scratch.folder("theirs"));
        std::os::unix::fs::chown(&theirs, Some(4321), Some(4321)).unwrap();
        let other = FolderOwner::Other { user: 4321, group: 4321 };
        let write = |folder: &std::path::Path| std::fs::write(folder.join("a"), "x");
        assert!(other.run(|| write(&mine)).unwrap().is_err());
        other.run(|| write(&theirs)).unwrap().unwrap();
        assert_eq!(std::fs::metadata(theirs.join("a")).unwrap().uid(), 4321);
        write(&mine).unwrap();
    }
}
