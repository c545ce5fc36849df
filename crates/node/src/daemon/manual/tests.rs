use std::path::PathBuf;

use super::*;
use crate::config::Config;
use crate::daemon::roster::Roster;
use strait_keying::manual::SLACK;
use strait_wire::Spi;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("strait-manual-peers-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn entry(&self, roster: &mut Roster, peer: &str) -> ManualEntry {
        let text = format!(
            "[node]\naddress = \"10.88.0.1\"\nlisten = 4500\n[[peer]]\nname = \"gateway\"\nallowed_ips = \"10.88.0.2\"\n\
             {peer}[peer.manual]\ndanger_roaming = true\ncounter_file = \"gateway.counter\"\n[peer.manual.esp]\nspi_in = 0x04000001\n\
             spi_out = 0x04000002\nsuite = \"aes-128-gcm\"\nkey_in = \"0x{}\"\nkey_out = \"0x{}\"\n",
            "01".repeat(20),
            "02".repeat(20)
        );
        let peer = Config::parse(&text, &self.0.join("x.toml")).unwrap().peers.remove(0);
        let counter = counter(peer.manual().unwrap(), CounterSource::Path).unwrap();
        ManualEntry { spec: roster.enter(&peer), peer, counter, seed: 7 }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn at(seconds: u64) -> Time {
    Time::from_millis(seconds * 1000)
}

#[test]
fn sender_and_receiver_get_peer_and_its_associations() {
    let folder = Folder::new("told");
    let mut peers = ManualPeers::default();
    let entry = folder.entry(&mut Roster::default(), "endpoint = \"192.0.2.2:4500\"\n");
    let id = entry.spec.id;
    let rate = Rate::from_bits(1_000_000);
    let told = peers.add(entry, rate, at(1));
    assert!(matches!(
        &told.out[..],
        [outbound::Order::AddPeer(spec), outbound::Order::Rate(_, paced), outbound::Order::Install(sa)]
            if spec.endpoint == Some("192.0.2.2:4500".parse().unwrap()) && *paced == rate.into() && sa.spi() == Spi(0x0400_0002)
    ));
    assert!(matches!(
        &told.into[..],
        [inbound::Order::AddPeer(..), inbound::Order::Install(sa)] if sa.spi() == Spi(0x0400_0001)
    ));
    let told = peers.remove(id);
    assert!(matches!(&told.out[..], [outbound::Order::RemovePeer(gone)] if *gone == id));
    assert!(matches!(&told.into[..], [inbound::Order::RemovePeer(gone)] if *gone == id));
    assert_eq!(peers.poll_timeout(), None, "no peer is left");
    assert!(peers.remove(id).out.is_empty());
}

#[test]
fn numbers_are_reserved_in_time() {
    let folder = Folder::new("numbers");
    let mut peers = ManualPeers::default();
    let entry = folder.entry(&mut Roster::default(), "");
    let id = entry.spec.id;
    let reserve = entry.counter.as_ref().unwrap().reserve();
    drop(peers.add(entry, None, at(1)));
    assert_eq!((reserve.first(), reserve.limit()), (1, SLACK));
    assert_eq!(peers.poll_timeout(), Some(at(2)));
    peers.get(id).unwrap().outbound.note(SLACK / 2 + 1, 0, at(1));
    assert!(peers.look(at(1)).is_empty(), "not yet");
    assert_eq!(reserve.limit(), SLACK);
    peers.look(at(2));
    assert_eq!((reserve.limit(), peers.poll_timeout()), (SLACK / 2 + 1 + SLACK, Some(at(3))));
    assert_eq!(peers.get(id).unwrap().last_number(), SLACK / 2 + 1);
    peers.end();
    // The association is gone with the orders, unused: so are all numbers but those that were.
    assert_eq!(folder.entry(&mut Roster::default(), "").counter.unwrap().reserve().first(), 1);
}

#[test]
fn a_nat_is_kept_open_while_nothing_is_sent() {
    let folder = Folder::new("keepalive");
    let mut peers = ManualPeers::default();
    let entry = folder.entry(&mut Roster::default(), "keepalive = \"25s\"\n");
    let id = entry.spec.id;
    drop(peers.add(entry, None, at(0)));
    let mut kept = Vec::new();
    for second in 1..100 {
        if second == 40 {
            peers.get(id).unwrap().outbound.note(1, 100, at(40));
        }
        if !peers.look(at(second)).is_empty() {
            kept.push(second);
        }
    }
    assert_eq!(kept, [25, 65, 90]);
    peers.set_keepalive(id, None);
    assert!((100..200).all(|second| peers.look(at(second)).is_empty()));
}

#[test]
fn a_counter_that_cannot_be_written_is_said_once_and_shown_until_it_can() {
    let folder = Folder::new("unwritten");
    let mut peers = ManualPeers::default();
    let entry = folder.entry(&mut Roster::default(), "");
    let id = entry.spec.id;
    drop(peers.add(entry, None, at(0)));
    let file = folder.0.join("gateway.counter");
    let peer = peers.known.get_mut(&id).unwrap();
    // Opened for reading only, so that each write fails.
    let writable = peer.counter.as_mut().unwrap().write_to(std::fs::File::open(&file).unwrap());
    peer.outbound.note(SLACK - 1, 100, at(1));
    for second in 2..5 {
        peers.look(at(second));
        let said = Vec::from_iter(peers.warnings());
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("peer gateway: sending stops when the reserved sequence numbers"),
            "{said:?}"
        );
        let reserve = peers.known[&id].counter.as_ref().unwrap().reserve();
        assert_eq!(reserve.limit(), SLACK, "what is not on disk is not used");
    }
    drop(peers.known.get_mut(&id).unwrap().counter.as_mut().unwrap().write_to(writable));
    peers.look(at(5));
    assert_eq!(peers.warnings().count(), 0);
    assert_eq!(peers.known[&id].counter.as_ref().unwrap().reserve().limit(), 2 * SLACK - 1);
}

