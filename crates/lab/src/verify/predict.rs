//! What the model says of a stream.

use std::time::Duration;

use strait_compress::chooser::PerByteCost;
use strait_compress::{Codecs, Method};
use strait_model::{BitRate, Bytes, Cost, Pipeline, PipelineSegment, Seconds, Stages};
use strait_wire::block;

use super::content::Content;
use super::run::{AverageBlocks, Work};
use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};
use crate::rate;

/// Blocks that codecs are timed on, and how many bytes of content: what the tunnel's cap is, and a packet.
const SIZES: [usize; 2] = [1_400, 65_536];
const TIMED: usize = 1 << 19;
const STOPWATCH: RepeatTimer = RepeatTimer { repeats: 3, least: Duration::from_millis(10) };
/// Bytes of an inner packet: the tunnel's usual MTU.
const PACKET: f64 = 1_420.0;
/// Bytes of payload of a datagram on the testbed's links, and what is around it there: Ethernet, IPv4, UDP, ESP.
const ROOM: f64 = 1_446.0;
const AROUND: f64 = 68.0;

/// What a method takes on one content.
#[derive(Clone, Copy, Debug)]
pub(super) struct MethodTimes {
    pub(super) compress: Cost,
    pub(super) expand: Cost,
}

impl MethodTimes {
    /// Does nothing, in no time.
    pub(super) const NONE: MethodTimes = MethodTimes { compress: Cost::FREE, expand: Cost::FREE };

    /// Timed here, on the content.
    pub(super) fn timed(method: Method, content: &Content) -> Result<MethodTimes, Error> {
        let mut codecs = Codecs::new();
        let mut points = Vec::new();
        for size in SIZES {
            let blocks: Vec<&[u8]> = content.bytes.chunks_exact(size).take(TIMED / size).collect();
            let compress = rate::compress(STOPWATCH, &mut codecs, method, &blocks);
            let made = rate::compressed(&mut codecs, method, &blocks)?;
            let made: Vec<&[u8]> = made.iter().map(Vec::as_slice).collect();
            let expand = rate::expand(STOPWATCH, &mut codecs, method.codec, &made, size)?;
            points.push([compress, expand].map(|sample| (Bytes(size as u64), whole(&sample, size))));
        }
        let line = |part: usize| Cost::through(points[0][part], points[1][part]);
        Ok(MethodTimes { compress: line(0), expand: line(1) })
    }
}

/// From nanoseconds a byte to what a block takes.
fn whole(nanos: &RunValues, size: usize) -> Seconds {
    Seconds(nanos.spread().map_or(0.0, |it| it.median) * 1e-9 * size as f64)
}

/// A tunnel without compression.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainTunnelTimes {
    /// The link's rate; nothing where it does not limit.
    pub(super) link: Option<BitRate>,
    /// What is done for every byte.
    pub(super) work: Work,
    /// Processors that everything shares.
    pub(super) processors: usize,
}

impl PlainTunnelTimes {
    /// How many times faster the tunnel is with a codec that makes such blocks, and what limits it then.
    pub(super) fn speedup(&self, codec: &MethodTimes, blocks: AverageBlocks) -> (f64, PipelineSegment) {
        let (limit, with) = self.slowest(codec, blocks);
        let plain = AverageBlocks { before: 0.0, after: 0.0, beside: blocks.before + blocks.beside };
        let (_, without) = self.slowest(&MethodTimes::NONE, plain);
        (without / with, limit)
    }

