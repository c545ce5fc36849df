//! The time of a daemon for a packet besides what the equation has: system calls, copies, fragments. The paper calls it protocol
//! processing time, and says that it could be added (section 6.2).

use strait_model::{Seconds, Stages};

use super::super::figures::SHOWN_SIZES;
use super::super::parameters::{NULL, ParameterCell, Parameters};
use super::grid::RunAmount;
use super::stage::{Transaction, TransportStage, contents, usable};
use crate::corpus::CorpusFile;
use crate::error::Error;
use crate::vpn::printed::{NETWORKS, TABLE2_SIZE};

/// Bytes of a frame's packet at most.
const MTU: f64 = 1280.0;

/// Seconds at full speed, for each end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DaemonWork {
    pub(super) sender: WorkLine,
    pub(super) receiver: WorkLine,
    /// The receiver's where a packet is expanded: without AH and ESP, it only sees those.
    pub(super) expander: WorkLine,
    /// Seconds for a packet at each end, besides the codec, where one is compressed: choosing, counting, learning.
    pub(super) codec: [f64; 2],
}

/// Seconds for a packet, and for each of its fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct WorkLine {
    pub(super) packet: f64,
    pub(super) fragment: f64,
}

impl WorkLine {
    /// Through two points of fragments and seconds.
    fn through([(few, less), (many, more)]: [(f64, f64); 2]) -> WorkLine {
        let fragment = ((more - less) / (many - few)).max(0.0);
        WorkLine { packet: (less - few * fragment).max(0.0), fragment }
    }

    fn at(self, fragments: f64) -> f64 {
        self.packet + self.fragment * fragments
    }
}

impl DaemonWork {
    /// Measured at full speed over a link as fast as memory, without compression; what suites take is subtracted. Without AH and ESP, a
    /// receiver that expands is taken for that of the protection `before`.
    pub(super) fn measured(
        stage: &mut TransportStage,
        (file, amount): (&CorpusFile, RunAmount),
        rates: &Parameters,
        protection: usize,
        before: Option<&DaemonWork>,
    ) -> Result<DaemonWork, Error> {
        let mut ends = [[(0.0, 0.0); 2]; 2];
        for (at, size) in SHOWN_SIZES.into_iter().enumerate() {
            let ran = stage.run(None, &contents(file, size), false, amount, 1.0)?;
            let stages = rates.stages(ParameterCell { protection, size, file: 0, network: 0 }, None);
            let took = besides(&ran, &stages);
            [ends[0][at], ends[1][at]] = took.map(|seconds| (fragments(&stages, 0), seconds));
        }
        let [sender, receiver] = ends.map(WorkLine::through);
        let secured = rates.protections[protection].class != NULL;
        let expander = before.filter(|_| !secured).map_or(receiver, |before| before.receiver);
        Ok(DaemonWork { sender, receiver, expander, codec: [0.0; 2] })
    }

    /// With what compressing takes besides the stage's codec, measured likewise with the payload that the figures leave out.
    pub(super) fn with_codec(
        self,
        stage: &mut TransportStage,
        (file, amount): (&CorpusFile, RunAmount),
        rates: &Parameters,
        protection: usize,
    ) -> Result<DaemonWork, Error> {
        let work = DaemonWork { codec: [0.0; 2], ..self };
        let ran = stage.run(None, &contents(file, TABLE2_SIZE), true, amount, 1.0)?;
        let cell = ParameterCell { protection, size: TABLE2_SIZE, file: 0, network: 0 };
        let codec = besides(&ran, &work.added(rates.stages(cell, Some(stage.codec)), 0, 1.0));
        Ok(DaemonWork { codec, ..work })
    }

    /// Stages with it, at a share of a processor.
    pub(super) fn added(&self, stages: Stages, network: usize, share: f64) -> Stages {
        let fragments = fragments(&stages, network);
        let more = |line: WorkLine, codec: f64| Seconds((line.at(fragments) + codec) / share);
        let [tried, expanded] = [stages.compress, stages.decompress].map(|time| time.0 > 0.0);
        let sender = more(self.sender, if tried { self.codec[0] } else { 0.0 });
        let receiver = if expanded { more(self.expander, self.codec[1]) } else { more(self.receiver, 0.0) };
        Stages { sender, receiver, ..stages }
    }
}

/// Seconds that each end took besides these stages.
fn besides(ran: &Transaction, stages: &Stages) -> [f64; 2] {
    [ran.sender - stages.at_sender().0, ran.receiver - stages.at_receiver().0].map(|rest| rest.max(0.0))
}

/// Packets on the wire, by the time that they take.
fn fragments(stages: &Stages, network: usize) -> f64 {
    (stages.transmit.0 * usable(NETWORKS[network].1) / 8.0 / MTU).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_both_payloads() {
        let line = WorkLine::through([(1.0, 12e-6), (53.0, 64e-6)]);
        assert!((line.fragment - 1e-6).abs() < 1e-12 && (line.packet - 11e-6).abs() < 1e-12, "{line:?}");
        assert!((line.at(10.0) - 21e-6).abs() < 1e-12);
        // What chance makes negative is nothing.
        let line = WorkLine::through([(1.0, 5e-6), (53.0, 4e-6)]);
        assert_eq!(line.fragment, 0.0);
    }

    #[test]
    fn stages_have_it_at_both_ends_and_by_fragments() {
        let rates = Parameters::printed();
        let protection = rates.place("3DES", "SHA-1").unwrap();
        let cell = ParameterCell { protection, size: 2, file: 0, network: 3 };
        let stages = rates.stages(cell, None);
        let work = DaemonWork {
            sender: WorkLine { packet: 1e-3, fragment: 1e-4 },
            receiver: WorkLine { packet: 2e-3, fragment: 0.0 },
            expander: WorkLine { packet: 4e-3, fragment: 0.0 },
            codec: [3e-3, 1e-3],
        };
        let more = work.added(stages, cell.network, 0.5);
        // 64,584 bytes behind the IP header in 53 fragments.
        assert!((more.at_sender().0 - stages.at_sender().0 - 2.0 * 6.3e-3).abs() < 1e-9, "{more:?}");
        assert!((more.at_receiver().0 - stages.at_receiver().0 - 4e-3).abs() < 1e-9);
        assert_eq!(more.transmit, stages.transmit);
        let stages = rates.stages(cell, Some(1));
        let expanded = work.added(stages, cell.network, 0.5);
        assert!((expanded.at_receiver().0 - stages.at_receiver().0 - 10e-3).abs() < 1e-9, "{expanded:?}");
        let fragments = fragments(&stages, cell.network);
        let sender = expanded.at_sender().0 - stages.at_sender().0;
        assert!((sender - 2.0 * (4e-3 + 1e-4 * fragments)).abs() < 1e-9, "{expanded:?}");
    }
}
