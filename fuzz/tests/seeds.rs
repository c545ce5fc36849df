//! The seeds, those of the wire targets written by the emitters themselves. `STRAIT_SEEDS=write cargo test --test seeds` writes
//! them; without it the test checks that the committed files are what the emitters write.

#[path = "seeds/broker.rs"]
mod broker;
#[path = "seeds/cache.rs"]
mod cache;
#[path = "seeds/captures.rs"]
mod captures;
#[path = "seeds/directory.rs"]
mod directory;
#[path = "seeds/files.rs"]
mod files;
#[path = "seeds/history.rs"]
mod history;
#[path = "seeds/login.rs"]
mod login;
#[path = "seeds/modems.rs"]
mod modems;
#[path = "seeds/operations.rs"]
mod operations;
#[path = "seeds/packets.rs"]
mod packets;
#[path = "seeds/payloads.rs"]
mod payloads;
#[path = "seeds/prediction.rs"]
mod prediction;
#[path = "seeds/settings.rs"]
mod settings;
#[path = "seeds/ssh.rs"]
mod ssh;
#[path = "seeds/transfers.rs"]
mod transfers;
#[path = "seeds/wire.rs"]
mod wire;

use std::fs;
use std::path::PathBuf;

/// Target, name of the seed, bytes.
type Seed = (&'static str, &'static str, Vec<u8>);

#[test]
fn committed_seeds_are_what_the_emitters_write() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let write = std::env::var_os("STRAIT_SEEDS").is_some_and(|value| value == "write");
    let seeds = [
        wire::ip_seeds(),
        wire::transport_seeds(),
        wire::esp_seeds(),
        wire::ah_seeds(),
        wire::fragment_seeds(),
        wire::reassembly_seeds(),
        wire::direct_seeds(),
        wire::ipcomp_seeds(),
        wire::aggfrag_seeds(),
        wire::block_seeds(),
        wire::symbol_seeds(),
        wire::sessionless_seeds(),
        captures::capture_seeds(),
        wire::probe_demux_vnet_seeds(),
        wire::repair_seeds(),
        history::lone_unit_seeds(),
        wire::icmp_seeds(),
        payloads::expand_seeds(),
        payloads::compress_round_trip_seeds(),
        payloads::headers_round_trip_seeds(),
        payloads::headers_expand_seeds(),
        payloads::ipcomp_payload_seeds(),
        cache::byte_cache_seeds(),
        captures::link_layer_seeds(),
        payloads::datagram_seeds(),
        payloads::super_packet_seeds(),
        settings::configuration_seeds(),
        settings::control_message_seeds(),
        settings::key_card_seeds(),
        directory::directory_seeds(),
        directory::daily_keys_seeds(),
        settings::mark_file_seeds(),
        settings::saved_seeds(),
        operations::operations_data_seeds(),
        operations::operations_keys_seeds(),
        files::unit_seeds(),
        files::delta_message_seeds(),
        files::delta_patch_seeds(),
        prediction::prediction_seeds(),
        login::message_seeds(),
        login::screen_seeds(),
        prediction::kerberos_frame_seeds(),
        ssh::packet_seeds(),
        ssh::message_seeds(),
        transfers::transfer_record_seeds(),
        transfers::pattern_seeds(),
        transfers::sealed_seeds(),
        broker::message_seeds(),
        broker::name_seeds(),
        modems::v42bis_seeds(),
        modems::vj_seeds(),
    ];
    for (target, name, bytes) in seeds.into_iter().flatten() {
        let path = corpus.join(target).join(name);
        if write {
            fs::create_dir_all(corpus.join(target)).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let committed = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(committed == bytes, "{} is another; STRAIT_SEEDS=write writes it", path.display());
    }
}
