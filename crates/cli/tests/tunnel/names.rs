//! A peer that is known by name: found at the start, and found again where the name leads when it is silent.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use strait_testbed::{Extra, InterfaceState, Namespace, Site, TwoHosts, Workdir, program_with_mounts};

use crate::pair::{Family, PATIENCE, Pair, allowed, eventually, fast, program};

/// A program that runs the real one with a file of its own in place of `/etc/NAME`.
fn with_own(dir: &Workdir, name: &str) -> (PathBuf, PathBuf) {
    let (file, script) = (dir.path().join(name), dir.path().join("strait"));
    let mount = format!("mount --bind {} /etc/{name}", file.display());
    program_with_mounts(program(), &script, &mount).unwrap();
    (file, script)
}

/// The configuration of the caller, who knows the other by name.
fn by_name(pair: &Pair) -> PathBuf {
    let (site, peer) = (&pair.sites[0], &pair.sites[1]);
    let text = site.configuration(&[peer], Extra::default());
    write(site, &text.replace(&peer.outside.ip().to_string(), "site-b.example"))
}

/// The configuration of the other, who can only be called.
fn without_endpoint(pair: &Pair) -> PathBuf {
    let (site, peer) = (&pair.sites[1], &pair.sites[0]);
    let text = site.configuration(&[peer], Extra::default());
    write(site, &text.replace(&format!("endpoint = \"{}\"\n", peer.outside), ""))
}

fn write(site: &Site, text: &str) -> PathBuf {
    let path = site.folder().join("strait.toml");
    fs::write(&path, text).unwrap();
    path
}

fn point(hosts: &Path, address: &str) {
    fs::write(hosts, format!("127.0.0.1 localhost\n{address} site-b.example\n")).unwrap();
}

#[test]
fn a_name_is_looked_up_again_when_its_owner_is_silent() {
    if !allowed() {
        return;
    }
    let dir = Workdir::create().unwrap();
    let (hosts_file, script) = with_own(&dir, "hosts");
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let elsewhere = dir.path().join("sites");
    fs::create_dir(&elsewhere).unwrap();
    let old = pair.hosts.address_of_b().0;
    point(&hosts_file, &old.to_string());
    pair.sites = Site::pair(&script, &pair.hosts, &elsewhere).unwrap();
    let other = pair.sites[1].start(&without_endpoint(&pair), "run").unwrap();
    pair.daemons[1] = Some(other);
    pair.daemons[0] = Some(pair.sites[0].start(&by_name(&pair), "run").unwrap());
    pair.wait_for_session();
    pair.tcp(1, Family::V4, 50_000);

    // The other moves while it is not running, so it cannot tell; only the name can.
    pair.kill(1);
    let end = &pair.hosts.link.b;
    end.remove_address(old, 24).unwrap();
    end.add_address("198.18.0.60".parse().unwrap(), 24).unwrap();
    point(&hosts_file, "198.18.0.60");
    pair.daemons[1] = Some(pair.sites[1].start(&without_endpoint(&pair), "run").unwrap());
    pair.tcp(1, Family::V4, 50_000);
    assert_eq!(pair.peer(0)["endpoint"], "198.18.0.60:51820");
}

/// A DNS server that says of every name that it has these addresses, or nothing.
struct DnsServer {
    answer: Arc<Mutex<Vec<IpAddr>>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl DnsServer {
    /// At `address` of `host`.
    fn start(host: &Namespace, address: Ipv4Addr) -> DnsServer {
        let (answer, ended) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (says, end) = (Arc::clone(&answer), Arc::clone(&ended));
        let thread = host.spawn(move || {
            let socket = UdpSocket::bind((address, 53))?;
            socket.set_read_timeout(Some(Duration::from_millis(100)))?;
            let mut buffer = [0; 512];
            while !end.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                let said = says.lock().unwrap().clone();
                if let Some(reply) = reply(&buffer[..length], &said).filter(|_| !said.is_empty()) {
                    socket.send_to(&reply, from)?;
                }
            }
            Ok(())
        });
        DnsServer { answer, ended, thread: Some(thread.unwrap()) }
    }

