//! Changes of what the system's resolver reads: inotify(7) on its files.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::process::{checked, watched};

/// Files with the servers of the resolver (resolv.conf(5)), also of systemd-resolved, whose own address is all that the first may have; and names
/// that need no server (hosts(5)).
const FILES: [&str; 3] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf", "/etc/hosts"];
/// Most bytes that are compared of a file: glibc reads three servers, and lists of hosts are a few hundred lines.
const COMPARED: u64 = 64 << 10;
/// A file that is written.
const WRITTEN: u32 = libc::IN_MODIFY | libc::IN_CLOSE_WRITE;
/// A folder in which one takes the place of another.
const REPLACED: u32 = libc::IN_CREATE | libc::IN_MOVED_TO | libc::IN_MOVED_FROM | libc::IN_DELETE;
/// Room for some events, each of which has a name of up to 255 bytes.
const EVENTS: usize = 4 << 10;

/// The files that the system's resolver reads, and what was in them last.
#[derive(Debug)]
pub(super) struct ResolverFiles {
    events: AsyncFd<OwnedFd>,
    paths: Vec<PathBuf>,
    contents: Vec<Vec<u8>>,
}

impl ResolverFiles {
    /// Watches the files of this host; within a runtime.
    pub(super) fn open() -> io::Result<ResolverFiles> {
        ResolverFiles::watch(FILES.iter().map(PathBuf::from).collect())
    }

    fn watch(paths: Vec<PathBuf>) -> io::Result<ResolverFiles> {
        // SAFETY: takes an integer; the result is checked before it is used.
        let events = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        checked(events)?;
        // SAFETY: the descriptor was just made and has no other owner.
        let events = watched(unsafe { OwnedFd::from_raw_fd(events) })?;
        let mut files = ResolverFiles { events, paths, contents: Vec::new() };
        files.follow();
        files.contents = files.read();
        Ok(files)
    }

    /// Waits until something happened to one of them, or near it; to be followed by [`ResolverFiles::changed`].
    pub(super) async fn ready(files: Option<&ResolverFiles>) {
        match files {
            // Reading tells what the matter is.
            Some(files) => drop(files.events.readable().await),
            None => std::future::pending().await,
        }
    }

    /// Returns true if one of them says something else than before.
    pub(super) fn changed(&mut self) -> bool {
        let mut buffer = [0_u8; EVENTS];
        // Which events they are does not matter.
        while self.events.try_io(Interest::READABLE, |events| read(events, &mut buffer)).is_ok() {}
        // Another file may be there, or a link that leads elsewhere.
        self.follow();
        let contents = self.read();
        let before = std::mem::replace(&mut self.contents, contents);
        before != self.contents
    }

    /// Watches the files where they are now, and the folders in which they may come to be. One that is not there is none to watch.
    fn follow(&self) {
        for path in &self.paths {
            let real = path.canonicalize().ok();
            let folders = [path.parent(), real.as_deref().and_then(Path::parent)];
            self.add(path, WRITTEN);
            folders.into_iter().flatten().for_each(|folder| self.add(folder, REPLACED));
        }
    }

    fn add(&self, path: &Path, mask: u32) {
        let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return };
        // SAFETY: the pointer is to a string that outlives the call.
        unsafe { libc::inotify_add_watch(self.events.as_raw_fd(), path.as_ptr(), mask) };
    }

    fn read(&self) -> Vec<Vec<u8>> {
        let content = |path: &PathBuf| {
            let mut content = Vec::new();
            let _ = File::open(path).and_then(|file| file.take(COMPARED).read_to_end(&mut content));
            content
        };
        self.paths.iter().map(content).collect()
    }
}

fn read(events: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length describe `buffer`, which outlives the call.
    let read = unsafe { libc::read(events.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    async fn changes(files: &mut ResolverFiles) {
        while !files.changed() {
            ResolverFiles::ready(Some(files)).await;
        }
    }

    #[test]
    fn a_file_that_is_written_replaced_or_led_elsewhere_is_a_change_and_its_neighbour_is_none() {
        let dir = std::env::temp_dir().join(format!("strait-resolver-files-{}", std::process::id()));
        let [file, target, other] = ["resolv.conf", "stub/resolv.conf", "passwd"].map(|name| dir.join(name));
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut files = ResolverFiles::watch(vec![file.clone()]).unwrap();
            fs::write(&file, "nameserver 192.0.2.1\n").unwrap();
            changes(&mut files).await;
            fs::write(&file, "nameserver 192.0.2.2\n").unwrap();
            changes(&mut files).await;
            fs::write(&other, "root").unwrap();
            ResolverFiles::ready(Some(&files)).await;
            assert!(!files.changed(), "another file of the folder");
            fs::write(&target, "nameserver 127.0.0.53\n").unwrap();
            let link = dir.join("link");
            std::os::unix::fs::symlink(&target, &link).unwrap();
            fs::rename(&link, &file).unwrap();
            changes(&mut files).await;
            let next = target.with_extension("next");
            fs::write(&next, "nameserver 192.0.2.3\n").unwrap();
            fs::rename(&next, &target).unwrap();
            changes(&mut files).await;
            fs::write(&target, "nameserver 192.0.2.4\n").unwrap();
            changes(&mut files).await;
            fs::remove_file(&file).unwrap();
            changes(&mut files).await;
            assert!(!files.changed());
        });
        fs::remove_dir_all(&dir).unwrap();
    }
}
