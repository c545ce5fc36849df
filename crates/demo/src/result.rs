//! What the demonstration found: per file and way, seconds and bytes on the wire; as a table and as JSON.

use std::time::Duration;

use serde_json::{Value, json};
use strait_node::report::{DaemonReport, DecisionReport, TrafficReport};
use strait_scheduler::Rate;
use strait_terminal::decision::runner_up;
use strait_terminal::table::{Side, TextTable};
use strait_terminal::units;
use strait_testbed::sample::SampleFile;
use strait_testbed::{LinkTraffic, ProcessCost};

use crate::path::{DemoPath, LossShare};
use crate::stage::DemoVariant;

/// One file that was moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    /// From the call to `connect` until the sender knew that all had arrived.
    pub(crate) took: Duration,
    /// What crossed the link meanwhile.
    pub(crate) wire: LinkTraffic,
}

/// What a daemon said about itself at the end, and what it used.
#[derive(Clone, Debug)]
pub(crate) struct DemoTunnel {
    /// The site's name.
    pub(crate) name: String,
    /// What `strait show --json` said.
    pub(crate) report: DaemonReport,
    /// Processor time and memory.
    pub(crate) cost: ProcessCost,
}

/// The Ethernet header, which the link counts and the tunnel does not.
const ETHERNET_HEADER: u64 = 14;

impl DemoTunnel {
    /// What it says it put on the wire and took from it, with Ethernet headers as the link counts them.
    fn own_count(&self) -> u64 {
        let passed = self.report.peers.iter().flat_map(|peer| [peer.sent, peer.received]);
        with_ethernet(passed) + self.report.control.wire_bytes
    }
}

/// Bytes on the wire with the Ethernet headers of their datagrams.
fn with_ethernet(passed: impl Iterator<Item = TrafficReport>) -> u64 {
    passed.map(|it| it.wire_bytes + ETHERNET_HEADER * it.datagrams).sum()
}

/// What a site counted beside what the link counted, and what its daemon used.
fn sentence(site: &str, own_count: u64, cost: ProcessCost, measured: &Measured) -> String {
    let link = measured.setup + measured.total().wire.bytes();
    format!(
        "  {site} counts {} on the wire, the link's interfaces {}; {:.2} s of a processor, {} of memory",
        units::bytes(own_count),
        units::bytes(link),
        cost.processor.as_secs_f64(),
        units::bytes(cost.resident_peak)
    )
}

/// Everything about one way of moving the files.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Which way.
    pub(crate) way: DemoVariant,
    /// Bytes on the wire before the first file, both ways: handshakes.
    pub(crate) setup: u64,
    /// The files, in order.
    pub(crate) moved: Vec<Moved>,
    /// What was decided on each file at the end, where there was a choice.
    pub(crate) chosen: Vec<Option<DecisionReport>>,
    /// Packets that the path lost by chance meanwhile, where it does.
    pub(crate) lost: Option<u64>,
    /// The daemons, where there were any.
    pub(crate) tunnels: Vec<DemoTunnel>,
}

/// Of several passes over the ways, the last, with the time and the bytes of each file's middle one by time.
pub(crate) fn middle(mut passes: Vec<Vec<Measured>>) -> Vec<Measured> {
    let Some(mut last) = passes.pop() else { return Vec::new() };
    for (way, measured) in last.iter_mut().enumerate() {
        for (file, moved) in measured.moved.iter_mut().enumerate() {
            let others = passes.iter().filter_map(|pass| pass.get(way)?.moved.get(file));
            let mut all: Vec<Moved> = others.copied().chain([*moved]).collect();
            all.sort_by_key(|moved| moved.took);
            *moved = all.get(all.len() / 2).copied().unwrap_or(*moved);
        }
    }
    last
}

impl Measured {
    /// What the path lost, where it does.
    fn losses(&self) -> Option<String> {
        let total = self.total().wire;
        let packets = total.there.packets + total.back.packets;
        self.lost.map(|lost| format!("{}: the path lost {lost} of {packets} packets", self.way.words()))
    }

