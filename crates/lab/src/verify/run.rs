//! One stream through the tunnel, and what was seen of it.

use std::fs;
use std::net::SocketAddr;

use serde_json::Value;
use strait_compress::Codec;
use strait_testbed::{ProcessCost, Stream, TestTunnel};

use super::grid::{GridPlace, VerifyGrid};
use crate::error::Error;

/// Ports of the streams: sixteen a way, one a content.
const FIRST_PORT: u16 = 7_100;
const PORTS_A_WAY: u16 = 16;

/// How a stream is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompressionSetting {
    /// Not at all: no rule covers it.
    Plain,
    /// With one of the grid's methods, by its place.
    Method(usize),
    /// As the tunnel chooses.
    Auto,
}

impl CompressionSetting {
    /// In the order of runs: what is compared stands near what it is compared with.
    pub(super) fn all(grid: &VerifyGrid) -> impl Iterator<Item = CompressionSetting> + use<> {
        let methods = (0..grid.methods.len()).map(CompressionSetting::Method);
        std::iter::once(CompressionSetting::Plain).chain(methods).chain([CompressionSetting::Auto])
    }

    pub(super) fn name(self, grid: &VerifyGrid) -> String {
        match self {
            CompressionSetting::Plain => "without".to_owned(),
            CompressionSetting::Method(place) => grid.methods[place].to_string(),
            CompressionSetting::Auto => "auto".to_owned(),
        }
    }

    fn number(self, grid: &VerifyGrid) -> usize {
        match self {
            CompressionSetting::Plain => 0,
            CompressionSetting::Method(place) => 1 + place,
            CompressionSetting::Auto => 1 + grid.methods.len(),
        }
    }

    fn ports(self, grid: &VerifyGrid) -> (u16, u16) {
        let number = u16::try_from(self.number(grid)).unwrap_or(u16::MAX / PORTS_A_WAY);
        let first = FIRST_PORT + number * PORTS_A_WAY;
        (first, first + PORTS_A_WAY - 1)
    }
}

/// A rule a way, told apart by ports: one tunnel, one link, all else equal.
pub(super) fn rules(grid: &VerifyGrid) -> String {
    CompressionSetting::all(grid)
        .filter(|way| *way != CompressionSetting::Plain)
        .map(|way| {
            let (first, last) = way.ports(grid);
            format!(
                "\n[[compress]]\nfrom = \"10.77.0.0/24\"\nto = \"10.77.0.0/24\"\nprotocol = \"tcp\"\n\
                 ports = [\"{first}-{last}\"]\ndomain = \"lab\"\ncodec = \"{}\"\n",
                way.name(grid)
            )
        })
        .collect()
}

/// What was seen of one stream.
#[derive(Clone, Debug)]
pub(super) struct StreamResult {
    /// Bytes of content a second.
    pub(super) goodput: f64,
    /// What was done for it.
    pub(super) work: Work,
    /// Blocks that were made, if any were.
    pub(super) blocks: Option<AverageBlocks>,
    /// What the tunnel said of the stream at the end, if it decided anything.
    pub(super) decision: Option<Value>,
    /// The share of the processors that others used meanwhile.
    pub(super) others: f64,
}

/// Bytes on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AverageBlocks {
    /// Of a block, before.
    pub(super) before: f64,
    /// Of a block, after.
    pub(super) after: f64,
    /// That went beside it as they were.
    pub(super) beside: f64,
}

/// Seconds of processor time for each inner byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Work {
    /// The sending daemon's thread on the way out.
    pub sender: f64,
    /// The receiving daemon's thread on the way in.
    pub receiver: f64,
    /// The hosts: who writes the content and who reads it.
    pub hosts: f64,
    /// The daemons' other threads, and the kernel outside of any process: for each datagram.
    pub rest: f64,
}

/// One stream of a content, one way.
pub(super) fn run(
    tunnel: &TestTunnel,
    grid: &VerifyGrid,
    place: &GridPlace,
    content: usize,
    way: CompressionSetting,
) -> Result<StreamResult, Error> {
    let port = way.ports(grid).0 + u16::try_from(content).unwrap_or(0);
    let stream = Stream {
        from: &tunnel.hosts.a,
        to: &tunnel.hosts.b,
        address: SocketAddr::new(tunnel.far_address(), port),
        content: &grid.contents[content].bytes,
        warm_up: place.warm_up,
        window: place.window,
    };
    let mut decision = None;
    let arrived = stream.run(|| {
        let [near, far] = tunnel.daemons();
        let near = near.show()?;
        decision = decided(&near, port);
        StreamCounters::at(&near, &far.show()?, tunnel.costs()?)
    })?;
    let passed = arrived.after.since(&arrived.before);
    Ok(StreamResult {
        goodput: arrived.rate() / 8.0,
        work: passed.work(),
        blocks: passed.blocks(),
        decision,
        others: passed.others(),
    })
}

