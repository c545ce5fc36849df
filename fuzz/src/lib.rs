//! What every fuzz target asserts, apart from the fuzzer that feeds it: `fuzz_targets/` wraps each `check` for
//! libFuzzer, and `tests/corpus.rs` replays the committed seeds through the same functions.
//!
//! A check panics when an invariant fails; input that is refused is fine, input that panics is a bug.

// Lists of ranges that have one.
#![allow(clippy::single_range_in_vec_init)]

pub mod aggfrag;
pub mod ah;
pub mod block;
pub mod broker_message;
pub mod broker_names;
pub mod byte_cache;
pub mod capture;
pub mod compress_round_trip;
pub mod configuration;
pub mod control_message;
pub mod counter_file;
pub mod daily_keys;
pub mod datagram;
pub mod delta_messages;
pub mod delta_patch;
pub mod direct;
pub mod directory;
pub mod esp;
pub mod expand;
pub mod file_message;
pub mod fragment;
pub mod headers_expand;
pub mod headers_round_trip;
pub mod icmp;
pub mod ip;
pub mod ipcomp;
pub mod ipcomp_payload;
pub mod kerberos_frame;
pub mod key_card;
pub mod keys;
pub mod link_layer;
pub mod login_message;
pub mod login_prediction;
pub mod login_screen;
pub mod lone_unit;
pub mod mark_file;
pub mod operations_data;
pub mod operations_keys;
pub mod path_memory;
pub mod patterns;
pub mod probe_demux_vnet;
pub mod reassembly;
pub mod repair;
pub mod saved;
pub mod sealed;
pub mod sessionless;
pub mod ssh_messages;
pub mod ssh_packets;
pub mod super_packet;
pub mod symbol;
pub mod transfer_records;
pub mod transport;
pub mod unit;
pub mod v42bis;
pub mod vj;

/// What a target does with one input.
pub type Check = fn(&[u8]);

/// Every target by the name of its binary and its folder under `corpus/`.
pub const TARGETS: &[(&str, Check)] = &[
    ("aggfrag", aggfrag::check),
    ("ah", ah::check),
    ("block", block::check),
    ("broker_message", broker_message::check),
    ("broker_names", broker_names::check),
    ("byte_cache", byte_cache::check),
    ("capture", capture::check),
    ("compress_round_trip", compress_round_trip::check),
    ("configuration", configuration::check),
    ("control_message", control_message::check),
    ("counter_file", counter_file::check),
    ("datagram", datagram::check),
    ("delta_messages", delta_messages::check),
    ("delta_patch", delta_patch::check),
    ("direct", direct::check),
    ("daily_keys", daily_keys::check),
    ("directory", directory::check),
    ("esp", esp::check),
    ("expand", expand::check),
    ("file_message", file_message::check),
    ("fragment", fragment::check),
    ("headers_expand", headers_expand::check),
    ("headers_round_trip", headers_round_trip::check),
    ("icmp", icmp::check),
    ("ip", ip::check),
    ("ipcomp", ipcomp::check),
    ("ipcomp_payload", ipcomp_payload::check),
    ("kerberos_frame", kerberos_frame::check),
    ("key_card", key_card::check),
    ("keys", keys::check),
    ("link_layer", link_layer::check),
    ("login_message", login_message::check),
    ("login_prediction", login_prediction::check),
    ("login_screen", login_screen::check),
    ("lone_unit", lone_unit::check),
    ("mark_file", mark_file::check),
    ("operations_data", operations_data::check),
    ("operations_keys", operations_keys::check),
    ("path_memory", path_memory::check),
    ("patterns", patterns::check),
    ("probe_demux_vnet", probe_demux_vnet::check),
    ("reassembly", reassembly::check),
    ("repair", repair::check),
    ("saved", saved::check),
    ("sealed", sealed::check),
    ("sessionless", sessionless::check),
    ("ssh_messages", ssh_messages::check),
    ("ssh_packets", ssh_packets::check),
    ("super_packet", super_packet::check),
    ("symbol", symbol::check),
    ("transfer_records", transfer_records::check),
    ("transport", transport::check),
    ("unit", unit::check),
    ("v42bis", v42bis::check),
    ("vj", vj::check),
];
