//! What may be inside the protocols: IPComp, AGGFRAG, or raw packets only.

use strait_compress::IpcompAlgorithm;
use strait_wire::Cpi;

use super::ManualPayloads;
use super::problem::ManualProblem;
use super::section::SectionReader;

/// The first CPI that is neither an algorithm's own nor reserved (RFC 3173 section 3.3).
const FIRST_CPI: u16 = 256;

pub(super) fn read(reader: &SectionReader<'_>) -> Option<ManualPayloads> {
    let section = &reader.section;
    if section.boolean("aggfrag").unwrap_or(false) {
        check_aggfrag(reader);
        return Some(ManualPayloads::Aggfrag);
    }
    let ipcomp =
        section.choice("ipcomp", &["deflate", "lzs"], &[IpcompAlgorithm::Deflate, IpcompAlgorithm::Lzs]);
    if let Some(algorithm) = ipcomp {
        let (inbound, outbound) = (cpi(reader, "cpi_in", algorithm), cpi(reader, "cpi_out", algorithm));
        return Some(ManualPayloads::Ipcomp { algorithm, inbound: inbound?, outbound: outbound? });
    }
    for key in ["cpi_in", "cpi_out"] {
        reader.unused(key, "it is only for `ipcomp`");
    }
    Some(ManualPayloads::Raw)
}

fn check_aggfrag(reader: &SectionReader<'_>) {
    for (missing, needs) in
        [(reader.transport, "mode = \"tunnel\""), (reader.esp.is_none(), "[peer.manual.esp]")]
    {
        if missing {
            reader.note_at("aggfrag", ManualProblem::Aggfrag { needs });
        }
    }
    for key in ["ipcomp", "cpi_in", "cpi_out"] {
        reader.unused(key, "AGGFRAG payloads are not compressed");
    }
}

/// IPComp's number in one direction: the algorithm's own unless another is agreed.
fn cpi(reader: &SectionReader<'_>, key: &'static str, algorithm: IpcompAlgorithm) -> Option<Cpi> {
    let own = Cpi(algorithm.number().into());
    if reader.section.value(key).is_none() {
        return Some(own);
    }
    let given = Cpi(reader.section.short(key, 0..=u16::MAX)?);
    if given != own && given.0 < FIRST_CPI {
        reader.note_at(key, ManualProblem::Cpi { key, algorithm, given });
        return None;
    }
    Some(given)
}
