//! Classes of traffic: what is expected to shrink alike.

use core::fmt;
use std::net::IpAddr;

use strait_wire::{Flow, Protocol};

use super::RuleId;

/// A set of units, from the narrowest to the widest that a unit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// One conversation, one way.
    Flow(Flow),
    /// What goes to a service, or comes from it.
    Service {
        /// Its protocol.
        protocol: Protocol,
        /// Whose it is.
        host: IpAddr,
        /// Its port.
        port: u16,
        /// Whether to it.
        to: bool,
    },
    /// A protocol.
    Protocol(Protocol),
}

/// A class under a rule: rules that differ keep apart what is learned.
pub(super) type RuleClass = (Class, RuleId);

impl Class {
    /// The service of a flow: the end with the lower port, as servers' ports are below those that clients are given
    /// (RFC 6335 section 6).
    pub(super) fn service(flow: &Flow) -> Class {
        let to = flow.dst_port <= flow.src_port;
        let (host, port) = if to { (flow.dst, flow.dst_port) } else { (flow.src, flow.src_port) };
        Class::Service { protocol: flow.protocol, host, port, to }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Flow(flow) => f.pad(&flow.to_string()),
            Class::Service { protocol, host, port, to } => {
                let way = if *to { "to" } else { "from" };
                f.pad(&format!("{protocol} {way} {}", std::net::SocketAddr::new(*host, *port)))
            }
            Class::Protocol(protocol) => f.pad(&format!("all {protocol}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_the_lower_port() {
        let [client, server]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
        let request =
            Flow { src: client, dst: server, protocol: Protocol::TCP, src_port: 50_000, dst_port: 80 };
        let answer = Flow { src: server, dst: client, src_port: 80, dst_port: 50_000, ..request };
        assert_eq!(Class::service(&request).to_string(), "tcp to 10.0.0.2:80");
        assert_eq!(Class::service(&answer).to_string(), "tcp from 10.0.0.2:80");
        let ping = Flow { protocol: Protocol::ICMP, src_port: 0, dst_port: 0, ..request };
        assert_eq!(Class::service(&ping).to_string(), "icmp to 10.0.0.2:0");
        assert_eq!(Class::Protocol(Protocol::UDP).to_string(), "all udp");
    }
}
