//! A wire between two hosts, as thin as wanted, and what crossed it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use strait_scheduler::Rate;

use crate::interface::{self, InterfaceState, InterfaceTraffic};
use crate::{Error, Namespace};

/// Whether the interfaces of a link do segmentation and checksums for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offloads {
    /// They do: as fast as memory, but what crosses are super-packets.
    On,
    /// They do not: what crosses are datagrams of at most the MTU, with checksums.
    Off,
}

/// What a link is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Rate from the first end to the second, of whole Ethernet frames; without one the link is as fast as memory.
    pub rate: Option<Rate>,
    /// Rate back, where it is another one.
    pub back: Option<Rate>,
    /// Longest queue in front of the link; what does not fit is dropped.
    pub queue: Duration,
    /// Largest packet, in bytes without the Ethernet header.
    pub mtu: u32,
    /// Whether super-packets may cross.
    pub offloads: Offloads,
}

impl LinkSpec {
    /// A link of `rate`: 1,500-byte packets, a queue of 300 ms (what `tc-tbf` users and modems commonly have),
    /// no offloads.
    #[must_use]
    pub const fn thin(rate: Rate) -> LinkSpec {
        LinkSpec {
            rate: Some(rate),
            back: None,
            queue: Duration::from_millis(300),
            mtu: 1500,
            offloads: Offloads::Off,
        }
    }

    /// A link as fast as memory, with offloads.
    #[must_use]
    pub const fn unshaped() -> LinkSpec {
        LinkSpec { rate: None, back: None, queue: Duration::ZERO, mtu: 1500, offloads: Offloads::On }
    }

    /// The rates at which the first and the second end send.
    #[must_use]
    pub fn rates(&self) -> [Option<Rate>; 2] {
        [self.rate, self.back.or(self.rate)]
    }
}

/// One end of a link.
#[derive(Clone, Debug)]
pub struct LinkEnd {
    /// The host it is plugged into.
    pub host: Namespace,
    /// The interface's name on that host.
    pub interface: String,
    /// Its IPv4 address.
    pub v4: Ipv4Addr,
    /// Its IPv6 address.
    pub v6: Ipv6Addr,
}

impl LinkEnd {
    /// Gives this end one more address.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn add_address(&self, address: IpAddr, prefix: u8) -> Result<(), Error> {
        self.host.add_address(&self.interface, address, prefix)
    }

    /// Takes an address away from this end.
    ///
    /// # Errors
    /// [`Error::System`] when it has no such address.
    pub fn remove_address(&self, address: IpAddr, prefix: u8) -> Result<(), Error> {
        self.host.remove_address(&self.interface, address, prefix)
    }

    /// Sets the largest packet this end takes, in bytes without the Ethernet header.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn set_mtu(&self, mtu: u32) -> Result<(), Error> {
        self.host.run(&format!("set the MTU of {} to {mtu}", self.interface), || {
            interface::set_mtu(&self.interface, mtu)
        })
    }

    /// Plugs this end in or pulls it out.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn set_state(&self, state: InterfaceState) -> Result<(), Error> {
        self.host.run(&format!("set {} {state:?}", self.interface), || {
            interface::set_state(&self.interface, state)
        })
    }

    /// What this end has sent and received.
    ///
    /// # Errors
    /// [`Error::System`] when the counters cannot be read.
    pub fn traffic(&self) -> Result<InterfaceTraffic, Error> {
        self.host
            .run(&format!("count what crossed {}", self.interface), || interface::traffic(&self.interface))
    }
}

/// Frames and bytes that crossed a link in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarriedBytes {
    /// Ethernet frames.
    pub packets: u64,
    /// Bytes with Ethernet headers, without preamble and checksum.
    pub bytes: u64,
}

/// What crossed a link since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTraffic {
    /// From the first end to the second.
    pub there: CarriedBytes,
    /// From the second end to the first.
    pub back: CarriedBytes,
}

impl LinkTraffic {
    /// What crossed after `earlier` was taken.
    #[must_use]
    pub const fn since(self, earlier: LinkTraffic) -> LinkTraffic {
        LinkTraffic { there: minus(self.there, earlier.there), back: minus(self.back, earlier.back) }
    }

    /// Bytes in both directions.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.there.bytes + self.back.bytes
    }
}

const fn minus(later: CarriedBytes, earlier: CarriedBytes) -> CarriedBytes {
    CarriedBytes {
        packets: later.packets.saturating_sub(earlier.packets),
        bytes: later.bytes.saturating_sub(earlier.bytes),
    }
}

/// A wire between two hosts.
#[derive(Clone, Debug)]
pub struct WireLink {
    /// The first end.
    pub a: LinkEnd,
    /// The second end.
    pub b: LinkEnd,
    spec: LinkSpec,
}

