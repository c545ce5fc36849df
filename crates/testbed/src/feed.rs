//! Packets of other hosts' that come to a host to be forwarded, as from the network behind it.

use std::fs;
use std::io::{self, IoSlice};
use std::net::Ipv4Addr;

use strait_node::tun::Tun;

use crate::interface::{self, InterfaceState};
use crate::{Error, Namespace};

/// The device that they come from.
const INTERFACE: &str = "feed0";
/// What the device puts before a packet (`struct virtio_net_hdr`): nothing is to be done with it.
const WHOLE: [u8; strait_wire::vnet::LEN] = [0; strait_wire::vnet::LEN];

/// A device whose packets its host forwards wherever they go.
#[derive(Debug)]
pub struct Feed {
    tun: Tun,
}

impl Feed {
    /// A device on `host`, of which there may be one a host.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn open(host: &Namespace) -> Result<Feed, Error> {
        let tun = host.run("make a device", || {
            let tun = Tun::open(INTERFACE).map_err(io::Error::other)?;
            interface::set_state(INTERFACE, InterfaceState::Up)?;
            fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
            // Nothing leads back to where they come from.
            ["all", INTERFACE]
                .iter()
                .try_for_each(|name| fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "0"))?;
            Ok(tun)
        })?;
        Ok(Feed { tun })
    }

    /// Such a device for the network of 16 bits behind `host`, where what is meant for it ends.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn behind(host: &Namespace, network: Ipv4Addr) -> Result<Feed, Error> {
        let feed = Feed::open(host)?;
        let [a, b, ..] = network.octets();
        host.add_address(INTERFACE, Ipv4Addr::new(a, b, 0xff, 0xfe).into(), 16)?;
        Ok(feed)
    }

    /// The host gets a whole IP packet.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn send(&self, packet: &[u8]) -> Result<(), Error> {
        let sent = self.tun.writev(&[IoSlice::new(&WHOLE), IoSlice::new(packet)]);
        sent.map(|_| ()).map_err(Error::doing("feed a packet"))
    }
}
