//! Real daemons on two hosts, seen from outside: what crosses, what does not, and what survives.
//!
//! Each file is about one behaviour. All need leave to make network namespaces and TUN devices; without it they say
//! that they are skipped.
#![allow(clippy::unwrap_used)]

mod addresses;
mod aggregation;
mod behind_ip;
mod block_history;
mod broker;
mod browser;
mod by_hand;
mod byte_cache;
mod capture;
mod closed;
mod compression;
mod confined;
mod copied;
mod directory;
mod disks;
mod dns;
mod domains;
mod figures;
mod file_kills;
mod file_outlives;
mod file_trouble;
mod files;
mod frame;
mod full_tunnel;
mod history_faults;
mod host;
mod hostile;
mod hub;
mod idle;
mod interruption;
mod keystroke;
mod life;
mod link_rate_estimate;
mod login;
mod login_kerberos;
mod login_ssh;
mod lone;
mod loss;
mod manual;
mod marks;
mod metered;
mod names;
mod outbox;
mod outside;
mod oversize;
mod pair;
mod path_mtu;
mod refusals;
mod rekey;
mod reload;
mod remembered;
mod replay;
mod retransmissions;
mod roaming;
mod saved;
mod scope;
mod segments;
mod sessionless;
mod sessionless_cards;
mod sessionless_hostile;
mod silence;
mod small_system;
mod start;
mod strangers;
mod stream_limits;
mod tmux;
#[cfg(feature = "top")]
mod top;
mod traffic;
mod unreachable;
mod web;
mod why;