    fn say(&self, addresses: &[IpAddr]) {
        *self.answer.lock().unwrap() = addresses.to_vec();
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The answer to a query for addresses (RFC 1035 section 4.1, RFC 3596): A or AAAA records, as the question is.
fn reply(query: &[u8], addresses: &[IpAddr]) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let name = query.get(HEADER..)?.iter().position(|label| *label == 0)?;
    let question = query.get(HEADER..HEADER + name + 5)?;
    let kind = question.get(name + 1..name + 3)?;
    let records: Vec<_> = addresses
        .iter()
        .map(|address| match address {
            IpAddr::V4(v4) => ([0, 1], v4.octets().to_vec()),
            IpAddr::V6(v6) => ([0, 28], v6.octets().to_vec()),
        })
        .filter(|(its, _)| its == kind)
        .collect();
    let mut reply = query.get(..2)?.to_vec();
    // An answer, to a query with recursion, which is there; one question.
    reply.extend([0x81, 0x80, 0, 1, 0, u8::try_from(records.len()).ok()?, 0, 0, 0, 0]);
    reply.extend(question);
    for (kind, octets) in records {
        // The name of the question, the type, class IN, for no time at all.
        reply.extend([0xc0, 12, kind[0], kind[1], 0, 1, 0, 0, 0, 0, 0, u8::try_from(octets.len()).ok()?]);
        reply.extend(octets);
    }
    Some(reply)
}

/// Two sites, the first of which asks the DNS server for the second.
fn asking() -> (Pair, DnsServer, Workdir) {
    let dir = Workdir::create().unwrap();
    let (file, script) = with_own(&dir, "resolv.conf");
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let elsewhere = dir.path().join("sites");
    fs::create_dir(&elsewhere).unwrap();
    let address = pair.hosts.link.a.v4;
    // The system's resolver has far more patience than the daemon.
    fs::write(&file, format!("nameserver {address}\noptions timeout:30 attempts:5\n")).unwrap();
    pair.sites = Site::pair(&script, &pair.hosts, &elsewhere).unwrap();
    let server = DnsServer::start(&pair.hosts.a, address);
    (pair, server, dir)
}

#[test]
fn a_dns_server_that_hangs_holds_nothing_up() {
    if !allowed() {
        return;
    }
    let (mut pair, _server, _dir) = asking();
    pair.daemons[0] = Some(pair.sites[0].start(&by_name(&pair), "run").unwrap());
    for said in ["the resolver did not answer in 9 s", "the resolver has not answered the last query yet"] {
        eventually(said, || pair.logs().contains(said));
    }
    // The thread that asks still waits; the daemon does not.
    let daemon = pair.daemons[0].as_mut().unwrap();
    daemon.signal(15).unwrap();
    eventually("the daemon ends", || pair.daemons[0].as_mut().unwrap().ended().unwrap().is_some());
}

#[test]
fn a_dns_server_that_lies_is_refused_with_words() {
    if !allowed() {
        return;
    }
    let (mut pair, server, _dir) = asking();
    server.say(&[Ipv4Addr::LOCALHOST.into()]);
    pair.daemons[1] = Some(pair.sites[1].start(&without_endpoint(&pair), "run").unwrap());
    pair.daemons[0] = Some(pair.sites[0].start(&by_name(&pair), "run").unwrap());
    for (lie, said) in [
        (Ipv4Addr::LOCALHOST, "a loopback address"),
        (pair.sites[0].inside(), "an address inside the tunnel"),
        (pair.hosts.link.a.v4, "an address of this host"),
    ] {
        server.say(&[lie.into()]);
        eventually(said, || pair.logs().contains(&format!("the resolver answered {lie}, {said}")));
    }
    server.say(&[pair.hosts.link.b.v4.into()]);
    pair.wait_for_session();
    // What it says now changes nothing: it is not asked while the peer is heard.
    server.say(&[Ipv4Addr::new(203, 0, 113, 66).into()]);
    pair.tcp(1, Family::V4, 50_000);
}

/// Has the first site look up a name with both addresses, only the first of which the second site has, and join it there; says
/// whether it tried the other one.
fn joins_at(pair: &mut Pair, server: &DnsServer, [living, dead]: [IpAddr; 2]) -> bool {
    server.say(&[dead, living]);
    pair.daemons[0] = Some(pair.sites[0].start(&by_name(pair), "run").unwrap());
    pair.daemon(0).wait_for_session("site-b", PATIENCE).unwrap();
    pair.tcp(1, Family::V4, 50_000);
    let at = SocketAddr::new(living, 51_820);
    assert_eq!(pair.peer(0)["endpoint"], at.to_string());
    let tried = pair.logs().contains(&format!("handshake with {} started", SocketAddr::new(dead, 51_820)));
    pair.kill(0);
    tried
}

#[test]
fn a_name_with_a_dead_address_leads_to_the_living_one() {
    if !allowed() {
        return;
    }
    let (mut pair, server, _dir) = asking();
    pair.daemons[1] = Some(pair.sites[1].start(&without_endpoint(&pair), "run").unwrap());
    let (old, v6) = pair.hosts.address_of_b();
    let new: IpAddr = "198.18.0.60".parse().unwrap();
    let IpAddr::V6(octets) = v6 else { panic!("{v6}") };
    let dead_v6 = IpAddr::from((u128::from(octets) ^ 0x6600).to_be_bytes());
    // The system's resolver puts a family, and one of two addresses, first: that one is dead once of two times.
    let families = [[old, dead_v6], [v6, new]].map(|addresses| joins_at(&mut pair, &server, addresses));
    assert!(families.contains(&true), "no dead address of another family was tried");
    let stays = joins_at(&mut pair, &server, [old, new]);
    let end = &pair.hosts.link.b;
    end.remove_address(old, 24).unwrap();
    end.add_address(new, 24).unwrap();
    let moved = joins_at(&mut pair, &server, [new, old]);
    assert!(stays || moved, "no dead address of the same family was tried");
}

/// Waits until the first site has failed a few times, so that it would wait long before the next attempt.
fn tire(pair: &Pair) {
    eventually("attempts fail", || pair.peer(0)["handshake_failures"].as_u64() >= Some(TIRED));
}

/// Failures in a row after which the next attempt waits for 6 s at least, and that take some seconds to come together.
const TIRED: u64 = 4;

#[test]
fn a_node_that_was_there_before_its_network_is_up_with_the_last_of_it() {
    if !allowed() {
        return;
    }
    let dir = Workdir::create().unwrap();
    let (resolver, script) = with_own(&dir, "resolv.conf");
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let elsewhere = dir.path().join("sites");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(&resolver, "").unwrap();
    pair.sites = Site::pair(&script, &pair.hosts, &elsewhere).unwrap();
    let (a, b) = (pair.hosts.link.a.clone(), pair.hosts.link.b.clone());
    let far = Ipv4Addr::new(203, 0, 113, 53);
    b.add_address(far.into(), 32).unwrap();
    let server = DnsServer::start(&pair.hosts.b, far);
    server.say(&[b.v4.into()]);
    a.remove_address(a.v4.into(), 24).unwrap();
    a.set_state(InterfaceState::Down).unwrap();
    pair.daemons[1] = Some(pair.sites[1].start(&without_endpoint(&pair), "run").unwrap());
    pair.daemons[0] = Some(pair.sites[0].start(&by_name(&pair), "run").unwrap());
    let arrivals: [(&str, &dyn Fn()); 3] = [
        ("link", &|| a.set_state(InterfaceState::Up).unwrap()),
        ("address", &|| a.add_address(a.v4.into(), 24).unwrap()),
        ("route", &|| pair.hosts.a.add_route(far.into(), 32, b.v4.into()).unwrap()),
    ];
    for (what, arrives) in arrivals {
        tire(&pair);
        arrives();
        // Failures only grow in number but for a session, and for what happens here.
        eventually(what, || pair.peer(0)["handshake_failures"].as_u64() < Some(TIRED));
    }
    tire(&pair);
    let log = pair.logs();
    let said = log.matches("cannot look up").count();
    assert!((1..=4).contains(&said), "{said} lines, as there are that many reasons at most:\n{log}");
    assert!(!log.contains("handshake failed"), "{log}");
    fs::write(&resolver, format!("nameserver {far}\n")).unwrap();
    pair.daemon(0).wait_for_session("site-b", PATIENCE).unwrap();
    pair.tcp(1, Family::V4, 50_000);
}
