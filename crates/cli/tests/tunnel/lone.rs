//! Packets that leave alone, as a decoder sees them that was written from the wire format apart from the program: it opens a capture
//! of the link, and what it makes of it is what came out of the tunnel.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use strait_testbed::outside::has_scapy;
use strait_testbed::{Extra, LinkSpec, TwoHosts, paced};

use crate::capture::{Capture, packets};
use crate::outside::{Opened, open};
use crate::pair::{Family, PATIENCE, Pair, allowed, settled};

/// Polls of each family, with their answers.
const POLLS: usize = 60;
/// Requests of each TCP connection, with their answers.
const REQUESTS: usize = 60;

const RULES: &str = "[[compress]]\nfrom = \"10.77.0.0/24\"\nto = \"10.77.0.0/24\"\ndomain = \"test\"\ncodec = \"deflate-6\"\n\
    [[compress]]\nfrom = \"fd77::/64\"\nto = \"fd77::/64\"\ndomain = \"test\"\ncodec = \"deflate-6\"\n";

/// A reading of an instrument, which is much like the one before.
fn reading(word: &str, round: usize) -> String {
    let values = [round * 37 % 101, round * 11 % 13, round];
    format!("{word} unit=7 temperature={} pressure=10{:02} count={:04}", values[0], values[1], values[2])
}

/// Asks for readings over UDP.
fn poll(pair: &Pair, family: Family) {
    let (a, b) = (pair.socket(0, family), pair.socket(1, family));
    let mut buffer = [0; 200];
    for round in 0..POLLS {
        for (from, to, word) in [(&a, &b, "read"), (&b, &a, "value")] {
            let message = reading(word, round);
            from.send_to(message.as_bytes(), to.local_addr().unwrap()).unwrap();
            let len = to.recv(&mut buffer).unwrap_or_else(|error| panic!("{error}\n{}", pair.logs()));
            assert_eq!(&buffer[..len], message.as_bytes());
        }
    }
}

/// Asks for readings over one TCP connection.
fn exchange(pair: &Pair, family: Family) {
    let address = SocketAddr::new(pair.inside(1, family), 0);
    let listener = pair.hosts.b.run("listen", || TcpListener::bind(address)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        serve(&mut stream);
    });
    let mut stream = pair.hosts.a.run("connect", || TcpStream::connect(address)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for round in 0..REQUESTS {
        stream.write_all(reading("get", round).as_bytes()).unwrap();
        let answer = reading("got", round);
        let mut buffer = vec![0; answer.len()];
        stream.read_exact(&mut buffer).unwrap_or_else(|error| panic!("{error}\n{}", pair.logs()));
        assert_eq!(buffer, answer.as_bytes());
    }
    drop(stream);
    server.join().unwrap();
}

fn serve(stream: &mut TcpStream) {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for round in 0..REQUESTS {
        let request = reading("get", round);
        let mut buffer = vec![0; request.len()];
        stream.read_exact(&mut buffer).unwrap();
        assert_eq!(buffer, request.as_bytes());
        stream.write_all(reading("got", round).as_bytes()).unwrap();
    }
}

/// A pair on a thin link, which exports its keys, and a capture of everything on the link.
fn watched(sections: &str) -> (Pair, Capture) {
    let rate = "2Mbit".parse().unwrap();
    let pair = Pair::idle(TwoHosts::direct(LinkSpec::thin(rate)).unwrap());
    let capture = Capture::start(&pair.hosts, &pair.dir.path().join("link.pcap"));
    let node = "danger_export_keys = \"esp-keys\"";
    let link = paced(rate, rate);
    (pair.and_up(Extra { node, link: &link, sections, ..Extra::default() }), capture)
}

/// Has packets exchanged, and gives what the decoder makes of the link, and the packets that came out at each site.
fn watch(sections: &str) -> (Vec<Opened>, [Vec<Vec<u8>>; 2]) {
    let (pair, link) = watched(sections);
    let insides = [0, 1].map(|which| {
        Capture::delivered(&pair, which, &pair.dir.path().join(format!("delivered-{which}.pcap")))
    });
    for family in [Family::V4, Family::V6] {
        poll(&pair, family);
        exchange(&pair, family);
    }
    // The last of a connection is on its way when its ends have closed it.
    let counts =
        || [0, 1].map(|which| ["sent", "received"].map(|way| pair.peer(which)[way]["packets"].as_u64()));
    let [[sent, received], [sent_back, received_back]] = settled("nothing is in flight", counts);
    assert_eq!((sent, sent_back), (received_back, received), "{}", pair.logs());
    let delivered = insides.map(|capture| {
        let file = std::fs::read(capture.stop()).unwrap();
        packets(&file).map(<[u8]>::to_vec).collect()
    });
    for which in [0, 1] {
        assert_eq!(pair.drops(which, "history-gone"), 0, "{}", pair.logs());
    }
    (open(&pair, &link.stop()), delivered)
}

/// How many lone units the decoder saw with something about them.
fn lone(opened: &[Opened], which: impl Fn(&Opened) -> bool) -> usize {
    opened.iter().filter(|it| it.kind == "lone" && which(it)).count()
}

#[test]
fn another_decoder_makes_the_same_packets_of_lone_units() {
    if !allowed() || !has_scapy() {
        return;
    }
    for (sections, compresses) in [("", false), (RULES, true)] {
        let (opened, delivered) = watch(sections);
        for (direction, delivered) in ["in", "out"].into_iter().zip(&delivered) {
            let there = opened.iter().filter(|it| it.direction == direction);
            let packets: Vec<&Vec<u8>> = there.flat_map(|it| &it.packets).collect();
            let differs = packets.iter().zip(delivered).position(|(decoded, came)| *decoded != came);
            assert_eq!(differs, None, "{direction}: of {} and {}", packets.len(), delivered.len());
            assert_eq!(packets.len(), delivered.len(), "{direction}");
        }
        let all = delivered.iter().map(Vec::len).sum::<usize>();
        let units = lone(&opened, |_| true);
        let against = lone(&opened, |it| it.line["against"].as_u64() != Some(0));
        let coded = lone(&opened, |it| it.line["payload"] != "raw");
        println!("of {all} packets {units} lone, {against} against others, {coded} with coded payloads");
        assert!(units * 5 > 2 * all, "{units} lone units of {all} packets");
        assert!(against * 2 > units, "{against} of {units} refer to others");
        assert!(
            if compresses { coded * 4 > units } else { coded == 0 },
            "{coded} of {units} payloads are coded"
        );
    }
}
