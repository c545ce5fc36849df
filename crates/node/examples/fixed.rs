//! Throw-away.
#![allow(missing_docs, clippy::all, clippy::unwrap_used)]
use std::net::SocketAddr;
use std::sync::Arc;
use strait_compress::{Backoff, CodecSet};
use strait_crypto::{KeyMaterial, Suite};
use strait_ipsec::*;
use strait_node::{channels, clock::Clock, inward::Inward, outward::Outward, tun::Tun, udp::*};
use strait_wire::Spi;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    // name listen peer peer_inner_cidr out_spi in_spi [rate] [codec]
    let tun = Arc::new(Tun::open(&a[1]).unwrap());
    let socket = Arc::new(UdpSocket::bind(Listen::Address(a[2].parse().unwrap()), None).unwrap());
    let peer: SocketAddr = a[3].parse().unwrap();
    let clock = Clock::start();
    let rate: Option<strait_scheduler::Rate> = a.get(7).and_then(|r| r.parse().ok());
    let method: Option<strait_compress::Method> = a.get(8).and_then(|r| r.parse().ok());
    let counters = Arc::new(Counters::default());
    let pc = Arc::new(PeerCounters::default());
    let id = PeerId(1);
    let mut policies = Policies::new();
    policies.allow(a[4].parse().unwrap(), id);
    let policies = Arc::new(policies);
    let spec = |spi: &str| SaSpec {
        spi: Spi(u32::from_str_radix(spi, 16).unwrap()),
        peer: id,
        key: KeyMaterial::new(Suite::Aes128Gcm, &[7; 20]).unwrap(),
        iv: IvMode::Implicit,
        payloads: Payloads::Strait { codecs: CodecSet::ALL, block_cap: 65536 },
    };
    let outbound = Outbound::new(
        outbound::Settings { up: rate, overhead: 14, link_mtu: 1500 },
        Box::new(Backoff::new(1)),
        counters.clone(),
        clock.now(),
    );
    let udp_offload = inbound::UdpOffload::Supported;
    let inbound = Inbound::new(
        inbound::Settings { forwarding: inbound::Forwarding::None, udp_offload },
        counters.clone(),
    );
    let (oo, oq) = channels::orders().unwrap();
    let (io_, iq) = channels::orders().unwrap();
    let (cs, mut cr) = channels::to_control();
    let o = Outward {
        tun: tun.clone(),
        socket: socket.clone(),
        outbound,
        orders: oq,
        control: cs.clone(),
        clock,
    }
    .spawn()
    .unwrap();
    let _i =
        Inward { socket, tun, inbound, orders: iq, outward: oo.clone(), control: cs, clock }.spawn().unwrap();
    oo.send(outbound::Order::AddPeer(Box::new(PeerSpec {
        id,
        allowed: vec![a[4].parse().unwrap()],
        endpoint: Some(peer),
        mtu: None,
        counters: pc.clone(),
    })))
    .unwrap();
    io_.send(inbound::Order::AddPeer(id, pc.clone())).unwrap();
    oo.send(outbound::Order::Policies(policies.clone())).unwrap();
    io_.send(inbound::Order::Policies(policies)).unwrap();
    oo.send(outbound::Order::Rate(id, rate)).unwrap();
    if let Some(method) = method {
        let rule = Rule {
            from: "0.0.0.0/0".parse().unwrap(),
            to: "0.0.0.0/0".parse().unwrap(),
            protocol: None,
            ports: vec![],
            domain: Domain(0),
            method,
        };
        oo.send(outbound::Order::Rules(Arc::new(RuleSet::new(vec![rule])))).unwrap();
    }
    oo.send(outbound::Order::Install(Box::new(OutboundSa::new(&spec(&a[5]))))).unwrap();
    io_.send(inbound::Order::Install(Box::new(InboundSa::new(&spec(&a[6]))))).unwrap();
    println!("up");
    std::thread::spawn(move || {
        while let Some(m) = cr.blocking_recv() {
            println!("{m:?}");
        }
    });
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    println!("drops {:?}", counters.drops.iter().filter(|d| d.1 > 0).collect::<Vec<_>>());
    println!("{pc:?} {:?}", counters.codecs);
    drop(oo);
    drop(io_);
    let _ = o;
    std::process::exit(0);
}
