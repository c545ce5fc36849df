use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use strait_clock::{Stopwatch, Time};
use strait_compress::{Calibration, CodecSet, Gauge, LiveChooser};
use strait_crypto::{KeyMaterial, Suite};
use strait_ipsec::inbound::{ExpandTools, InboundSettings, UdpOffload};
use strait_ipsec::outbound::{Outbound, Outlet, Train, TransmitRefused};
use strait_ipsec::{
    Counters, Domain, Forwarding, InboundSa, IvMode, LeakPolicy, OutboundSa, Payloads, PeerCounters, PeerId,
    PeerSpec, Policies, Rule, RuleSet, SaSpec,
};
use strait_wire::Spi;

use super::*;
use crate::channels::{ControlReceiver, orders, to_control};
use crate::udp::Listen;

const PEER: PeerId = PeerId(1);
/// Blocks of one train.
const TRAIN: u32 = 20;
const TRAINS: u32 = 20;
/// How long a packet may take that is on its way.
const PATIENCE: Duration = Duration::from_secs(5);

fn spec() -> SaSpec {
    let key = KeyMaterial::new(Suite::Aes128Gcm, &[9; 20]).unwrap();
    let payloads = Payloads::Strait { codecs: CodecSet::ALL, block_cap: 65_536 };
    SaSpec::session(PEER, Spi(0x0400_0001), key, IvMode::Implicit, payloads)
}

fn policies(peer: &str) -> Arc<Policies> {
    let mut policies = Policies::exit();
    policies.allow(peer.parse().unwrap(), PEER);
    Arc::new(policies)
}

/// A UDP packet from 10.77.0.2 to 10.77.0.1 with `number` at its end; all are equally compressible.
fn packet(number: u32) -> Vec<u8> {
    let mut packet = vec![b'a'; 1_200];
    packet[..20]
        .copy_from_slice(&[0x45, 0, 4, 0xb0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1]);
    let sum = ip::v4_header_checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[20..28].copy_from_slice(&[0, 7, 0, 7, 4, 0x9c, 0, 0]);
    packet[1_196..].copy_from_slice(&number.to_be_bytes());
    packet
}

/// The datagrams of a peer.
#[derive(Default)]
struct Sealed(Vec<Vec<u8>>);

impl Outlet for Sealed {
    fn transmit(&mut self, train: Train<'_>) -> Result<(), TransmitRefused> {
        self.0.extend(train.datagrams().map(<[u8]>::to_vec));
        Ok(())
    }

    fn to_host(&mut self, _: &[u8]) {}

    fn notice(&mut self, _: Notice) {}
}

/// What a peer sends to `endpoint`: so many packets, each compressed as a block of its own.
fn blocks(count: u32, endpoint: SocketAddr) -> Vec<Vec<u8>> {
    let settings =
        outbound::OutboundSettings { up: None, overhead: 0, link_mtu: 1_500, forwarding: Forwarding::None };
    let chooser = Box::new(LiveChooser::new(Calibration::assumed(), 1));
    let mut sender = Outbound::new(settings, chooser, Stopwatch::NONE, Arc::default(), Time::ZERO);
    let all = "10.77.0.0/24".parse().unwrap();
    let (ports, allowed) = (Vec::new(), "lz4".parse().unwrap());
    let rule = Rule {
        history: Some(strait_ipsec::HistoryScope::Flow),
        cache: None,
        from: all,
        to: all,
        protocol: None,
        ports,
        domain: Domain(0),
        allowed,
        policy: LeakPolicy::NONE,
    };
    let peer = PeerSpec {
        id: PEER,
        allowed: Vec::new(),
        endpoint: Some(endpoint),
        mtu: Some(1_500),
        counters: Arc::default(),
        caches: Arc::default(),
    };
    let mut sealed = Sealed::default();
    for order in [
        outbound::Order::Policies(policies("10.77.0.1/32")),
        outbound::Order::Rules(Arc::new(RuleSet::new(vec![rule]))),
        outbound::Order::AddPeer(Box::new(peer)),
        outbound::Order::Install(Box::new(OutboundSa::new(&spec()))),
    ] {
        sender.handle(order, Time::ZERO, &mut sealed);
    }
    sealed.0.clear();
    for number in 0..count {
        sender.packet(&mut packet(number), &vnet::Header::PLAIN, Time::ZERO, &mut sealed);
        sender.release(Time::ZERO, &mut sealed);
    }
    sealed.0
}

/// A receiving half with one worker.
struct Receiver {
    socket: Arc<UdpSocket>,
    host: UnixDatagram,
    /// The worker does nothing while this is there.
    hold: Option<Sender<()>>,
    inward: Orders<Order>,
    thread: JoinHandle<()>,
    counters: Arc<Counters>,
    _outward: OrderQueue<outbound::Order>,
    _heard: ControlReceiver,
}

