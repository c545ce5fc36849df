//! Small datagrams of text at a rate that the link can hold: how many arrive, and what they take of the link.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use strait_scheduler::Rate;
use strait_testbed::{Namespace, interrupt, listen};

use super::stage::PeerStage;
use crate::error::Error;

/// Bytes of a payload.
pub(super) const LEN: usize = 200;
/// Bytes of its frame without a tunnel: Ethernet, IP and UDP.
const FRAME: f64 = LEN as f64 + 14.0 + 20.0 + 8.0;
/// What is offered, as a share of the link: with the headers of any of the tunnels it still fits.
const SHARE: f64 = 0.6;
/// The most datagrams a second, so that no processor decides.
const MOST: f64 = 2_000.0;
/// How often what is due is sent.
const BEAT: Duration = Duration::from_millis(2);
/// The last one has arrived when none has for so long, besides two round trips;
const TAIL: Duration = Duration::from_millis(400);
/// and it is not waited for longer than this.
const QUIET: Duration = Duration::from_secs(20);
/// How long datagrams go before those that count.
const WARM_UP: Duration = Duration::from_millis(500);

/// What came of a run of datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatagramRun {
    /// Of a hundred that were sent.
    pub(super) delivered: f64,
    /// Bytes of outer IP packets, both ways, for each byte of payload that arrived.
    pub(super) wire: f64,
}

/// Datagrams a second that a link can hold.
pub(super) fn offered(rate: Option<Rate>) -> f64 {
    rate.map_or(MOST, |rate| (rate.bits() as f64 * SHARE / 8.0 / FRAME).min(MOST))
}

/// A first run that does not count, and one of `window` that does.
pub(super) fn run(
    stage: &PeerStage,
    text: &[u8],
    rate: f64,
    window: Duration,
    round_trip: Duration,
) -> Result<DatagramRun, Error> {
    let hosts = &stage.hosts;
    let [client, server] = stage.sockets()?;
    let (stop, arrived) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let hearing = hosts.b.spawn({
        let (stop, arrived) = (Arc::clone(&stop), Arc::clone(&arrived));
        move || {
            listen(&server, 2 * LEN, &stop, |bytes, _| {
                if bytes.len() == LEN {
                    arrived.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            })
        }
    })?;
    let tail = TAIL + round_trip * 2;
    let measure = || -> Result<DatagramRun, Error> {
        send(&client, text, rate, WARM_UP)?;
        quiet(&arrived, tail)?;
        let before = (stage.wire()?, arrived.load(Ordering::Relaxed));
        let sent = send(&client, text, rate, window)?;
        quiet(&arrived, tail)?;
        let came = (arrived.load(Ordering::Relaxed) - before.1) as f64;
        let wire = (stage.wire()? - before.0) as f64;
        Ok(DatagramRun { delivered: came * 100.0 / sent as f64, wire: wire / (came * LEN as f64) })
    };
    let measured = measure();
    stop.store(true, Ordering::Relaxed);
    Namespace::join(hearing, "hear datagrams")?;
    measured
}

/// Waits until nothing has arrived for as long as `tail`: a tunnel over a stream may have a queue of seconds.
fn quiet(arrived: &AtomicU64, tail: Duration) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        let before = arrived.load(Ordering::Relaxed);
        interrupt::pause(tail)?;
        if arrived.load(Ordering::Relaxed) == before || start.elapsed() > QUIET {
            return Ok(());
        }
    }
}

/// Sends pieces of `text` for as long as `window`, and says how many.
fn send(client: &UdpSocket, text: &[u8], rate: f64, window: Duration) -> Result<u64, Error> {
    let mut pieces = text.chunks_exact(LEN).cycle();
    let (start, mut sent) = (Instant::now(), 0_u64);
    while start.elapsed() < window {
        interrupt::check()?;
        while (sent as f64) < start.elapsed().as_secs_f64() * rate {
            // Where there is no room, as on any network, it is lost.
            let _ = client.send(pieces.next().unwrap_or_default());
            sent += 1;
        }
        std::thread::sleep(BEAT);
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use strait_testbed::sandbox;

    use super::super::programs::PeerPrograms;
    use super::super::way::PeerWay;
    use super::*;
    use crate::paths::ThinPath;
    use crate::stage::{BenchEffort, BenchSetup};

    #[test]
    fn what_arrives_over_a_bare_link_takes_its_headers_and_no_more() {
        if !sandbox::allows_hosts() {
            return;
        }
        let nowhere = PathBuf::from("/nonexistent");
        let setting = BenchSetup {
            program: nowhere.clone(),
            cache: nowhere.clone(),
            effort: BenchEffort::Quick,
            part: None,
            tunnels: Vec::new(),
            releases: None,
        };
        let programs = PeerPrograms::without_others(nowhere);
        let path = ThinPath::clean(10.0, 20);
        let stage = PeerStage::set(&setting, &programs, path, PeerWay::Plain, 1).unwrap();
        let text: Vec<u8> = (0..=255).cycle().take(20 * LEN).collect();
        let window = Duration::from_millis(200);
        let found = run(&stage, &text, 100.0, window, Duration::from_millis(20)).unwrap();
        // Besides, addresses may be asked for.
        let bare = (LEN + 28) as f64 / LEN as f64;
        assert!(found.delivered > 0.0 && found.delivered <= 100.0, "{found:?}");
        assert!(found.wire >= bare, "{found:?}");
        assert!(found.delivered < 100.0 || found.wire < bare + 0.1, "{found:?}");
    }

    #[test]
    fn a_thin_link_is_offered_less_than_it_holds_with_any_headers() {
        let rate: Rate = "1.54Mbit".parse().unwrap();
        let offered = offered(Some(rate));
        // The most that a tunnel here adds are 80 bytes.
        assert!(offered * (FRAME + 80.0) * 8.0 < rate.bits() as f64, "{offered}");
        assert!(offered * FRAME * 8.0 > 0.5 * rate.bits() as f64, "{offered}");
        assert_eq!(super::offered(None), MOST);
    }
}
