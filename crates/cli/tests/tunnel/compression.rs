//! What a rule names is compressed, what it does not name is not, and what does not shrink costs nothing.

use std::sync::Arc;

use strait_scheduler::Rate;
use strait_testbed::{Extra, LinkSpec, Transfer, TwoHosts, sample};

use crate::pair::{PATIENCE, Pair, allowed};

const RULE: &str = "[link]\nup = \"3.98Mbit\"\ndown = \"3.98Mbit\"\noverhead = 14\n\
    [[compress]]\nfrom = \"10.77.0.1/32\"\nto = \"10.77.0.2/32\"\ndomain = \"test\"\n";

fn thin() -> LinkSpec {
    LinkSpec::thin(Rate::from_bits(4_000_000).unwrap())
}

/// Bytes that cross the link from site-a to site-b for `content`.
fn wire(pair: &Pair, content: &Arc<[u8]>) -> u64 {
    let before = pair.hosts.link.traffic().unwrap();
    let (from, to) = (&pair.hosts.a, &pair.hosts.b);
    let address = pair.sites[1].inside().into();
    let transfer = Transfer { from, to, address, name: "test", content, patience: PATIENCE };
    transfer.run(&mut |_| {}).unwrap_or_else(|error| panic!("{error}\n{}", pair.logs()));
    pair.hosts.link.traffic().unwrap().since(before).there.bytes
}

/// A pair whose only rule says `codec`.
fn compressing(codec: &str) -> Pair {
    let sections = format!("{RULE}codec = \"{codec}\"\n");
    Pair::up(TwoHosts::direct(thin()).unwrap(), Extra { sections: &sections, ..Extra::default() })
}

#[test]
fn every_codec_makes_text_smaller_and_nothing_larger() {
    if !allowed() {
        return;
    }
    let files = sample::generate(3);
    let text: Arc<[u8]> = files[0].bytes[..300_000].into();
    let random: Arc<[u8]> = files[5].bytes[..150_000].into();
    let plain = wire(&compressing("none"), &random);
    assert!(plain > 150_000, "{plain} bytes on the wire for 150,000 at random");
    // How much smaller each makes it at least: LZ4 has no entropy coding.
    for (codec, percent) in [("deflate-6", 35), ("lz4", 50), ("zstd-1", 35), ("zstd-3", 35), ("zstd-9", 35)] {
        let pair = compressing(codec);
        let (text_wire, random_wire) = (wire(&pair, &text), wire(&pair, &random));
        assert!(text_wire < 3_000 * percent, "{codec}: {text_wire} bytes on the wire for 300,000 of text");
        assert!(random_wire < plain * 103 / 100, "{codec}: {random_wire} bytes, without {plain}");
        let report = pair.daemon(0).show().unwrap();
        let rule = &report["rules"][0];
        assert!(rule["input_bytes"].as_u64() > rule["output_bytes"].as_u64(), "{codec}: {rule:#}");
        assert_eq!(rule["codec"], codec, "{rule:#}");
    }
}

#[test]
fn without_a_rule_nothing_is_compressed() {
    if !allowed() {
        return;
    }
    let sections = RULE.replace("10.77.0.2/32", "10.77.0.9/32") + "codec = \"zstd-3\"\n";
    let pair = Pair::up(TwoHosts::direct(thin()).unwrap(), Extra { sections: &sections, ..Extra::default() });
    let zeros: Arc<[u8]> = vec![0; 200_000].into();
    let crossed = wire(&pair, &zeros);
    assert!(crossed > 200_000, "{crossed} bytes on the wire for 200,000 zeros");
}

#[test]
fn a_reload_pads_blocks_and_show_says_what_lengths_tell() {
    if !allowed() {
        return;
    }
    let pair = compressing("zstd-3");
    let text: Arc<[u8]> = sample::generate(3)[0].bytes[..300_000].into();
    // A block that does not fit half of its data pauses `constant`, and log lines in a short block may not fit.
    let readings = (0..7_000).map(|at| format!("pump {at:06}: pressure 3.20 bar, valve is open\n"));
    let readings: Arc<[u8]> = readings.collect::<String>().into_bytes()[..300_000].into();
    let mut before = 0;
    for (padding, percent) in [("none", 35), ("padme", 40), ("buckets", 60), ("constant", 62)] {
        let text = if padding == "constant" { &readings } else { &text };
        let sections = format!("{RULE}codec = \"zstd-3\"\npadding = \"{padding}\"\nmix = \"flow\"\n");
        let extra = Extra { sections: &sections, ..Extra::default() };
        pair.sites[0].configure("strait", &[&pair.sites[1]], extra).unwrap();
        pair.daemon(0).reload().unwrap();
        let crossed = wire(&pair, text);
        assert!(crossed > before * 95 / 100 && crossed < 3_000 * percent, "{padding}: {crossed} bytes");
        before = crossed;
        let report = pair.daemon(0).show().unwrap();
        let leak = &report["rules"][0]["leak"];
        let [same, other] =
            ["same_flow", "other_flow"].map(|it| leak[it]["bound_bits_per_block"].as_f64().unwrap());
        assert_eq!(
            (leak["padding"].as_str(), leak["mix"].as_str(), other),
            (Some(padding), Some("flow"), 0.0)
        );
        assert!(if padding == "constant" { same == 1.0 } else { same > 1.0 }, "{leak:#}");
        assert_eq!(leak["pauses"], 0, "{leak:#}");
    }
}
