//! Speed and memory of Strait, side by side in one run with the plain link and with wireguard-go, as ratios with
//! spread: what `make bench` prints.
//!
//! Each benchmark makes its own two hosts ([`strait_testbed`]) and ends with a table, the targets of the project and
//! whether they are met here. Nothing is asserted: a machine is as fast as it is. The exit code is 0, or 1 when
//! something could not run, or 2 when the system forbids the hosts.
//!
//! Runs of the compared ways alternate (A B C A B C ...), so that ratios are of neighbours in time; each waits until
//! the machine is quiet, and the load found is part of the report.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod acks;
mod age;
mod broker;
mod captures;
mod closed;
mod commands;
mod compare;
mod content;
mod cores;
mod echo;
mod entropy_probe;
mod error;
mod files;
mod flood;
mod history;
mod hostile;
mod idle;
mod interactive;
mod latency;
mod login;
mod paths;
mod payload;
mod peers;
mod random;
mod report;
mod sessionless;
mod small;
mod stage;
mod steps;
mod target;
mod text;
mod throughput;
mod wireguard;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use strait_lab::measure::MachineInfo;
use strait_testbed::{interrupt, sandbox};

use error::Error;
use peers::PeerWay;
use report::{BenchReport, BenchSection, Failed, ReportOrigin};
use stage::{BenchEffort, BenchSetup};

/// Measures speed and memory of Strait beside the plain link and wireguard-go.
///
/// Needs root, or leave to make user namespaces. Takes about five hours; with --quick, about 50 minutes.
#[derive(Debug, Parser)]
#[command(name = "strait-bench", version)]
struct BenchFlags {
    /// Run only this; may be given more than once
    #[arg(long, value_enum, value_name = "NAME")]
    only: Vec<Benchmark>,
    /// Of a benchmark with several sections (paths, hostile, files, commands, login, broker, sessionless, peers), only this: unknown, floods, thin, ...
    #[arg(long, value_name = "NAME", requires = "only")]
    part: Option<String>,
    /// Of the benchmark peers, beside Strait only this tunnel, by its name in the table, such as 'tinc, zlib'; may be given more
    /// than once
    #[arg(long, value_name = "NAME", requires = "only", value_parser = PeerWay::named)]
    tunnel: Vec<PeerWay>,
    /// Of the benchmark files: the two releases between which the delta is measured [default: two that are generated]
    #[arg(long, value_names = ["OLD", "NEW"], num_args = 2, requires = "only")]
    releases: Vec<PathBuf>,
    /// A few seconds each: to see that all is well, not for figures
    #[arg(long)]
    quick: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Write all tables to this file as well, as a page of Markdown with machine, commit, date and command
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    markdown: Option<PathBuf>,
    /// Of the benchmark peers: draw the streams of text into this file as SVG
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    svg: Option<PathBuf>,
    /// The program to measure [default: strait, beside this program]
    #[arg(long, value_name = "PATH")]
    strait: Option<PathBuf>,
    /// Compare with another build: run its strait-bench and this one in turn, and print ratios of pairs
    #[arg(long, value_name = "PATH", conflicts_with_all = ["json", "strait"])]
    against: Option<PathBuf>,
    /// How many pairs
    #[arg(long, value_name = "NUMBER", default_value_t = 9, requires = "against")]
    pairs: usize,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Benchmark {
    /// One TCP stream, unshaped: Gbit/s, processor time, memory
    Throughput,
    /// Round trips while idle
    Latency,
    /// Random data on shaped links, with a compression rule and without
    Random,
    /// Text on shaped links, plain and compressed, each packet alone and aggregated
    Text,
    /// Text on shaped links with history and without, beside ssh -C
    History,
    /// Small packets on a thin link, alone and aggregated: how many arrive
    Small,
    /// Acknowledgements of a download on a link that is thin on the way back
    Acks,
    /// Captures on a thin link, each packet alone and aggregated: wire bytes
    Captures,
    /// Round trips beside a bulk transfer on a thin link
    Interactive,
    /// Round trips on an idle thin link, each packet alone and aggregated
    Idle,
    /// Compressing on one processor and on two
    Engines,
    /// The packet path without I/O: nanoseconds a packet, codecs, ciphers
    Cores,
    /// AH, ESP and IPComp without I/O, alone and together, beside the bare calls
    Steps,
    /// How often the entropy probe errs about whether data would shrink, and what it costs
    EntropyProbe,
    /// Floods from strangers, hostile peers, a hub with many sites, crowds before a directory, a broker that is filled: what others keep
    Hostile,
    /// Long, lossy and unknown paths: one stream, sparse packets, what repair costs
    Paths,
    /// Files between two daemons beside rsync, scp and zstd over ssh: time, bytes, processor, memory
    Files,
    /// Commands without a daemon, from start to end: files beside rsync and zstd with age, round trips, an outage
    Commands,
    /// Logins beside ssh and mosh: a keystroke, a long log, copies over ssh, an outage, what an idle session takes
    Login,
    /// A broker beside zstd, age and curl: thin links, 1 GiB, small objects, many clients of which half are killed
    Broker,
    /// Keys without sessions: a first packet, throughput beside sessions, many peers, an idle pair
    Sessionless,
    /// Packets in the clear of a full tunnel whose daemon, device, rules or routes fail
    Closed,
    /// Strait beside wireguard-go, boringtun, OpenVPN, tinc, Linux IPsec and ssh -w, with compression where they have it
    Peers,
}

impl Benchmark {
    const fn name(self) -> &'static str {
        match self {
            Benchmark::Throughput => "throughput",
            Benchmark::Latency => "latency",
            Benchmark::Random => "random",
            Benchmark::Text => "text",
            Benchmark::History => "history",
            Benchmark::Small => "small",
            Benchmark::Acks => "acks",
            Benchmark::Captures => "captures",
            Benchmark::Interactive => "interactive",
            Benchmark::Idle => "idle",
            Benchmark::Engines => "engines",
            Benchmark::Cores => "cores",
            Benchmark::Steps => "steps",
            Benchmark::EntropyProbe => "entropy-probe",
            Benchmark::Hostile => "hostile",
            Benchmark::Paths => "paths",
            Benchmark::Files => "files",
            Benchmark::Commands => "commands",
            Benchmark::Login => "login",
            Benchmark::Broker => "broker",
            Benchmark::Sessionless => "sessionless",
            Benchmark::Closed => "closed",
            Benchmark::Peers => "peers",
        }
    }