impl WireLink {
    /// Joins two hosts. `network` numbers the link: its ends get 198.18.`network`.1 and .2 (RFC 2544's range for
    /// benchmarks) and fd00:18:`network`::1 and ::2.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn join(a: &Namespace, b: &Namespace, network: u8, spec: LinkSpec) -> Result<WireLink, Error> {
        let link = WireLink { a: end(a, b, network, 1), b: end(b, a, network, 2), spec };
        a.run(&format!("join it with {}", b.name()), || {
            interface::create_veth(&link.a.interface, &link.b.interface, b.handle(), spec.mtu)
        })?;
        link.ends().into_iter().zip(spec.rates()).try_for_each(|(end, rate)| set_up(end, rate, spec))?;
        link.ends().into_iter().try_for_each(wait_for_carrier)?;
        Ok(link)
    }

    /// A link of ends that are joined by other means.
    pub(crate) const fn of_ends(a: LinkEnd, b: LinkEnd, spec: LinkSpec) -> WireLink {
        WireLink { a, b, spec }
    }

    /// Both ends.
    #[must_use]
    pub const fn ends(&self) -> [&LinkEnd; 2] {
        [&self.a, &self.b]
    }

    /// What the link is like.
    #[must_use]
    pub const fn spec(&self) -> LinkSpec {
        self.spec
    }

    /// Makes the link faster or slower, in both directions; without a rate, as fast as memory.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn set_rate(&mut self, rate: Option<Rate>) -> Result<(), Error> {
        let spec = LinkSpec { rate, back: None, ..self.spec };
        for (end, before) in self.ends().into_iter().zip(self.spec.rates()) {
            end.host.run("change the link's rate", || match (rate, before) {
                (Some(rate), _) => interface::set_shape(&end.interface, spec.mtu, rate, spec.queue),
                (None, Some(_)) => interface::take_shape(&end.interface),
                (None, None) => Ok(()),
            })?;
        }
        self.spec = spec;
        Ok(())
    }

    /// What crossed the link since it was made. Frames count where they leave the queue, so dropped ones do not.
    ///
    /// # Errors
    /// [`Error::System`] when the counters cannot be read.
    pub fn traffic(&self) -> Result<LinkTraffic, Error> {
        let sent = |end: &LinkEnd| {
            end.traffic().map(|it| CarriedBytes { packets: it.sent_packets, bytes: it.sent_bytes })
        };
        Ok(LinkTraffic { there: sent(&self.a)?, back: sent(&self.b)? })
    }
}

fn end(host: &Namespace, peer: &Namespace, network: u8, number: u8) -> LinkEnd {
    // 15 bytes are what the kernel takes for a name (IFNAMSIZ).
    let interface = format!("to-{}", peer.name()).chars().take(15).collect();
    LinkEnd {
        host: host.clone(),
        interface,
        v4: Ipv4Addr::new(198, 18, network, number),
        v6: Ipv6Addr::new(0xfd00, 0x18, u16::from(network), 0, 0, 0, 0, u16::from(number)),
    }
}

fn set_up(end: &LinkEnd, rate: Option<Rate>, spec: LinkSpec) -> Result<(), Error> {
    let name = &end.interface;
    end.host.run(&format!("set up {name}"), || {
        if spec.offloads == Offloads::Off {
            interface::disable_offloads(name)?;
        }
        interface::set_state(name, InterfaceState::Up)?;
        interface::add_address(name, end.v4.into(), 24)?;
        if has_ipv6() {
            interface::add_address(name, end.v6.into(), 64)?;
        }
        rate.map_or(Ok(()), |rate| interface::set_shape(name, spec.mtu, rate, spec.queue))
    })
}

/// The kernel takes a moment to notice that both ends are up, and drops what is sent before.
fn wait_for_carrier(end: &LinkEnd) -> Result<(), Error> {
    for _ in 0..CARRIER_CHECKS {
        let running = || interface::is_running(&end.interface);
        if end.host.run(&format!("look at {}", end.interface), running)? {
            return Ok(());
        }
        std::thread::sleep(CARRIER_PAUSE);
    }
    let what = format!("{} on {} has no carrier", end.interface, end.host.name());
    Err(Error::TooSlow { what, waited: CARRIER_PAUSE * CARRIER_CHECKS, said: String::new() })
}

/// The kernel looks at changed wires at least once a second (linkwatch); five are generous.
const CARRIER_CHECKS: u32 = 500;
const CARRIER_PAUSE: Duration = Duration::from_millis(10);

/// Whether this kernel knows IPv6 and has not been told to leave it off.
pub(crate) fn has_ipv6() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6").is_ok_and(|text| text.trim() == "0")
}
