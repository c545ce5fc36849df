//! Which port of a flow is the service's, and what services are called.

use core::fmt;

use crate::{Flow, Protocol};

/// Names of the ports that networks are used for, from IANA's registry of service names, but for synchrophasors
/// (IEEE C37.118.2 annex F) and those marked there as unassigned that everybody knows.
const NAMES: &[(u16, &str)] = &[
    (20, "ftp-data"),
    (21, "ftp"),
    (22, "ssh"),
    (23, "telnet"),
    (25, "smtp"),
    (53, "dns"),
    (67, "dhcp"),
    (68, "dhcp"),
    (69, "tftp"),
    (80, "http"),
    (88, "kerberos"),
    (102, "iso-tsap"),
    (110, "pop3"),
    (111, "sunrpc"),
    (123, "ntp"),
    (135, "epmap"),
    (137, "netbios-ns"),
    (138, "netbios-dgm"),
    (139, "netbios-ssn"),
    (143, "imap"),
    (161, "snmp"),
    (162, "snmptrap"),
    (179, "bgp"),
    (389, "ldap"),
    (443, "https"),
    (445, "microsoft-ds"),
    (465, "submissions"),
    (500, "isakmp"),
    (502, "mbap"),
    (514, "syslog"),
    (515, "printer"),
    (554, "rtsp"),
    (587, "submission"),
    (631, "ipp"),
    (636, "ldaps"),
    (853, "domain-s"),
    (873, "rsync"),
    (993, "imaps"),
    (995, "pop3s"),
    (1433, "ms-sql-s"),
    (1521, "oracle"),
    (1883, "mqtt"),
    (2049, "nfs"),
    (2222, "EtherNet-IP-1"),
    (2404, "iec-104"),
    (3260, "iscsi-target"),
    (3306, "mysql"),
    (3389, "ms-wbt-server"),
    (4500, "ipsec-nat-t"),
    (4712, "synchrophasor"),
    (4713, "synchrophasor"),
    (5060, "sip"),
    (5061, "sips"),
    (5353, "mdns"),
    (5355, "llmnr"),
    (5432, "postgresql"),
    (5683, "coap"),
    (5900, "rfb"),
    (5985, "wsman"),
    (6379, "redis"),
    (8080, "http-alt"),
    (8443, "pcsync-https"),
    (8883, "secure-mqtt"),
    (9100, "pdl-datastream"),
    (20000, "dnp"),
    (25826, "collectd"),
    (44818, "EtherNet-IP-2"),
    (47808, "bacnet"),
    (51820, "wireguard"),
];

/// Where the ports begin that Linux hands out (`ip_local_port_range`).
const HANDED_OUT: u16 = 32_768;

/// What servers offer: an upper-layer protocol and the port that it comes to, 0 where the protocol has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Service {
    /// The upper-layer protocol.
    pub protocol: Protocol,
    /// The port, or 0.
    pub port: u16,
}

impl Service {
    /// The service of a flow: its port that has a name; of two or none, the lower, as servers' ports are below those that
    /// systems hand out (RFC 6335 section 6).
    #[must_use]
    pub fn of(flow: &Flow) -> Service {
        let (one, other) = (flow.src_port.min(flow.dst_port), flow.src_port.max(flow.dst_port));
        let port = if name(one).is_none() && name(other).is_some() { other } else { one };
        Service { protocol: flow.protocol, port }
    }

    /// Whether its port is one that systems hand out, and has no name: it says nothing of what the flow is.
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        self.port >= HANDED_OUT && name(self.port).is_none()
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Service { protocol, port } = *self;
        match name(port) {
            _ if port == 0 => write!(f, "{protocol}"),
            Some(name) => write!(f, "{name} ({protocol} {port})"),
            None => write!(f, "{protocol} {port}"),
        }
    }
}

/// What a port is called, if it has a name here.
fn name(port: u16) -> Option<&'static str> {
    let place = NAMES.binary_search_by_key(&port, |(port, _)| *port).ok()?;
    NAMES.get(place).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(NAMES.is_sorted_by_key(|(port, _)| *port));
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(name(80), Some("http"));
        assert_eq!(name(81), None);
    }

    #[test]
    fn the_service_is_the_port_with_a_name_or_else_the_lower() {
        let [src, dst] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
        for (src_port, dst_port, expected) in [
            (50_000, 80, "http (tcp 80)"),
            (80, 50_000, "http (tcp 80)"),
            // Old systems hand out ports from 1,024 on.
            (1_025, 44_818, "EtherNet-IP-2 (tcp 44818)"),
            (44_818, 1_025, "EtherNet-IP-2 (tcp 44818)"),
            (6_000, 7_000, "tcp 6000"),
            (0, 0, "tcp"),
        ] {
            let flow = Flow { src, dst, protocol: Protocol::TCP, src_port, dst_port };
            let service = Service::of(&flow);
            assert_eq!(service.to_string(), expected);
            assert!(!service.is_unnamed());
        }
    }

    #[test]
    fn a_port_that_systems_hand_out_is_a_service_only_with_a_name() {
        for (port, unnamed) in [(32_767, false), (32_768, true), (51_820, false), (60_000, true)] {
            assert_eq!(Service { protocol: Protocol::UDP, port }.is_unnamed(), unnamed, "{port}");
        }
    }
}