    fn total(&self) -> Moved {
        let mut total = Moved { took: Duration::ZERO, wire: LinkTraffic::default() };
        for moved in &self.moved {
            total.took += moved.took;
            total.wire.there.bytes += moved.wire.there.bytes;
            total.wire.there.packets += moved.wire.there.packets;
            total.wire.back.bytes += moved.wire.back.bytes;
            total.wire.back.packets += moved.wire.back.packets;
        }
        total
    }
}

/// The whole demonstration, ready to be printed.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    /// The path.
    pub(crate) path: DemoPath,
    /// What was moved.
    pub(crate) files: &'a [SampleFile],
    /// The figures, in the order of [`DemoVariant::ALL`].
    pub(crate) measured: &'a [Measured],
}

/// The columns' heads, in two lines.
const HEAD: [[&str; 12]; 2] = [
    ["", "", "plain", "", "tunnel", "", "compressed", "", "", "less on", "times as", ""],
    [
        "file",
        "size",
        "seconds",
        "wire",
        "seconds",
        "wire",
        "seconds",
        "wire",
        "goodput",
        "the wire",
        "the tunnel",
        "chosen",
    ],
];

impl Summary<'_> {
    /// For people: the table, and what it comes to.
    pub(crate) fn text(&self) -> String {
        format!(
            "\n{} over {}; \"wire\" is whole Ethernet frames, both ways{}\n\n{}\n{}\n{}",
            self.count(),
            self.path.words(),
            match self.path.link.passes() {
                1 => String::new(),
                passes => format!("; each way was taken {passes} times, the middle one counts"),
            },
            self.table(),
            self.reasons(),
            self.sentences()
        )
    }

    fn count(&self) -> String {
        match self.files.len() {
            1 => "One file".to_owned(),
            count => format!("{count} files"),
        }
    }

    fn table(&self) -> String {
        let [first, second] = HEAD;
        let mut table = TextTable::new(first);
        table.row(second.map(str::to_owned));
        for (index, file) in self.files.iter().enumerate() {
            let moved: Vec<Moved> =
                self.measured.iter().filter_map(|way| way.moved.get(index)).copied().collect();
            let chosen = self.chosen(index).map(|decision| decision.choice.as_str());
            table.row(row(&file.name, file.bytes.len() as u64, &moved, chosen));
        }
        let totals: Vec<Moved> = self.measured.iter().map(Measured::total).collect();
        table.row(row("total", self.size(), &totals, None));
        table.render(0)
    }

    /// What was decided on a file in the end.
    fn chosen(&self, file: usize) -> Option<&DecisionReport> {
        self.measured.last()?.chosen.get(file)?.as_ref()
    }

    /// Why each file was compressed with what it was.
    fn reasons(&self) -> String {
        let one = |(index, file): (usize, &SampleFile)| {
            let decision = self.chosen(index)?;
            let figures = decision.estimate.as_ref().map(|it| {
                format!(
                    "; {} X {:.2}, {:.2} times as fast, limited by the {}; runner-up {}",
                    it.method,
                    it.ratio,
                    it.speedup(),
                    it.bottleneck,
                    runner_up(it)
                )
            });
            Some([
                file.name.clone(),
                decision.choice.clone(),
                format!("{}{}", decision.reason_words(), figures.unwrap_or_default()),
            ])
        };
        let mut table = TextTable::new(["file", "chosen", "because"]).side(1, Side::Left).side(2, Side::Left);
        self.files.iter().enumerate().filter_map(one).for_each(|line| table.row(line));
        if table.is_empty() { String::new() } else { table.render(0) }
    }

    fn size(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.len() as u64).sum()
    }

    fn sentences(&self) -> String {
        let mut lines = Vec::new();
        if let [plain, others @ ..] = self.measured {
            let (size, base) = (self.size(), plain.total());
            lines.extend(plain.losses());
            for measured in others {
                let total = measured.total();
                lines.push(format!(
                    "{}: {} times the plain link's goodput ({} against {}), {} of its bytes on the wire; handshakes took {}",
                    measured.way.words(),
                    times(base.took, total.took),
                    units::per_second(size, total.took),
                    units::per_second(size, base.took),
                    percent(total.wire.bytes(), base.wire.bytes()),
                    units::bytes(measured.setup),
                ));
                lines.extend(measured.losses());
                lines.extend(
                    measured.tunnels.iter().map(|it| sentence(&it.name, it.own_count(), it.cost, measured)),
                );
            }
        }
        lines.join("\n") + "\n"
    }

    /// For programs: every number in bytes and seconds, and what the daemons said.
    pub(crate) fn json(&self) -> String {
        let files: Vec<Value> = self
            .files
            .iter()
            .enumerate()
            .map(|(index, file)| {
                let moved = self.measured.iter().filter_map(|way| Some((way, way.moved.get(index)?)));
                let size = file.bytes.len() as u64;
                let ways: serde_json::Map<String, Value> =
                    moved.map(|(way, moved)| (way.way.word().to_owned(), moved.json(size))).collect();
                json!({ "name": file.name, "bytes": size, "ways": ways, "decision": self.chosen(index) })
            })
            .collect();
        let ways: serde_json::Map<String, Value> = self
            .measured
            .iter()
            .map(|measured| (measured.way.word().to_owned(), measured.json(self.size())))
            .collect();
        let whole = json!({
            "link_bits_per_second": self.path.link.rate().map(Rate::bits),
            "rtt_seconds": self.path.rtt.map(|rtt| rtt.as_secs_f64()),
            "loss": self.path.loss.map(LossShare::share),
            "bytes": self.size(),
            "files": files,
            "total": ways,
        });
        format!("{whole:#}\n")
    }
}

