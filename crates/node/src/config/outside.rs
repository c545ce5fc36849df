//! What may leave outside the tunnel, and the name servers that are not outside.

use std::net::IpAddr;

use ipnet::IpNet;

use super::reader::Section;
use super::value;

/// Name servers behind the tunnel.
pub(super) fn servers(section: &Section<'_>) -> Vec<IpAddr> {
    let listed = section.list("dns", "a list of IP addresses, as [\"10.1.0.53\"]", value::host);
    listed.into_iter().map(|server| server.value).collect()
}

/// Domains of their names.
pub(super) fn search(section: &Section<'_>) -> Vec<String> {
    let listed = section.list("dns_search", "a list of domains, as [\"corp.example\"]", value::domain);
    listed.into_iter().map(|domain| domain.value).collect()
}

/// Networks, without the addresses of hosts in them.
pub(super) fn networks(section: &Section<'_>) -> Vec<IpNet> {
    let listed = section.list("allow_outside", "a list of networks, as [\"192.168.1.0/24\"]", value::network);
    listed.into_iter().map(|network| network.value).collect()
}
