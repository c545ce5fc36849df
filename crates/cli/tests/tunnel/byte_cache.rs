//! A byte cache: what a tunnel carried once costs little the second time, in another flow, whether a codec makes it shorter or not.

use strait_clock::Random;
use strait_testbed::outside::{has, has_scapy};
use strait_testbed::{Extra, LinkSpec, TwoHosts, paced, sample};

use crate::block_history::{carry, stream};
use crate::capture::Capture;
use crate::outside::open;
use crate::pair::{PATIENCE, Pair, allowed, eventually, settled};

/// Whose data has a cache, and whose has none.
const RULE: &str = "[[compress]]\nfrom = \"10.77.0.0/24\"\nto = \"10.77.0.0/24\"\ndomain = \"releases\"\ncache = \"64MiB\"\n";

/// Sends `content` over a TCP connection of its own; gives the bytes on the wire that took, of both directions.
fn transfer(pair: &Pair, content: &[u8]) -> u64 {
    let before = wire(pair);
    carry(pair, content);
    wire(pair) - before
}

/// The bytes that a receiver holds of what was sent and the sender does not know it to hold, once nothing more is said: the sender does
/// not lean on these. On a busy machine, datagrams that say so can be lost.
fn unknown(pair: &Pair) -> u64 {
    let held = || [history(pair, 0, "held_bytes_there"), history(pair, 1, "held_bytes_here")];
    let [there, here] = settled("the receiver has said what it holds", held);
    assert!(there * 5 >= here * 4, "{there} of {here} bytes are known");
    here.saturating_sub(there)
}

/// Bytes that both sites have sent on the wire.
fn wire(pair: &Pair) -> u64 {
    [0, 1].iter().map(|which| pair.peer(*which)["sent"]["wire_bytes"].as_u64().unwrap()).sum()
}

fn history(pair: &Pair, which: usize, key: &str) -> u64 {
    pair.peer(which)["history"][key].as_u64().unwrap()
}

fn pair() -> Pair {
    let rate = "10Mbit".parse().unwrap();
    let link = paced(rate, rate);
    let pair = Pair::idle(TwoHosts::direct(LinkSpec::thin(rate)).unwrap());
    pair.and_up(Extra { link: &link, sections: &format!("{RULE}codec = \"zstd-3\"\n"), ..Extra::default() })
}

/// Text, or what no codec makes shorter.
fn text(bytes: usize) -> Vec<u8> {
    let files = sample::generate(sample::DEFAULT_SEED);
    files.iter().flat_map(|file| file.bytes.iter().copied()).cycle().take(bytes).collect()
}

fn archive(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..bytes / 8).flat_map(|_| random.next_u64().to_be_bytes()).collect()
}

#[test]
fn the_same_again_costs_a_fiftieth_also_of_what_no_codec_makes_shorter() {
    if !allowed() {
        return;
    }
    let pair = pair();
    for (name, content) in [("text", text(5_000_000)), ("archive", archive(1, 5_000_000))] {
        let (first, unknown) = (transfer(&pair, &content), unknown(&pair));
        let again = transfer(&pair, &content);
        println!("{name}: {} bytes took {first} on the wire, and {again} again", content.len());
        let most = content.len() as u64 / 50 + unknown * 11 / 10;
        assert!(again <= most, "{name}: {again} again of {most}\n{}", pair.logs());
    }
    assert!(history(&pair, 0, "copied_bytes") > 9_000_000);
    assert!(history(&pair, 1, "received_copies") > 100);
    for which in [0, 1] {
        assert_eq!(pair.drops(which, "history-gone"), 0, "{}", pair.logs());
    }
}

/// A release, and the next one: a thousandth of its places have other bytes, and some of it is longer.
#[test]
fn a_release_after_its_predecessor_costs_a_twentieth() {
    if !allowed() {
        return;
    }
    let pair = pair();
    let first = archive(2, 4_000_000);
    let mut random = Random::new(3);
    let mut second = Vec::new();
    for piece in first.chunks(100_000) {
        second.extend_from_slice(piece);
        let at = second.len() - piece.len() / 2;
        second.splice(at..at + 200, archive(random.next_u64(), 240));
    }
    let (first_took, unknown) = (transfer(&pair, &first), unknown(&pair));
    let took = transfer(&pair, &second);
    println!("{} bytes took {first_took}, their successor {took}", first.len());
    assert!(took <= second.len() as u64 / 20 + unknown * 11 / 10, "{took}\n{}", pair.logs());
}

