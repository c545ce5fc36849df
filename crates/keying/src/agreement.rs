//! What two nodes' capabilities come to, and the keys for it; both ends compute the same.

use strait_crypto::{KeyMaterial, MAX_KEY_MATERIAL, Suite, WrongLength, choose};
use strait_ipsec::{HistoryTerms, IvMode, Payloads, RepairTerms};
use zeroize::Zeroizing;

use crate::{Capabilities, DirectEsp, LossRepair, PayloadFormat};

/// What the keys are exported under (RFC 8446 section 7.5, RFC 5705 section 4).
pub(crate) const LABEL: &[u8] = b"EXPORTER-strait-esp-v1";
/// Bytes that are exported: the longest key and salt for each direction.
pub(crate) const EXPORT_LEN: usize = 2 * MAX_KEY_MATERIAL;

/// What a pair of associations is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairAgreement {
    /// The suite that costs both ends least.
    pub suite: Suite,
    /// Where the IV is.
    pub iv: IvMode,
    /// What this end reads.
    pub inbound: Payloads,
    /// What the other end reads.
    pub outbound: Payloads,
    /// Whether what this end reads is repaired.
    pub repair_in: RepairTerms,
    /// Whether what the other end reads is repaired.
    pub repair_out: RepairTerms,
    /// The terms on which both ends keep packets that were delivered, with a number of both.
    pub history: HistoryTerms,
    /// Whether ESP may go directly behind IP, both ways.
    pub direct: bool,
}

impl PairAgreement {
    /// What comes of `mine` and `theirs`; none when no suite is allowed at both ends.
    pub(crate) fn of(mine: &Capabilities, theirs: &Capabilities) -> Option<PairAgreement> {
        let suite = choose(&mine.ranking, &theirs.ranking, mine.suites.intersect(theirs.suites))?;
        let explicit = mine.iv == IvMode::Explicit || theirs.iv == IvMode::Explicit;
        let standard = mine.format == PayloadFormat::Standard || theirs.format == PayloadFormat::Standard;
        let payloads = |reader: &Capabilities| {
            if standard {
                return Payloads::STANDARD;
            }
            // The smaller cap serves both ways: neither builds what it would not itself take.
            Payloads::Strait { codecs: reader.codecs, block_cap: mine.block_cap.min(theirs.block_cap) }
        };
        let repairs = !standard && ![mine.repair, theirs.repair].contains(&LossRepair::Off);
        let terms = |sender: &Capabilities, reader: &Capabilities| {
            let paced = sender.repair == LossRepair::Paced || reader.down.given().is_some();
            match (repairs, paced) {
                (false, _) => RepairTerms::Off,
                (true, false) => RepairTerms::OnNotice,
                (true, true) => RepairTerms::Kept,
            }
        };
        // Where one end keeps nothing, it tells of nothing that it got either.
        let contexts = mine.history.contexts.min(theirs.history.contexts);
        let history = match contexts {
            _ if standard => HistoryTerms::NONE,
            0 => HistoryTerms::NONE,
            contexts => {
                let caches = mine.history.caches.common(&theirs.history.caches);
                // Of both, so that each end forgets what it kept both ways when one begins anew.
                let epoch = mine.history.epoch ^ theirs.history.epoch;
                HistoryTerms { contexts, epoch, caches }
            }
        };
        Some(PairAgreement {
            suite,
            iv: if explicit { IvMode::Explicit } else { IvMode::Implicit },
            inbound: payloads(mine),
            outbound: payloads(theirs),
            repair_in: terms(theirs, mine),
            repair_out: terms(mine, theirs),
            history,
            // Whether it passes is told by probes, which a peer with standard payloads does not answer.
            direct: !standard && [mine.direct, theirs.direct] == [DirectEsp::Taken; 2],
        })
    }
}

/// The two keys of a pair, cut from what TLS exported: the initiator's first.
pub(crate) struct PairKeys {
    /// From initiator to responder.
    pub forth: KeyMaterial,
    /// From responder to initiator.
    pub back: KeyMaterial,
}

