//! A site whose address changes stays reachable as soon as it has spoken.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use strait_testbed::{Extra, Namespace, PORT, TwoHosts};

use crate::pair::{Family, Pair, allowed, eventually, fast};

#[test]
fn a_site_moves_to_another_address() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    pair.tcp(1, Family::V4, 50_000);
    let (old, new): (IpAddr, IpAddr) = (pair.hosts.address_of_a().0, "198.18.0.50".parse().unwrap());
    let end = &pair.hosts.link.a;
    end.remove_address(old, 24).unwrap();
    end.add_address(new, 24).unwrap();
    // Site-a speaks first: site-b has no other way to know.
    pair.tcp(1, Family::V4, 100_000);
    eventually("site-b sees site-a at its new address", || {
        pair.peer(1)["endpoint"].as_str().is_some_and(|endpoint| endpoint.starts_with("198.18.0.50:"))
    });
    pair.tcp(0, Family::V6, 100_000);
}

/// What an address translator does to one node behind it: its datagrams come from a port of the translator, and
/// from another after the translator forgot.
struct Translator {
    forgetting: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Translator {
    /// On `host`; what comes to the daemons' port goes to `far`.
    fn start(host: &Namespace, far: SocketAddr) -> Translator {
        let (forgetting, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (asked, end) = (Arc::clone(&forgetting), Arc::clone(&ended));
        let thread = host.spawn(move || {
            let near = UdpSocket::bind(("0.0.0.0", PORT))?;
            near.set_nonblocking(true)?;
            let (mut port, mut forgotten, mut node) = (outer_port()?, 0, None);
            while !end.load(Ordering::Relaxed) {
                if asked.load(Ordering::Relaxed) != forgotten {
                    (port, forgotten) = (outer_port()?, forgotten + 1);
                }
                pass(&near, &mut node, &port, far);
                std::thread::sleep(Duration::from_micros(200));
            }
            Ok(())
        });
        Translator { forgetting, ended, thread: Some(thread.unwrap()) }
    }

    fn forget(&self) {
        self.forgetting.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Translator {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn outer_port() -> io::Result<UdpSocket> {
    let port = UdpSocket::bind("0.0.0.0:0")?;
    port.set_nonblocking(true)?;
    Ok(port)
}

/// Passes on what waits, both ways.
fn pass(near: &UdpSocket, node: &mut Option<SocketAddr>, port: &UdpSocket, far: SocketAddr) {
    let mut buffer = [0; 2000];
    while let Ok((length, from)) = near.recv_from(&mut buffer) {
        *node = Some(from);
        let _ = port.send_to(&buffer[..length], far);
    }
    while let Ok(length) = port.recv(&mut buffer) {
        if let Some(node) = *node {
            let _ = near.send_to(&buffer[..length], node);
        }
    }
}

/// Two sites, a translator before the first; site-a has these lines of its peer.
fn translated(more: &str) -> (Pair, Translator) {
    let hosts = TwoHosts::routed(fast(), fast()).unwrap();
    let router = hosts.router.as_ref().unwrap().host.clone();
    let outside = SocketAddr::new(hosts.link.b.v4.into(), PORT);
    let mut pair = Pair::idle(hosts);
    let translator = Translator::start(&router, pair.sites[1].outside);
    // Site-a sees site-b at the translator; site-b can only answer.
    let [a, b] = pair.sites.clone();
    let extra = Extra { peer: more, ..Extra::default() };
    let near = a.configuration(&[&b], extra).replace(&b.outside.to_string(), &outside.to_string());
    let far =
        b.configuration(&[&a], Extra::default()).replace(&format!("endpoint = \"{}\"\n", a.outside), "");
    for (which, (site, text)) in [(b, far), (a, near)].into_iter().enumerate() {
        let config = site.folder().join("strait.toml");
        std::fs::write(&config, text).unwrap();
        pair.daemons[1 - which] = Some(site.start(&config, "run").unwrap());
    }
    pair.wait_for_session();
    (pair, translator)
}

#[test]
fn a_translator_that_forgets_its_ports() {
    if !allowed() {
        return;
    }
    let (pair, translator) = translated("");
    pair.tcp(1, Family::V4, 50_000);
    for _ in 0..3 {
        let before = pair.peer(1)["endpoint"].clone();
        translator.forget();
        // The first datagram through the new port moves site-a, at both ends without a handshake.
        pair.tcp(1, Family::V4, 50_000);
        assert_ne!(pair.peer(1)["endpoint"], before);
        pair.tcp(0, Family::V6, 50_000);
    }
}

#[test]
fn a_site_behind_a_translator_that_forgets_is_reached_though_it_says_nothing_but_keepalives() {
    if !allowed() {
        return;
    }
    let (pair, translator) = translated("keepalive = \"1s\"\n");
    for _ in 0..3 {
        let before = pair.peer(1)["endpoint"].clone();
        translator.forget();
        eventually("site-b sees site-a at its new port", || pair.peer(1)["endpoint"] != before);
        pair.tcp(0, Family::V4, 50_000);
    }
}