#[test]
fn notices_about_others_are_given_back() {
    let folder = Folder::new("notices");
    let mut peers = ManualPeers::default();
    let entry = folder.entry(&mut Roster::default(), "endpoint = \"192.0.2.2:4500\"\n");
    let id = entry.spec.id;
    drop(peers.add(entry, None, at(0)));
    let (from, spi) = ("192.0.2.9:7".parse::<std::net::SocketAddr>().unwrap(), Spi(0x0400_0001));
    for other in
        [Notice::NeedsSa(PeerId(77)), Notice::UnknownSpi(from.into(), spi), Notice::Moved(PeerId(77))]
    {
        assert_eq!(peers.notice(other.clone(), at(1)), Some(other));
    }
    for own in
        [Notice::NeedsSa(id), Notice::Confirmed(id, spi), Notice::Moved(id), Notice::InnerMtu(id, 1400)]
    {
        assert_eq!(peers.notice(own, at(1)), None);
    }
    let endpoint = "192.0.2.2:4500".parse().unwrap();
    assert_eq!(
        (peers.get(id).unwrap().endpoint(), peers.get(id).unwrap().is_used_up),
        (Some(endpoint), false)
    );
    peers.notice(Notice::Exhausted(id, Spi(0x0400_0002)), at(1));
    assert!(peers.get(id).unwrap().is_used_up);
}

#[test]
fn only_the_outermost_protocol_of_peers_directly_behind_ip_is_received() {
    let peer = |manual: &str| {
        let text = format!(
            "[node]\naddress = \"10.88.0.1\"\n[[peer]]\nname = \"gateway\"\nendpoint = \"192.0.2.2\"\n\
             allowed_ips = \"10.88.0.2\"\n[peer.manual]\ncarrier = \"ip\"\nlocal = \"192.0.2.1\"\n{manual}"
        );
        let text = match manual.contains("transport") {
            true => text.replace("allowed_ips = \"10.88.0.2\"\n", ""),
            false => text,
        };
        watched(&Config::parse(&text, Path::new("x.toml")).unwrap().peers).flows
    };
    let mac = format!(
        "integrity = \"hmac-sha-256-128\"\nkey_in = \"0x{0}\"\nkey_out = \"0x{0}\"\n",
        "01".repeat(32)
    );
    let ah = format!("[peer.manual.ah]\nspi_in = 300\nspi_out = 301\n{mac}");
    let esp = format!(
        "[peer.manual.esp]\nspi_in = 302\nspi_out = 303\ncipher = \"null\"\n{}",
        mac.replace("key", "integrity_key")
    );
    let alone = "ipcomp = \"deflate\"\ndanger_plain = true\n";
    for (manual, protocols) in [
        (esp.clone(), vec![Protocol::ESP]),
        (ah.clone(), vec![Protocol::AH]),
        (format!("{ah}{esp}"), vec![Protocol::AH]),
        (alone.to_owned(), vec![Protocol::IPCOMP, Protocol::IPIP, Protocol::IPV6]),
        (format!("mode = \"transport\"\n{alone}"), vec![Protocol::IPCOMP]),
    ] {
        let found = peer(&manual);
        assert_eq!(found.len(), 1);
        let (from, to) = ("192.0.2.2".parse().unwrap(), "192.0.2.1".parse().unwrap());
        assert_eq!(found[0], PeerFlow { from, to, protocols }, "{manual}");
    }
}