    /// Whether it measures between hosts, and not in memory alone.
    const fn needs_hosts(self) -> bool {
        !matches!(self, Benchmark::Cores | Benchmark::Steps | Benchmark::EntropyProbe | Benchmark::Engines)
    }

    /// Runs it and gives each section to `done` when it is measured.
    fn run(self, setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
        let section = match self {
            Benchmark::Throughput => throughput::run(setting),
            Benchmark::Latency => latency::run(setting),
            Benchmark::Random => random::run(setting),
            Benchmark::Text => text::run(setting),
            Benchmark::History => history::run(setting),
            Benchmark::Small => small::run(setting),
            Benchmark::Acks => acks::run(setting),
            Benchmark::Captures => captures::run(setting),
            Benchmark::Interactive => interactive::run(setting),
            Benchmark::Idle => idle::run(setting),
            Benchmark::Engines => cores::engines::run(setting),
            Benchmark::Cores => cores::run(setting),
            Benchmark::Steps => steps::run(setting),
            Benchmark::EntropyProbe => entropy_probe::run(setting),
            Benchmark::Closed => closed::run(setting),
            Benchmark::Paths => return paths::run(setting, done),
            Benchmark::Files => return files::run(setting, done),
            Benchmark::Commands => return commands::run(setting, done),
            Benchmark::Login => return login::run(setting, done),
            Benchmark::Broker => return broker::run(setting, done),
            Benchmark::Hostile => return hostile::run(setting, done),
            Benchmark::Sessionless => return sessionless::run(setting, done),
            Benchmark::Peers => return peers::run(setting, done),
        };
        section.map(done)
    }
}

fn main() -> ExitCode {
    let flags = BenchFlags::parse();
    if let Some(old) = &flags.against {
        return match compare::program(old).and_then(|old| compare::run(&flags, &old)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let wanted =
        if flags.only.is_empty() { Benchmark::value_variants().to_vec() } else { flags.only.clone() };
    // Before any thread is started: this may start the program again inside a user namespace.
    if wanted.iter().any(|it| it.needs_hosts())
        && let Err(error) = sandbox::enter()
    {
        eprintln!("error: {error}");
        return ExitCode::from(2);
    }
    interrupt::watch();
    let setting = setting(&flags);
    let mut report = BenchReport { machine: MachineInfo::this(), sections: Vec::new(), failed: Vec::new() };
    if !flags.json {
        println!("{}; both ends of everything share them\n", report.machine);
    }
    for benchmark in wanted {
        let mut done = |section: BenchSection| {
            if !flags.json {
                println!("{}", section.text());
            }
            report.sections.push(section);
        };
        match benchmark.run(&setting, &mut done) {
            Ok(()) => {}
            Err(Error::Testbed(error @ strait_testbed::Error::Interrupted(_))) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!("error: {} could not run: {error}", benchmark.name());
                report.failed.push(Failed { name: benchmark.name(), cause: error.to_string() });
            }
        }
    }
    if flags.json {
        print!("{}", report.json());
    }
    if let Err(error) = write_files(&flags, &report) {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Writes the page and the drawing, where they are wanted.
fn write_files(flags: &BenchFlags, report: &BenchReport) -> Result<(), Error> {
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).map_err(Error::doing(format!("write {}", path.display())))
    };
    let origin = ReportOrigin::here();
    if let Some(path) = &flags.markdown {
        write(path, report.markdown(&origin))?;
    }
    if let Some(path) = &flags.svg {
        let source = format!("{}, commit {}, {}", report.machine, origin.commit, origin.date);
        match peers::drawing(&report.sections, &source) {
            Some(drawing) => write(path, drawing.svg())?,
            None => eprintln!("nothing to draw: --svg needs the benchmark peers"),
        }
    }
    Ok(())
}

/// `strait` lies beside this program, and what is installed for comparison in a folder beside that.
fn setting(flags: &BenchFlags) -> BenchSetup {
    let this = std::env::current_exe().unwrap_or_default();
    let folder = this.parent().unwrap_or(Path::new("."));
    BenchSetup {
        program: flags.strait.clone().unwrap_or_else(|| folder.join("strait")),
        cache: folder.parent().unwrap_or(folder).join("wireguard-go"),
        effort: if flags.quick { BenchEffort::Quick } else { BenchEffort::Full },
        part: flags.part.clone(),
        tunnels: flags.tunnel.clone(),
        releases: flags.releases.clone().try_into().ok(),
    }
}
