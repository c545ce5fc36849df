//! Rules for a configuration: what of the traffic is worth compressing.

use serde::Serialize;
use strait_wire::Service;

use super::{AdviseVerdict, ClassReport};

/// Services that rules are suggested for at most.
const SERVICES: usize = 10;

/// A rule that compresses a service on which that pays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuggestedRule {
    /// The name of the service.
    pub service: String,
    /// The section `[[compress]]`, in TOML; one for each version of IP that was captured. Each service has a trust domain of its own.
    pub toml: String,
}

impl SuggestedRule {
    /// Returns the rules for the services with the most bytes, which were captured with these versions of IP (IPv4, IPv6).
    pub(super) fn all<'a>(
        services: impl Iterator<Item = (Service, &'a ClassReport)>,
        versions: [bool; 2],
    ) -> Vec<SuggestedRule> {
        let worth = services.filter(|(service, class)| {
            // A port that systems hand out is another one the next time.
            class.verdict == AdviseVerdict::Compression && service.port != 0 && !service.is_unnamed()
        });
        worth.take(SERVICES).map(|(service, class)| SuggestedRule::new(service, class, versions)).collect()
    }

    fn new(service: Service, class: &ClassReport, versions: [bool; 2]) -> SuggestedRule {
        let Service { protocol, port } = service;
        let networks = ["0.0.0.0/0", "::/0"].into_iter().zip(versions).filter(|(_, seen)| *seen);
        let sections = networks.map(|(network, _)| {
            format!(
                "[[compress]]\nfrom = \"{network}\"\nto = \"{network}\"\nprotocol = \"{protocol}\"\nports = [{port}]\n\
                 domain = \"{protocol} {port}\"\n"
            )
        });
        SuggestedRule { service: class.name.clone(), toml: sections.collect() }
    }
}
