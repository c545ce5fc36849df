//! A broker in a runtime of its own.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use object_store::ObjectStore;
use strait_broker::access::Access;
use strait_broker::audit::Audit;
use strait_broker::engine::{Engine, Limits};
use strait_broker::spool::Spool;
use strait_broker::store::{self, Patience, Store};
use strait_node::config::{BrokerBucket, BrokerStore, Config};
use strait_transfer::broker::message::BrokerAnswer;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::client::{PATIENCE, TestClient, key, who};

/// Peers of every broker here: 1 to this.
const PEERS: u8 = 5;

/// What a store is made of.
#[derive(Clone)]
pub(crate) enum Kind {
    Folder(PathBuf),
    Memory(Arc<dyn ObjectStore>, Patience),
    /// With little patience, as its server fails on purpose.
    Bucket(BrokerBucket),
}

/// A broker.
pub(crate) struct Broker {
    pub(crate) engine: Arc<Engine>,
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the configuration says beside `store`.
pub(crate) fn access(broker: &str) -> Access {
    let peer = |number: u8| format!("[[peer]]\nname = \"peer-{number}\"\npublic_key = \"{}\"\n", key(number));
    let peers: String = (1..=PEERS).map(peer).collect();
    let text = format!("[node]\nprivate_key_file = \"k\"\n{peers}[broker]\nstore = \"s\"\n{broker}");
    let config = Config::parse(&text, Path::new("x.toml")).unwrap();
    Access::of(&config, config.broker.as_ref().unwrap())
}

/// All may do all.
pub(crate) const ALL: &str = "[[broker.access]]\npeer = \"*\"\n";

/// Patience with a store that fails to the end.
pub(crate) const SHORT: Patience = Patience {
    attempt: Duration::from_millis(100),
    total: Duration::from_millis(300),
    pause: Duration::from_millis(10),
};
/// Patience with one that fails once.
pub(crate) const LONG: Patience = Patience {
    attempt: Duration::from_secs(1),
    total: Duration::from_secs(60),
    pause: Duration::from_millis(10),
};

/// The same with a server: a disk that others use, too, may be slow.
const BUCKET: Patience = Patience {
    attempt: Duration::from_secs(4),
    total: Duration::from_secs(10),
    pause: Duration::from_millis(10),
};

impl Broker {
    pub(crate) fn start(kind: &Kind, spool: &Path, broker: &str, limits: Limits) -> Broker {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let store = match kind {
            Kind::Folder(folder) => {
                store::open(&BrokerStore::Folder(folder.clone()), Patience::default()).unwrap()
            }
            Kind::Memory(inner, patience) => Store::new(Arc::clone(inner), *patience),
            Kind::Bucket(bucket) => {
                let _inside = handle.enter();
                store::open(&BrokerStore::Bucket(bucket.clone()), BUCKET).unwrap()
            }
        };
        std::fs::create_dir_all(spool).unwrap();
        let engine = {
            let _inside = handle.enter();
            let audit = Audit::open(&spool.join("audit.jsonl")).unwrap();
            let opened = Spool::open(spool).unwrap();
            Engine::new(store, opened, audit, access(broker), limits, spool.join("status.json"))
        };
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let _ = runtime.block_on(stopped);
            // Tasks are dropped where they wait.
            runtime.shutdown_background();
        });
        Broker { engine, handle, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.handle
    }

    /// A stream of a peer, before the welcome.
    pub(crate) fn stream(&self, peer: u8) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let _inside = self.runtime().enter();
        let theirs = tokio::net::UnixStream::from_std(theirs).unwrap();
        self.runtime().spawn(Arc::clone(&self.engine).serve(who(peer), theirs));
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        ours.set_write_timeout(Some(PATIENCE)).unwrap();
        ours
    }

    /// A client on one.
    pub(crate) fn connect(&self, peer: u8) -> TestClient {
        TestClient::new(self.stream(peer))
    }

    /// The same behind the welcome.
    pub(crate) fn client(&self, peer: u8) -> TestClient {
        let mut client = self.connect(peer);
        assert!(matches!(client.hear(), BrokerAnswer::Welcome { .. }));
        client
    }

    pub(crate) fn sweep(&self) {
        self.runtime().block_on(self.engine.sweep()).unwrap();
    }

    /// Ends without a word, as it is.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
