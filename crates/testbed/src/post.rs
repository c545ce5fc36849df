//! A sender, a broker and a receiver, each on a host of its own: what is stored at one time is fetched at another.

mod client;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::{DaemonProcess, Error, Extra, KnownPeer, LinkSpec, Namespace, PORT, Site, TwoHosts, WireLink};

pub use client::PostClient;

/// The number of the receiver's link, and of the receiver.
const THIRD: u8 = 3;

/// Three hosts: the sender `site-a` and the receiver `site-c`, each joined to the broker `site-b` and to nothing else.
#[derive(Clone, Debug)]
pub struct Post {
    /// The sender's site.
    pub sender: Site,
    /// The broker's.
    pub broker: Site,
    /// The receiver's.
    pub receiver: Site,
    /// The sender's host and the broker's, and the link between them.
    pub hosts: TwoHosts,
    /// The receiver's link to the broker.
    pub link: WireLink,
}

impl Post {
    /// A receiver beside two hosts, with a fast link, and keys for all three in `parent`.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses, [`Error::Command`] when there is no key.
    pub fn beside(hosts: TwoHosts, program: &Path, parent: &Path) -> Result<Post, Error> {
        Post::joined(hosts, LinkSpec::unshaped(), program, parent)
    }

    /// As [`Post::beside`], with a link of the receiver like `spec`.
    ///
    /// # Errors
    /// As [`Post::beside`].
    pub fn joined(hosts: TwoHosts, spec: LinkSpec, program: &Path, parent: &Path) -> Result<Post, Error> {
        let third = Namespace::create("site-c")?;
        let link = WireLink::join(&third, &hosts.b, THIRD, spec)?;
        let [sender, broker] = Site::pair(program, &hosts, parent)?;
        let outside = SocketAddr::new(link.a.v4.into(), PORT);
        let receiver = Site::create(program, &third, THIRD, outside, parent)?;
        Ok(Post { sender, broker, receiver, hosts, link })
    }

    /// Where the receiver reaches the broker.
    #[must_use]
    pub fn broker_for_receiver(&self) -> SocketAddr {
        SocketAddr::new(self.link.b.v4.into(), PORT)
    }

    /// The sender's configuration, with more lines of the section of the receiver, which it cannot reach.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be written.
    pub fn configure_sender(&self, receiver: &str, extra: Extra<'_>) -> Result<PathBuf, Error> {
        let (at, more) = (Some(self.broker.outside), "broker = true");
        let peers = [
            KnownPeer { site: &self.broker, at, more },
            KnownPeer { site: &self.receiver, at: None, more: receiver },
        ];
        configure(&self.sender, &peers, extra)
    }

    /// The receiver's configuration, with more lines of the section of the sender, which it cannot reach.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be written.
    pub fn configure_receiver(&self, sender: &str, extra: Extra<'_>) -> Result<PathBuf, Error> {
        let (at, more) = (Some(self.broker_for_receiver()), "broker = true");
        let peers = [
            KnownPeer { site: &self.broker, at, more },
            KnownPeer { site: &self.sender, at: None, more: sender },
        ];
        configure(&self.receiver, &peers, extra)
    }

    /// The broker's configuration: `section` is in `[broker]`, and `more` behind it. Both others may put and fetch, unless `more`
    /// says who may.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be written.
    pub fn configure_broker(&self, section: &str, more: &str) -> Result<PathBuf, Error> {
        self.configure_broker_for(&[&self.sender, &self.receiver], section, more)
    }

    /// As [`Post::configure_broker`], for other peers.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be written.
    pub fn configure_broker_for(&self, peers: &[&Site], section: &str, more: &str) -> Result<PathBuf, Error> {
        let peers: Vec<_> = peers.iter().map(|site| KnownPeer { site, at: None, more: "" }).collect();
        let all = "[[broker.access]]\npeer = \"*\"\nput = true\nfetch = true\n";
        let access = if more.contains("[[broker.access]]") { "" } else { all };
        let sections = format!("[broker]\n{section}\n{access}{more}");
        configure(&self.broker, &peers, Extra { sections: &sections, ..Extra::default() })
    }

    /// The configuration of a receiver that knows other senders, such as clients.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be written.
    pub fn configure_receiver_of(&self, senders: &[&Site], extra: Extra<'_>) -> Result<PathBuf, Error> {
        let broker =
            KnownPeer { site: &self.broker, at: Some(self.broker_for_receiver()), more: "broker = true" };
        let peers = senders.iter().map(|site| KnownPeer { site, at: None, more: "" }).chain([broker]);
        configure(&self.receiver, &peers.collect::<Vec<_>>(), extra)
    }

    /// The keys of `[broker]` for a store in a folder of the broker's site.
    #[must_use]
    pub fn local_store(&self) -> String {
        let folder = self.broker.folder();
        format!("store = \"{0}/store\"\nspool = \"{0}/spool\"\n", folder.display())
    }

    /// Starts the broker from its configuration.
    ///
    /// # Errors
    /// As [`DaemonProcess::start`].
    pub fn start_broker(&self, config: &Path) -> Result<DaemonProcess, Error> {
        self.broker.start_broker(config, "run")
    }
}

fn configure(site: &Site, peers: &[KnownPeer<'_>], extra: Extra<'_>) -> Result<PathBuf, Error> {
    let path = site.folder().join("strait.toml");
    let text = site.configuration_without_tunnel(peers, extra);
    fs::write(&path, text).map_err(Error::doing(format!("write {}", path.display())))?;
    Ok(path)
}