    /// What sets the pace of blocks and what goes beside them, and at which.
    fn slowest(&self, codec: &MethodTimes, blocks: AverageBlocks) -> (PipelineSegment, Seconds) {
        let AverageBlocks { before, after, beside } = blocks;
        let (inner, outer) = shares();
        let handled = |work: f64| Seconds(work * (inner * before + outer * after + beside));
        let datagrams = (after / (ROOM - block::HEADER_LEN as f64)).ceil() + beside / PACKET;
        let wire = after + beside + AROUND * datagrams;
        let block = Bytes(before as u64);
        let stages = Stages {
            compress: codec.compress.of(block),
            sender: handled(self.work.sender),
            transmit: self.link.map_or(Seconds(0.0), |rate| rate.byte() * wire),
            receiver: handled(self.work.receiver),
            decompress: codec.expand.of(block),
            ..Stages::default()
        };
        let hosts = self.work.hosts * (before + beside) + self.work.rest * (after + beside);
        let all =
            (stages.at_sender() + stages.at_receiver() + Seconds(hosts)) * (1.0 / self.processors as f64);
        let apart = Pipeline::SIMPLE.slowest(&stages);
        if all > apart.1 { (PipelineSegment::Both, all) } else { apart }
    }
}

/// Of what a daemon does for a byte, what it does for the inner packet's and what for the datagram's.
fn shares() -> (f64, f64) {
    let PerByteCost { inner, outer, crypto } = PerByteCost::MEASURED;
    let all = inner + outer + crypto;
    (inner / all, (outer + crypto) / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work = Work { sender: 1e-9, receiver: 2e-9, hosts: 0.5e-9, rest: 0.1e-9 };
    const SLOW: MethodTimes = MethodTimes {
        compress: Cost { set_up: Seconds(1e-6), per_byte: Seconds(10e-9) },
        expand: Cost::FREE,
    };

    const BLOCKS: AverageBlocks = AverageBlocks { before: 64_000.0, after: 16_000.0, beside: 0.0 };

    fn tunnel(megabits: Option<f64>) -> PlainTunnelTimes {
        PlainTunnelTimes { link: megabits.and_then(BitRate::megabits), work: WORK, processors: 2 }
    }

    #[test]
    fn on_a_thin_link_the_ratio_decides() {
        let (speedup, limit) = tunnel(Some(1.0)).speedup(&SLOW, BLOCKS);
        // By hand: 64,000 bytes with 68 around each 1,420, over 16,000 with 68 around each of 12.
        let expected = (64_000.0 + 68.0 * 64_000.0 / 1_420.0) / (16_000.0 + 68.0 * 12.0);
        assert!((speedup - expected).abs() < 1e-9 && limit == PipelineSegment::Link, "{speedup} {limit:?}");
    }

    #[test]
    fn uncompressed_bytes_beside_blocks_gain_nothing() {
        let half = AverageBlocks { beside: 64_000.0, ..BLOCKS };
        let (all, some) =
            (tunnel(Some(1.0)).speedup(&SLOW, BLOCKS).0, tunnel(Some(1.0)).speedup(&SLOW, half).0);
        assert!((some - 2.0 / (1.0 + 1.0 / all)).abs() < 1e-9, "{some} beside {all}");
    }

    #[test]
    fn slowest_processor_limits_speed_without_link() {
        // By hand: the receiver's 2 ns a byte against the 10 of the codec and the sender's share of 1.
        let (speedup, limit) = tunnel(None).speedup(&SLOW, BLOCKS);
        let (inner, outer) = shares();
        let with = 1e-6 + 64_000.0 * 10e-9 + 1e-9 * (inner * 64_000.0 + outer * 16_000.0);
        assert!(
            (speedup - 64_000.0 * 2e-9 / with).abs() < 1e-9 && limit == PipelineSegment::Sender,
            "{speedup} {limit:?}"
        );
    }

    #[test]
    fn shared_processors_limit_where_each_end_alone_would_not() {
        let busy = PlainTunnelTimes { work: Work { hosts: 20e-9, ..WORK }, ..tunnel(None) };
        let (speedup, limit) = busy.speedup(&SLOW, BLOCKS);
        assert!(speedup < 1.0 && limit == PipelineSegment::Both, "{speedup} {limit:?}");
        let alone = PlainTunnelTimes { processors: 64, ..busy };
        assert_eq!(alone.speedup(&SLOW, BLOCKS).1, PipelineSegment::Sender);
    }
}
