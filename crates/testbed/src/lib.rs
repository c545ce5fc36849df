//! Two hosts and a thin link, made of network namespaces: what `strait demo`, the end-to-end tests and the
//! benchmarks stand on.
//!
//! - [`sandbox`] gets leave to make hosts, as root or inside a user namespace;
//! - [`Namespace`] is a host, [`WireLink`] a wire that can be thin, [`TwoHosts`] the usual pair;
//! - [`Site`] is a host with a key and a configuration, [`DaemonProcess`] a real `strait up` on it, [`BorrowedSocket`] its socket, which can be made to refuse, [`Workdir`] a private folder, [`SmallDisk`] a disk that is soon full;
//! - [`Post`] is a sender, a broker and a receiver, [`PostClient`] one of many senders;
//! - [`directory`] has directories as processes, and certificates for them; what is behind a directory is [`outside::Etcd`];
//! - [`TestTunnel`] is two such sites with a session;
//! - [`program_with_mounts`] runs a program with files of its own in place of the system's, [`program_with_accounts`] one that may give this machine's accounts;
//! - [`ProcessorQuota`] leaves daemons a share of a processor;
//! - [`Guest`] is a host with a kernel of its own, for an IPsec that is not ours;
//! - [`attack`] is what strangers and hostile peers send, at a steady rate;
//! - [`ClearWatch`] counts what a host sends in the clear;
//! - [`Relay`] is a wire that loses, repeats and delays, or an [`EmulatedPath`] with rate, delay, loss and a modem's queue, or a [`DialledLine`] with modems that compress;
//! - [`kerberos::Realms`] has KDCs, users with tickets and services with keys;
//! - [`Feed`] is what comes from the network behind a host;
//! - [`outside`] starts programs that are not ours, such as tshark on a capture;
//! - [`PingTrain`] asks again and again and notes when answers come, [`listen`] hears datagrams;
//! - [`Transfer`] moves a file over plain TCP, [`Stream`] sends as much as goes, [`DatagramStream`] does with datagrams, [`EchoService`] sends back what it is sent; [`sample`] makes files as sites exchange them.
//!
//! Nothing here outlives the program: hosts and links live only as long as it holds them, daemons die with it, and
//! the folder of a killed program is swept by the next one.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod accounts;
pub mod attack;
mod clear;
mod connect;
mod copied;
mod daemon;
mod datagrams;
mod descriptor;
pub mod directory;
mod disk;
mod echo;
mod error;
mod feed;
mod frame;
mod guest;
mod hosts;
mod interface;
pub mod interrupt;
pub mod kerberos;
mod link;
mod listener;
mod log;
mod mounts;
mod namespace;
pub mod outside;
mod ping;
mod post;
mod quota;
mod relay;
pub mod sample;
pub mod sandbox;
mod site;
mod stream;
mod transfer;
mod tunnel;
mod workdir;

pub use accounts::program_with_accounts;
pub use clear::ClearWatch;
pub use connect::connect_from;
pub use copied::tell_copied;
pub use daemon::{DaemonProcess, ProcessCost, children};
pub use datagrams::{DatagramArrivals, DatagramStream, RunningDatagrams};
pub use descriptor::BorrowedSocket;
pub use disk::{SmallDisk, on_disk};
pub use echo::EchoService;
pub use error::{Error, Obstacle};
pub use feed::Feed;
pub use guest::Guest;
pub use hosts::{Router, TwoHosts};
pub use interface::{InterfaceState, InterfaceTraffic};
pub use link::{CarriedBytes, LinkEnd, LinkSpec, LinkTraffic, Offloads, WireLink};
pub use listener::listen;
pub use mounts::program_with_mounts;
pub use namespace::Namespace;
pub use ping::PingTrain;
pub use post::{Post, PostClient};
pub use quota::ProcessorQuota;
pub use relay::{DialledLine, EmulatedPath, FrameDirection, FrameFate, Relay, SeenPacket};
pub use site::{Extra, KnownPeer, Networks, PORT, Site};
pub use stream::{Arrived, RunningStream, Stream};
pub use transfer::Transfer;
pub use tunnel::{TestTunnel, paced};
pub use workdir::Workdir;