impl Receiver {
    fn start() -> Receiver {
        let listen = Listen::Address("127.0.0.1:0".parse().unwrap());
        let socket = Arc::new(UdpSocket::bind(listen, None).unwrap());
        let (tun, host) = Tun::pair();
        // A block takes too long for the thread that reads, however long that waits for a processor meanwhile.
        let set_up = 3;
        let slow = Calibration::assumed().numbers().map(|mut numbers| {
            numbers[set_up] = 10e-3;
            numbers
        });
        let calibration = Calibration::from_numbers(&slow).unwrap();
        let counters = Arc::<Counters>::default();
        let settings = InboundSettings { forwarding: Forwarding::None, udp_offload: UdpOffload::Unsupported };
        let gauge = Gauge::new(&calibration, Stopwatch::NONE);
        let mut inbound = Inbound::new(settings, gauge, Arc::clone(&counters));
        inbound = inbound.with_workers(1, &calibration, Stopwatch::NONE);
        inbound.handle(Order::AddPeer(PEER, Arc::<PeerCounters>::default(), Arc::default()));
        inbound.handle(Order::Policies(policies("10.77.0.2/32")));
        inbound.handle(Order::Install(Box::new(InboundSa::new(&spec()))));
        let (inward, queue) = orders().unwrap();
        let (hold, held) = channel();
        let held = Arc::new(Mutex::new(held));
        let slow = move || {
            let (held, mut tools) = (Arc::clone(&held), ExpandTools::new(Stopwatch::NONE));
            let mut jobs = 0_u32;
            move |job: &mut ExpandJob| {
                assert!(held.lock().unwrap().recv().is_err());
                // One that takes long, then two that are done while the first wakes the thread.
                if jobs.is_multiple_of(3) {
                    thread::sleep(Duration::from_millis(1));
                }
                jobs += 1;
                job.run(&mut tools);
            }
        };
        let workers = Workers::start((NAME, 1), slow, queue.wake()).unwrap();
        let ((outward, outward_queue), (control, heard)) = (orders().unwrap(), to_control());
        let thread = Inward {
            socket: Arc::clone(&socket),
            direct: None,
            tun: Arc::new(tun),
            inbound,
            workers,
            orders: queue,
            outward,
            control,
            clock: Clock::start(),
        };
        let thread = thread.spawn().unwrap();
        Receiver {
            socket,
            host,
            hold: Some(hold),
            inward,
            thread,
            counters,
            _outward: outward_queue,
            _heard: heard,
        }
    }

    /// The number of the next packet that reaches the host in time.
    fn next(&self, patience: Duration) -> Option<u32> {
        self.host.set_read_timeout(Some(patience)).unwrap();
        let mut buffer = [0; 2_000];
        let len = self.host.recv(&mut buffer).ok()?;
        assert_eq!(len, vnet::LEN + 1_200);
        Some(u32::from_be_bytes(buffer[len - 4..len].try_into().unwrap()))
    }
}

#[test]
fn paused_reading_goes_on_when_a_worker_is_done_and_no_block_is_lost() {
    let mut receiver = Receiver::start();
    let datagrams = blocks(TRAIN * TRAINS, receiver.socket.local());
    assert_eq!(datagrams.len(), (TRAIN * TRAINS) as usize);
    let segment = datagrams[0].len();
    assert!(segment < 300 && datagrams.iter().all(|datagram| datagram.len() == segment));
    let peer = UdpSocket::bind(Listen::Address("127.0.0.1:0".parse().unwrap()), None).unwrap();
    for train in datagrams.chunks(TRAIN as usize) {
        peer.send_train(receiver.socket.local(), 0, segment, &train.concat()).unwrap();
    }
    // Nothing passes the first block that the worker has, so the jobs run out within the first train.
    let mut delivered = 0;
    while let Some(number) = receiver.next(Duration::from_millis(200)) {
        assert_eq!(number, delivered);
        delivered += 1;
    }
    assert!(delivered < TRAIN, "{delivered}");
    let mut socket = [PollFd::readable(receiver.socket.as_fd())];
    wait(&mut socket, Some(Duration::ZERO)).unwrap();
    assert!(socket[0].is_ready(), "the other trains stay in the socket");
    // From now on the jobs run out again and again.
    drop(receiver.hold.take());
    for number in delivered..TRAIN * TRAINS {
        assert_eq!(receiver.next(PATIENCE), Some(number));
    }
    assert_eq!(receiver.counters.drops.iter().map(|(_, packets)| packets).sum::<u64>(), 0);
    drop(receiver.inward);
    receiver.thread.join().unwrap();
}

#[test]
fn forged_and_cut_datagrams_in_a_train_lose_only_themselves() {
    let mut receiver = Receiver::start();
    drop(receiver.hold.take());
    let mut datagrams = blocks(TRAIN, receiver.socket.local());
    let segment = datagrams[0].len();
    // The first, one in the middle, and the last, which is shorter than the others.
    datagrams[0][segment - 1] ^= 1;
    datagrams[10][..4].copy_from_slice(&[1, 2, 3, 4]);
    datagrams[TRAIN as usize - 1].truncate(7);
    let peer = UdpSocket::bind(Listen::Address("127.0.0.1:0".parse().unwrap()), None).unwrap();
    peer.send_train(receiver.socket.local(), 0, segment, &datagrams.concat()).unwrap();
    for number in (1..10).chain(11..TRAIN - 1) {
        assert_eq!(receiver.next(PATIENCE), Some(number));
    }
    assert_eq!(receiver.next(Duration::from_millis(50)), None);
    let drops = Vec::from_iter(receiver.counters.drops.iter().filter(|(_, packets)| *packets > 0));
    assert_eq!(drops.iter().map(|(_, packets)| packets).sum::<u64>(), 3, "{drops:?}");
    drop(receiver.inward);
    receiver.thread.join().unwrap();
}
