//! `[peer.manual.esp]` and `[peer.manual.ah]`.

use strait_wire::Spi;
use strait_wire::ah::Align;
use strait_wire::demux::{DatagramKind, classify};

use super::key::KeyReading;
use super::problem::ManualProblem;
use super::section::{Over, SectionReader};
use super::{Hosts, ManualAh, ManualEsp, Spis};
use crate::config::reader::{Placed, Section};

pub(super) const ESP: &[&str] = &[
    "spi_in",
    "spi_out",
    "suite",
    "cipher",
    "integrity",
    "key_in",
    "key_in_file",
    "key_out",
    "key_out_file",
    "integrity_key_in",
    "integrity_key_in_file",
    "integrity_key_out",
    "integrity_key_out_file",
];
pub(super) const AH: &[&str] =
    &["spi_in", "spi_out", "integrity", "key_in", "key_in_file", "key_out", "key_out_file", "align4"];

/// The first SPI that is not reserved (RFC 4303 section 2.1).
const FIRST_SPI: u32 = 256;

impl SectionReader<'_> {
    /// ESP, if it is there; nothing when it cannot be read.
    pub(super) fn esp(&self) -> Option<Option<ManualEsp>> {
        let Some(section) = &self.esp else { return Some(None) };
        let spi = self.spis(section);
        let protection = self.reading(section).protection(self.ah.is_some());
        Some(Some(ManualEsp { spi: spi?, protection: protection? }))
    }

    /// AH, if it is there; nothing when it cannot be read.
    pub(super) fn ah(&self, hosts: Option<Hosts>) -> Option<Option<ManualAh>> {
        let Some(section) = &self.ah else { return Some(None) };
        if self.over == Over::Udp {
            section.note(section.span(), ManualProblem::AhOverUdp);
        }
        let align4 = section.boolean("align4").unwrap_or(false);
        if let Some(value) = section.value("align4").filter(|_| align4)
            && hosts.is_some_and(|hosts| hosts.local.is_ipv6())
        {
            let why = "IPv6 headers are always aligned to 8 bytes";
            section.note(value.span(), ManualProblem::NoUse { key: "align4", why });
        }
        let spi = self.spis(section);
        let keys = self.reading(section).authentication();
        let align = if align4 { Align::Four } else { Align::Eight };
        Some(Some(ManualAh { spi: spi?, keys: keys?, align }))
    }

    fn reading<'s>(&'s self, section: &'s Section<'s>) -> KeyReading<'s> {
        KeyReading { section, beside: self.beside, legacy: self.legacy, sealing: &self.sealing }
    }

    /// A protocol's two SPIs; the inbound one is remembered with its place.
    fn spis(&self, section: &Section<'_>) -> Option<Spis> {
        section.require("spi_in", "spi_in = 0x04000001, the spi_out of the peer");
        section.require("spi_out", "spi_out = 0x04000002, the spi_in of the peer");
        let (inbound, outbound) = (spi(section, "spi_in"), spi(section, "spi_out"));
        let inbound = inbound.filter(|spi| self.over == Over::Ip || is_told(section, spi));
        self.spis.borrow_mut().extend(inbound.clone());
        Some(Spis { inbound: inbound?.value, outbound: outbound?.value })
    }
}

/// Whether a datagram that begins with this SPI is taken for ESP.
fn is_told(section: &Section<'_>, spi: &Placed<Spi>) -> bool {
    let told = classify(&spi.value.0.to_be_bytes()) == DatagramKind::Esp;
    if !told {
        section.note(spi.span.clone(), ManualProblem::UdpSpi { key: "spi_in" });
    }
    told
}

fn spi(section: &Section<'_>, key: &'static str) -> Option<Placed<Spi>> {
    let number = section.integer(key, 0..=u32::MAX.into())?;
    let span = section.value(key)?.span();
    let spi = Spi(u32::try_from(number).ok()?);
    if spi.0 < FIRST_SPI {
        section.note(span, ManualProblem::ReservedSpi { key });
        return None;
    }
    Some(Placed { value: spi, span })
}
