//! A keystroke passes a bulk transfer, and keys are replaced meanwhile: all datagrams pass the one pacer.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use strait_clock::Random;
use strait_testbed::{Error, Extra, LinkSpec, Stream, TwoHosts, paced};

use crate::pair::{Family, Pair, allowed};

/// A rate at which the link's own queue of 300 ms shows, and keys of a mebibyte last four seconds.
const LINK: u64 = 2_000_000;
/// How long both go on: two replacements of keys and more.
const SPAN: Duration = Duration::from_secs(12);
/// Until the transfer has filled whatever queue there is.
const WARM_UP: Duration = Duration::from_secs(3);
/// Between two keystrokes.
const GAP: Duration = Duration::from_millis(50);

/// The sorted round-trip times of many small packets beside a bulk transfer, and how many
/// associations were used.
fn beside_bulk(extra: Extra<'_>) -> (Vec<Duration>, usize) {
    let spec = LinkSpec::thin(strait_scheduler::Rate::from_bits(LINK).unwrap());
    let pair = Pair::up(TwoHosts::direct(spec).unwrap(), extra);
    let mut random = Random::new(1);
    let content: Arc<[u8]> = (0..1 << 17).flat_map(|_| random.next_u64().to_le_bytes()).collect();
    let stream = Stream {
        from: &pair.hosts.a,
        to: &pair.hosts.b,
        address: SocketAddr::new(pair.inside(1, Family::V4), 0),
        content: &content,
        warm_up: WARM_UP,
        window: SPAN,
    };
    let (arrived, seen) = thread::scope(|scope| {
        let streaming = scope.spawn(|| stream.run(|| Ok::<_, Error>(())));
        thread::sleep(WARM_UP);
        let seen = keystrokes(&pair);
        (streaming.join().unwrap(), seen)
    });
    assert!(arrived.unwrap().bytes > 0);
    seen
}

fn keystrokes(pair: &Pair) -> (Vec<Duration>, usize) {
    let (near, far) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
    near.connect(far.local_addr().unwrap()).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let answering = thread::spawn({
        let done = Arc::clone(&done);
        move || {
            let mut buffer = [0; 100];
            while !done.load(Ordering::Relaxed) {
                if let Ok((len, from)) = far.recv_from(&mut buffer) {
                    far.send_to(&buffer[..len], from).unwrap();
                }
            }
        }
    });
    let (mut times, mut associations, start) = (Vec::new(), BTreeSet::new(), Instant::now());
    for number in 0_u32.. {
        if start.elapsed() > SPAN {
            break;
        }
        let sent = Instant::now();
        near.send(&number.to_be_bytes()).unwrap();
        let mut answer = [0; 4];
        while answer != number.to_be_bytes() {
            near.recv(&mut answer)
                .unwrap_or_else(|error| panic!("keystroke {number}: {error}\n{}", pair.logs()));
        }
        times.push(sent.elapsed());
        if number % 16 == 0 {
            associations.insert(pair.peer(0)["association"]["outbound_spi"].to_string());
        }
        thread::sleep(GAP);
    }
    done.store(true, Ordering::Relaxed);
    // One more, so that it wakes.
    near.send(&[0; 4]).unwrap();
    answering.join().unwrap();
    times.sort();
    (times, associations.len())
}

#[test]
fn a_keystroke_passes_a_bulk_transfer_while_keys_are_replaced() {
    if !allowed() {
        return;
    }
    let rate = strait_scheduler::Rate::from_bits(LINK).unwrap();
    let (fifo, _) = beside_bulk(Extra::default());
    let sections = "[session]\nbytes = \"1MiB\"\n";
    let (ours, associations) = beside_bulk(Extra { link: &paced(rate, rate), sections, ..Extra::default() });
    let slowest = |times: &[Duration]| times[times.len() * 95 / 100];
    let [waits, median, slow] = [slowest(&fifo), ours[ours.len() / 2], slowest(&ours)];
    println!("median {median:?}, 95 of 100 within {slow:?}, in the link's own queue within {waits:?}");
    assert!(associations >= 3, "only {associations} associations were used");
    assert!(median * 4 < waits, "{median:?} beside {waits:?} in a queue of the link's own");
    assert!(slow < waits, "{slow:?} beside {waits:?}");
}