impl PairKeys {
    pub(crate) fn cut(suite: Suite, exported: &Zeroizing<[u8; EXPORT_LEN]>) -> Result<PairKeys, WrongLength> {
        let (forth, back) = exported.split_at(MAX_KEY_MATERIAL);
        let key =
            |half: &[u8]| KeyMaterial::new(suite, half.get(..suite.key_material_len()).unwrap_or_default());
        Ok(PairKeys { forth: key(forth)?, back: key(back)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_compress::{Codec, CodecSet};
    use strait_crypto::{Ranking, SuiteSet};
    use strait_scheduler::Rate;

    fn capabilities() -> Capabilities {
        Capabilities { ranking: Ranking { nanos_per_packet: [10, 20, 30, 10] }, ..Capabilities::typical() }
    }

    #[test]
    fn both_ends_compute_the_same_agreement() {
        let history = HistoryTerms { contexts: 256, epoch: 1, ..HistoryTerms::NONE };
        let mine = Capabilities { history, ..capabilities() };
        let table = [
            capabilities(),
            Capabilities { ranking: Ranking { nanos_per_packet: [900, 800, 100, 900] }, ..capabilities() },
            Capabilities { iv: IvMode::Explicit, block_cap: 1000, ..capabilities() },
            Capabilities { format: PayloadFormat::Standard, ..capabilities() },
            Capabilities { codecs: CodecSet::EMPTY.with(Codec::Lz4), ..capabilities() },
            Capabilities { repair: LossRepair::Paced, ..capabilities() },
            Capabilities { repair: LossRepair::Off, ..capabilities() },
            Capabilities { direct: DirectEsp::Taken, ..capabilities() },
            Capabilities {
                history: HistoryTerms { contexts: 9, epoch: 7, ..HistoryTerms::NONE },
                ..capabilities()
            },
            Capabilities { suites: SuiteSet::EMPTY.with(Suite::Aes256Gcm), ..capabilities() },
        ];
        for theirs in table {
            let here = PairAgreement::of(&mine, &theirs).unwrap();
            let there = PairAgreement::of(&theirs, &mine).unwrap();
            let turned = PairAgreement {
                inbound: there.outbound,
                outbound: there.inbound,
                repair_in: there.repair_out,
                repair_out: there.repair_in,
                ..there
            };
            assert_eq!(here, turned, "{theirs:?}");
        }
    }

    #[test]
    fn explicit_iv_or_standard_format_at_either_end_wins() {
        let mine = capabilities();
        let theirs = Capabilities {
            suites: SuiteSet::EMPTY.with(Suite::ChaCha20Poly1305),
            iv: IvMode::Explicit,
            block_cap: 1000,
            codecs: CodecSet::EMPTY.with(Codec::Lz4),
            ..capabilities()
        };
        let agreed = PairAgreement::of(&mine, &theirs).unwrap();
        assert_eq!(agreed.suite, Suite::ChaCha20Poly1305);
        assert_eq!(agreed.iv, IvMode::Explicit);
        assert_eq!(agreed.inbound, Payloads::Strait { codecs: CodecSet::ALL, block_cap: 1000 });
        assert_eq!(agreed.outbound, Payloads::Strait { codecs: theirs.codecs, block_cap: 1000 });
        let standard = Capabilities { format: PayloadFormat::Standard, ..capabilities() };
        assert_eq!(PairAgreement::of(&mine, &standard).unwrap().inbound, Payloads::STANDARD);
        let none = Capabilities { suites: SuiteSet::EMPTY, ..capabilities() };
        assert_eq!(PairAgreement::of(&mine, &none), None);
    }

    #[test]
    fn repair_takes_both_ends_and_is_certain_on_a_link_with_a_given_rate() {
        use RepairTerms::{Kept, Off, OnNotice};
        let paced = Capabilities { repair: LossRepair::Paced, ..capabilities() };
        let limited = Capabilities { down: Rate::from_bits(1_000_000).into(), ..capabilities() };
        let off = Capabilities { repair: LossRepair::Off, ..capabilities() };
        let standard = Capabilities { format: PayloadFormat::Standard, ..capabilities() };
        for (theirs, repair_in, repair_out) in [
            (capabilities(), OnNotice, OnNotice),
            (paced, Kept, OnNotice),
            (limited, OnNotice, Kept),
            (off, Off, Off),
            (standard, Off, Off),
        ] {
            let agreed = PairAgreement::of(&capabilities(), &theirs).unwrap();
            assert_eq!((agreed.repair_in, agreed.repair_out), (repair_in, repair_out), "{theirs:?}");
        }
    }

    #[test]
    fn esp_goes_directly_behind_ip_only_where_both_ends_take_it() {
        let taken = Capabilities { direct: DirectEsp::Taken, ..capabilities() };
        let standard = Capabilities { format: PayloadFormat::Standard, ..taken.clone() };
        for (mine, theirs, direct) in [
            (&capabilities(), &capabilities(), false),
            (&taken, &capabilities(), false),
            (&capabilities(), &taken, false),
            (&taken, &taken, true),
            (&taken, &standard, false),
        ] {
            assert_eq!(PairAgreement::of(mine, theirs).unwrap().direct, direct, "{mine:?} {theirs:?}");
        }
    }

    #[test]
    fn the_two_keys_share_no_byte() {
        let exported = Zeroizing::new(core::array::from_fn(|at| u8::try_from(at).unwrap()));
        for suite in Suite::ALL {
            let keys = PairKeys::cut(suite, &exported).unwrap();
            assert_eq!(keys.forth.expose(), &exported[..suite.key_material_len()]);
            assert_eq!(keys.back.expose(), &exported[36..36 + suite.key_material_len()]);
        }
    }
}
