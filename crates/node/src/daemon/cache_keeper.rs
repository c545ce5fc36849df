//! Stores the byte caches of all peers, and reads what was stored when the node starts: a thread beside those that move packets.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use strait_compress::history::cache::{CacheOwner, CacheReceiver, CacheRole, CacheSender, SegmentVault};
use strait_ipsec::{DomainCache, DomainTag, PeerCaches};
use strait_keying::{PrivateKey, PublicKey, derive_key};

use super::roster::Roster;
use super::start::seed;
use crate::cache_file::CacheFile;
use crate::config::{Config, PeerSection};
use crate::{mark_file, runtime};

/// How often what changed is written. A crash loses what was kept since; it is sent again.
const EVERY: Duration = Duration::from_secs(60);
/// What the key of stored segments is derived for, so that no other use of the node's key gives it.
const KEY_INFO: &[u8] = b"strait cache key 1";

/// One end of a cache with its file.
#[derive(Debug)]
struct StoredCache {
    cache: DomainCache,
    /// The domain's tag in hexadecimal digits, as what is stored is bound to it.
    domain: String,
    role: CacheRole,
    file: CacheFile,
    /// Whether the last write failed, so that it is said once.
    fails: bool,
}

/// The caches of one peer.
#[derive(Debug)]
struct KeptPeer {
    name: String,
    key: [u8; 32],
    caches: Arc<PeerCaches>,
    stored: Vec<StoredCache>,
}

/// The files of all caches, opened before the thread starts.
#[derive(Debug)]
pub(super) struct CacheFiles {
    vault: SegmentVault,
    peers: Vec<KeptPeer>,
}

/// The thread. When it is dropped, it writes what changed and ends.
#[derive(Debug)]
pub(super) struct CacheKeeper {
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl CacheFiles {
    /// Opens the files of all peers that the configuration names, where it says `cache_dir` and has rules with `cache`. A file that
    /// cannot be used is said, and its cache is in memory only.
    pub(super) fn open(config: &Config, roster: &mut Roster, key: &PrivateKey) -> Option<CacheFiles> {
        let folder = config.node.cache_dir.as_deref()?;
        let wanted: Vec<DomainCache> = config.cache_list().iter().collect();
        if wanted.is_empty() {
            return None;
        }
        if let Err(error) = runtime::make(folder) {
            tracing::warn!(%error, "byte caches are in memory only");
            return None;
        }
        let open = |peer: &PeerSection| {
            let key = peer.public_key()?;
            let caches = roster.enter(peer).caches;
            let stored =
                wanted.iter().flat_map(|cache| both_ends(folder, (&peer.name, key), *cache)).collect();
            Some(KeptPeer { name: peer.name.clone(), key: *key.as_bytes(), caches, stored })
        };
        let peers: Vec<KeptPeer> = config.peers.iter().filter_map(open).collect();
        peers.iter().for_each(|peer| peer.caches.begin_loading());
        let secret = derive_key(key.expose_seed(), &[], &[KEY_INFO]);
        Some(CacheFiles { vault: SegmentVault::new(secret), peers })
    }

    /// Starts the thread.
    pub(super) fn keep(mut self) -> std::io::Result<CacheKeeper> {
        let (end, ended) = mpsc::channel();
        let run = move || {
            self.load();
            loop {
                let goes_on = ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout);
                self.write();
                if !goes_on {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("strait-cache".to_owned()).spawn(run)?;
        Ok(CacheKeeper { end: Some(end), thread: Some(thread) })
    }

    /// Reads what was stored. Until then the packet path has no cache.
    fn load(&self) {
        for peer in &self.peers {
            let (mut senders, mut receivers, mut damaged) = (Vec::new(), Vec::new(), 0);
            for stored in &peer.stored {
                let DomainCache { domain, capacity } = stored.cache;
                let sealed = (&self.vault, stored.owner(&peer.key));
                match stored.role {
                    CacheRole::Sender => {
                        let mut sender = Box::new(CacheSender::new(capacity).within(peer.caches.share()));
                        damaged += stored.file.read(sealed, |stored| sender.restore(stored).is_ok());
                        senders.push((domain, sender));
                    }
                    CacheRole::Receiver => {
                        let mut receiver = Box::new(CacheReceiver::new(capacity).within(peer.caches.share()));
                        damaged += stored.file.read(sealed, |stored| receiver.restore(stored).is_ok());
                        receivers.push((domain, receiver));
                    }
                }
            }
            if damaged > 0 {
                tracing::info!(peer = %peer.name, damaged, "segments of byte caches cannot be read, or there is no memory for them; they are forgotten");
            }
            peer.caches.loaded(senders, receivers);
        }
    }

    /// Writes what changed.
    fn write(&mut self) {
        let mut segment = Vec::new();
        for KeptPeer { name, key, caches, stored } in &mut self.peers {
            for stored in stored {
                let mut failed = None;
                loop {
                    segment.clear();
                    let domain: DomainTag = stored.cache.domain;
                    let Some(number) = caches.store_changed((domain, stored.role), &mut segment) else {
                        break;
                    };
                    let written = seed().and_then(|seed| {
                        stored.file.write((&self.vault, stored.owner(key)), (number, &segment), *seed)
                    });
                    failed = written.err().or(failed);
                }
                if let Some(error) = &failed
                    && !stored.fails
                {
                    tracing::warn!(
                        peer = %name, %error,
                        "a byte cache cannot be stored: what it kept since the last minute is sent again after a restart"
                    );
                }
                stored.fails = failed.is_some();
            }
        }
    }
}

impl StoredCache {
    fn owner<'a>(&'a self, peer: &'a [u8; 32]) -> CacheOwner<'a> {
        CacheOwner { domain: &self.domain, peer, role: self.role }
    }
}

/// The files of both ends of a cache.
fn both_ends(
    folder: &Path,
    (name, key): (&str, &PublicKey),
    cache: DomainCache,
) -> impl Iterator<Item = StoredCache> {
    let domain = format!("{:016x}", cache.domain.0);
    let open = move |(role, end): (CacheRole, &str)| {
        let path = mark_file::named(folder, key, &format!("{domain}.{end}"));
        match CacheFile::open(&path, cache.capacity) {
            Ok(file) => Some(StoredCache { cache, domain: domain.clone(), role, file, fails: false }),
            Err(error) => {
                tracing::warn!(peer = %name, %error, "a byte cache is in memory only");
                None
            }
        }
    };
    [(CacheRole::Sender, "sent"), (CacheRole::Receiver, "received")].into_iter().filter_map(open)
}

impl Drop for CacheKeeper {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that stores byte caches panicked");
        }
    }
}