/// A decoder that was written from the wire format apart from the program makes the same of blocks that copy.
#[test]
fn another_decoder_makes_the_same_of_copies() {
    if !allowed() || !has_scapy() || !has("zstd") {
        return;
    }
    let rate = "10Mbit".parse().unwrap();
    let pair = Pair::idle(TwoHosts::direct(LinkSpec::thin(rate)).unwrap());
    let link = Capture::start(&pair.hosts, &pair.dir.path().join("link.pcap"));
    let (node, paced) = ("danger_export_keys = \"esp-keys\"", paced(rate, rate));
    let rule = format!("{RULE}codec = \"zstd-3\"\n");
    let pair = pair.and_up(Extra { node, link: &paced, sections: &rule, ..Extra::default() });
    let contents = [text(300_000), archive(5, 200_000)];
    for content in contents.iter().chain(&contents) {
        transfer(&pair, content);
        // What the receiver has not said yet that it holds is not copied from.
        unknown(&pair);
    }
    let opened = open(&pair, &link.stop());
    let there: Vec<_> = opened.iter().filter(|it| it.direction == "out").collect();
    // By the ports that they come from, in the order of the connections.
    let mut connections: Vec<(&[u8], Vec<&[u8]>)> = Vec::new();
    for packet in there.iter().flat_map(|it| &it.packets) {
        let port = &packet[20..22];
        match connections.iter_mut().find(|(of, _)| *of == port) {
            Some((_, packets)) => packets.push(packet),
            None => connections.push((port, vec![packet])),
        }
    }
    let made: Vec<_> = connections.into_iter().map(|(_, packets)| stream(packets.into_iter())).collect();
    assert!(made.iter().eq(contents.iter().chain(&contents)), "the packets carry something else");
    let copied: u64 = there.iter().filter_map(|it| it.line["copied"].as_u64()).sum();
    println!("{copied} bytes copied");
    assert!(copied > 450_000, "{copied} bytes copied");
}

/// Each end forgets what the other has forgotten; nothing is lost by it.
#[test]
fn a_cache_begins_anew_when_either_end_does() {
    if !allowed() {
        return;
    }
    let rate = "10Mbit".parse().unwrap();
    let mut pair = pair();
    let content = archive(4, 1_000_000);
    let link = paced(rate, rate);
    // Keys may be new in the middle of a transfer, after a restart.
    let costs_little = |pair: &Pair| (0..5).any(|_| transfer(pair, &content) * 20 <= content.len() as u64);
    for which in [0, 1] {
        assert!(costs_little(&pair), "before the restart of {which}\n{}", pair.logs());
        pair.kill(which);
        pair.start(which, Extra { link: &link, sections: RULE, ..Extra::default() });
        pair.daemon(1 - which).wait_for_session(["site-b", "site-a"][1 - which], PATIENCE).unwrap();
    }
    assert!(costs_little(&pair), "after all\n{}", pair.logs());
    assert_eq!(pair.drops(1, "history-gone"), 0, "{}", pair.logs());
}

/// With `cache_dir`, what was carried before a restart of either end costs little after it. What a crash leaves half written, or another
/// has changed, is forgotten.
#[test]
fn a_cache_on_disk_outlasts_restarts_of_both_ends() {
    if !allowed() {
        return;
    }
    let rate = "10Mbit".parse().unwrap();
    let link = paced(rate, rate);
    let pair = Pair::idle(TwoHosts::direct(LinkSpec::thin(rate)).unwrap());
    let folder = pair.dir.path().join("cache");
    let node = format!("cache_dir = \"{}\"", folder.display());
    let extra = Extra { node: &node, link: &link, sections: RULE, ..Extra::default() };
    let mut pair = pair.and_up(extra);
    let content = archive(6, 3_000_000);
    let mut took = vec![transfer(&pair, &content)];
    let restarted = |pair: &mut Pair, which: usize, whole: bool| {
        pair.start(which, extra);
        pair.daemon(1 - which).wait_for_session(["site-b", "site-a"][1 - which], PATIENCE).unwrap();
        // What was stored is read beside; what both have is compared with the first blocks after that, a few MiB at a time.
        let mut seed = 7;
        let mut small = || {
            seed += 1;
            transfer(pair, &archive(seed, 50_000))
        };
        let least = if whole { content.len() as u64 } else { 0 };
        eventually("both have read what was stored", || {
            small();
            [(0, "held_bytes_there"), (1, "held_bytes_here")]
                .iter()
                .all(|of| history(pair, of.0, of.1) >= least)
        });
        small();
    };
    for which in [0, 1] {
        pair.stop(which);
        restarted(&mut pair, which, true);
        took.push(transfer(&pair, &content));
    }
    println!("{} bytes took {took:?}: first, after a restart of one end, and of the other", content.len());
    assert!(took[1..].iter().all(|took| took * 20 <= content.len() as u64), "{took:?}\n{}", pair.logs());
    pair.stop(1);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in files {
        let len = std::fs::metadata(&file).unwrap().len();
        std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(len / 2).unwrap();
    }
    restarted(&mut pair, 1, false);
    assert!(transfer(&pair, &content) > 500_000, "half of it is lost");
    let again = transfer(&pair, &content);
    assert!(again * 20 <= content.len() as u64, "{again}\n{}", pair.logs());
    assert_eq!(pair.drops(1, "history-gone"), 0, "{}", pair.logs());
}