/// Counters at one moment, or what passed between two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct StreamCounters {
    sender: f64,
    receiver: f64,
    daemons: f64,
    hosts: f64,
    /// Of all processors: outside of any process, busy, and available.
    kernel: f64,
    busy: f64,
    all: f64,
    inner: f64,
    blocks: f64,
    before: f64,
    after: f64,
}

impl StreamCounters {
    fn at(near: &Value, far: &Value, costs: [ProcessCost; 2]) -> Result<StreamCounters, Error> {
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let sum = |key: &str| {
            let codecs = near["codecs"].as_array().into_iter().flatten();
            codecs.filter(|it| it["codec"] != Codec::None.name()).map(|it| number(&it[key])).sum()
        };
        let stat = fs::read_to_string("/proc/stat").map_err(Error::NoLoad)?;
        let [kernel, busy, all] = processors(&stat);
        Ok(StreamCounters {
            sender: engine(near, "out"),
            receiver: engine(far, "in"),
            daemons: costs.iter().map(|cost| cost.processor.as_secs_f64()).sum(),
            hosts: ProcessCost::of_process(std::process::id())?.processor.as_secs_f64(),
            kernel,
            busy,
            all,
            inner: number(&near["peers"][0]["sent"]["bytes"]),
            blocks: sum("sent_blocks"),
            before: sum("input_bytes"),
            after: sum("output_bytes"),
        })
    }

    fn since(&self, earlier: &StreamCounters) -> StreamCounters {
        StreamCounters {
            sender: self.sender - earlier.sender,
            receiver: self.receiver - earlier.receiver,
            daemons: self.daemons - earlier.daemons,
            hosts: self.hosts - earlier.hosts,
            kernel: self.kernel - earlier.kernel,
            busy: self.busy - earlier.busy,
            all: self.all - earlier.all,
            inner: self.inner - earlier.inner,
            blocks: self.blocks - earlier.blocks,
            before: self.before - earlier.before,
            after: self.after - earlier.after,
        }
    }

    fn work(&self) -> Work {
        let own = self.sender + self.receiver;
        Work {
            sender: self.sender / self.inner,
            receiver: self.receiver / self.inner,
            hosts: self.hosts / self.inner,
            rest: ((self.daemons - own).max(0.0) + self.kernel) / self.inner,
        }
    }

    fn blocks(&self) -> Option<AverageBlocks> {
        (self.blocks > 0.0).then(|| AverageBlocks {
            before: self.before / self.blocks,
            after: self.after / self.blocks,
            beside: (self.inner - self.before).max(0.0) / self.blocks,
        })
    }

    fn others(&self) -> f64 {
        ((self.busy - self.daemons - self.hosts - self.kernel) / self.all).max(0.0)
    }
}

/// Processor time of a daemon's thread whose name ends so.
fn engine(report: &Value, end: &str) -> f64 {
    let engines = report["threads"].as_array().into_iter().flatten();
    let named = engines.filter(|it| it["name"].as_str().is_some_and(|name| name.ends_with(end)));
    named.filter_map(|it| it["cpu_seconds"].as_f64()).sum()
}

/// Seconds of all processors together (proc(5), in hundredths): for interrupts, at work, and altogether.
fn processors(stat: &str) -> [f64; 3] {
    let columns = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    // User, nice, system, idle, waiting, interrupts, soft interrupts, stolen; guests are in the first two.
    let columns: Vec<f64> =
        columns.take(8).filter_map(|it| it.parse().ok()).map(|it: f64| it / 100.0).collect();
    let [user, nice, system, idle, waiting, hard, soft, stolen] = columns[..] else { return [0.0; 3] };
    let busy = user + nice + system + hard + soft + stolen;
    [hard + soft, busy, busy + idle + waiting]
}

/// What stands decided on the flow to `port`.
fn decided(report: &Value, port: u16) -> Option<Value> {
    let decisions = report["decisions"].as_array().into_iter().flatten();
    let flow =
        decisions.filter(|it| it["class"].as_str().is_some_and(|class| class.ends_with(&format!(":{port}"))));
    flow.max_by_key(|it| it["bytes_per_second"].as_u64()).cloned()
}

#[cfg(test)]
mod tests;