impl Moved {
    fn json(&self, size: u64) -> Value {
        json!({
            "seconds": self.took.as_secs_f64(),
            "wire_bytes": self.wire.bytes(),
            "wire_bytes_there": self.wire.there.bytes,
            "wire_bytes_back": self.wire.back.bytes,
            "wire_packets": self.wire.there.packets + self.wire.back.packets,
            "goodput_bytes_per_second": size as f64 / self.took.as_secs_f64(),
        })
    }
}

impl Measured {
    fn json(&self, size: u64) -> Value {
        let mut value = self.total().json(size);
        let tunnels: Vec<Value> = self
            .tunnels
            .iter()
            .map(|tunnel| {
                json!({
                    "name": tunnel.name,
                    "processor_seconds": tunnel.cost.processor.as_secs_f64(),
                    "memory_bytes": tunnel.cost.resident_peak,
                    "own_wire_bytes": tunnel.own_count(),
                    "report": tunnel.report,
                })
            })
            .collect();
        value["setup_wire_bytes"] = self.setup.into();
        value["lost_packets"] = self.lost.into();
        value["tunnels"] = tunnels.into();
        value
    }
}

/// A line of the table: the three ways; then the last one's bytes against the plain link's, and its time against the
/// tunnel's without compression.
fn row(name: &str, size: u64, moved: &[Moved], chosen: Option<&str>) -> Vec<String> {
    let mut cells = vec![name.to_owned(), units::bytes(size)];
    for way in moved {
        cells.push(format!("{:.2}", way.took.as_secs_f64()));
        cells.push(units::bytes(way.wire.bytes()));
    }
    if let [plain, tunnel, compressed] = moved {
        cells.push(units::per_second(size, compressed.took));
        cells.push(units::ratio(plain.wire.bytes(), compressed.wire.bytes()));
        cells.push(times(tunnel.took, compressed.took));
    }
    cells.push(chosen.unwrap_or_default().to_owned());
    cells
}

/// How many times `short` fits into `long`.
fn times(long: Duration, short: Duration) -> String {
    if short.is_zero() { "-".to_owned() } else { format!("{:.2}", long.as_secs_f64() / short.as_secs_f64()) }
}

/// A part of a whole.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.0} %", 100.0 * part as f64 / whole as f64) }
}

#[cfg(test)]
mod tests;
