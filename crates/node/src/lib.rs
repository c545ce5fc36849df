//! The only part that touches the world: tunnel device, sockets, routes, files, clock, randomness.
//!
//! Two threads carry packets; the thread that called [`daemon::run`] keeps keys, names, timers and
//! the local socket. What they say to each other is in [`channels`].
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod background;
mod bpf;
mod cache_file;
pub mod channels;
pub mod client;
pub mod clock;
pub mod config;
pub mod counter_file;
mod cpu_time;
pub mod daemon;
mod daily_file;
pub mod direct;
pub mod directory;
pub mod engines;
mod fast_path;
pub mod folders;
pub mod generation;
mod http;
pub mod interrupt;
pub mod inward;
pub mod kept_file;
pub mod local;
pub mod logging;
pub mod login;
mod mark_file;
mod memory;
pub mod metrics;
pub mod netlink;
pub mod network;
mod nftables;
pub mod outward;
mod packet_errors;
pub mod path_memory;
pub mod poll;
pub mod private_daemon;
mod private_file;
pub mod privileges;
mod process;
pub mod report;
pub mod restart;
pub mod runtime;
pub mod saved;
pub mod services;
pub mod socket_buffer;
pub mod speed;
pub mod tap;
#[cfg(test)]
mod testing;
mod timespec;
pub mod tun;
pub mod udp;
pub mod units;
pub mod wake;
pub mod web;
