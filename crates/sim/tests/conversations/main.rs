//! Whole conversations between node cores in virtual time, one behaviour a file.
//!
//! Everything follows from the seed that a failing test prints.

#![allow(clippy::unwrap_used)]

mod aggregation;
mod block_history;
mod bundles_and_blocks;
mod by_service;
mod error_correction;
mod establish_and_exchange;
mod files_beside_packets;
mod first_streams;
mod foreign_source;
mod forged_and_truncated;
mod forwarding;
mod handshake_cost;
mod hostile_bundles;
mod hostile_peer;
mod hostile_work;
mod hub_away;
mod hub_of_forty;
mod idle_is_silent;
mod kept_memory;
mod keystrokes;
mod link_down_and_up;
mod link_rate_estimate;
mod lone_packets;
mod loss_repair;
mod many_sites;
mod many_spokes;
mod metered;
mod outages;
mod pacing;
mod path_becomes_narrow;
mod path_mtu;
mod processes_of_one_key;
mod questions_beside_files;
mod rate_unknown;
mod rekey_under_load;
mod rekey_under_loss;
mod replay_attack;
mod replay_window;
mod restart_of_one_side;
mod roaming;
mod same_seed_same_run;
mod sessionless;
mod silence_probe_then_handshake;
mod simultaneous_start;
mod small_paths;
mod sparse_traffic;
mod stage;
mod strangers;
mod stream;
mod super_packets;
mod suspend;
mod weather;
