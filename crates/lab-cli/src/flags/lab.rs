//! Flags of `lab` and of its tables.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueHint};
use strait_compress::Method;
use strait_ipsec::{Mix, Padding};
use strait_lab::broker::BrokerNetwork;
use strait_lab::crime::CrimePlace;
use strait_lab::paths::PathLab;
use strait_scheduler::{ParseRateError, Rate};
use strait_terminal::program::TunnelProgram;

/// Clients or processors of a pipeline at most: more than any server has, and few enough to be read.
const MOST: u32 = 1_000_000;

/// Flags of `lab`.
#[derive(Debug, Args)]
pub(crate) struct Lab {
    /// Which tables.
    #[command(subcommand)]
    pub(crate) tables: LabTables,
}

/// Tables of McGregor and Lee, Performance Impact of Data Compression on Virtual Private Network Transactions, figures of Taddeo,
/// Ferrante and Piuri, Scheduling Small Packets in IPSec-based Systems, tables of Braun, Claffy and Gross, Measured interference of
/// network security mechanisms with network performance, the table of Kallio, Performance comparison of streamed encryption and
/// compression, those of Muchsel, ENskip Performance, and the attack of Rizzo and Duong, CRIME.
#[derive(Debug, Subcommand)]
pub(crate) enum LabTables {
    /// How fast ciphers and hashes are (Table 1 of McGregor and Lee)
    Crypto(LabOutput),
    /// What encryption and authentication cost a transaction, from 56 kbit/s to 100 Gbit/s (Table 2)
    Slowdown(LabOutput),
    /// How far codecs shrink the blocks of files, and how fast (Tables 4, 5 and 6)
    Codecs(LabCodecs),
    /// Where compression pays: every combination of algorithms, payload, data and link (Table 7, Figures 6 to 9)
    Vpn(LabVpn),
    /// What a window over packets of one association gives a gateway with an accelerator (Figures 3 to 6 of Taddeo et al.)
    Sched(LabSched),
    /// Files over a modem that compresses, encrypted or not, and packets of a keystroke (Tables 1 to 3 of Braun et al.)
    Klogin(LabKlogin),
    /// Files to a broker, compressed and encrypted on their way: from disk to disk, over a fast network and a slow one (Kallio)
    Broker(LabBroker),
    /// A file between hosts whose packet keys travel with the packets, by algorithm, and pings by what is cached of their keys (Muchsel)
    Enskip(LabEnskip),
    /// The model's speedups beside those of real tunnels between two hosts here, and whether `auto` chooses the best
    Verify(LabVerify),
    /// What a scripted client learns of a cookie from lengths, by policy, codec and place (Rizzo and Duong, CRIME)
    Crime(LabCrime),
    /// What header contexts, history and a byte cache save on links from 14.4 kbit/s to 1 Gbit/s, computed
    History(LabOutput),
    /// The estimated link rate beside the true one over time, on scripted paths in virtual time
    Paths(LabPaths),
}

/// The form in which figures are printed.
#[derive(Debug, Args)]
pub(crate) struct LabForm {
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Print figures as comma-separated values, a cell a line, instead of tables
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

/// The form of a lab report, and how much is measured for it.
#[derive(Debug, Args)]
pub(crate) struct LabOutput {
    /// The form in which figures are printed.
    #[command(flatten)]
    pub(crate) form: LabForm,
    /// Measure for a few seconds only: to see that all is well, not for figures
    #[arg(long)]
    pub(crate) quick: bool,
}

/// Flags of `lab codecs`.
#[derive(Debug, Args)]
pub(crate) struct LabCodecs {
    /// The files to draw blocks from, such as the Calgary corpus [default: generated files]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) corpus: Option<PathBuf>,
    /// Measure these methods, such as deflate-6, lzs or zstd-3 [default: the paper's two and some of each other codec]
    #[arg(long = "codec", value_name = "METHOD", num_args = 1..)]
    pub(crate) codecs: Vec<Method>,
    /// What is printed, and how much is measured.
    #[command(flatten)]
    pub(crate) output: LabOutput,
}

/// Flags of `lab vpn`.
#[derive(Debug, Args)]
pub(crate) struct LabVpn {
    /// Compute from what this machine measures, with today's algorithms and links too, instead of from the paper's figures
    #[arg(long, group = "blocks")]
    pub(crate) here: bool,
    /// Measure Figures 6 to 9 with tunnels between hosts in network namespaces that are as slow as the paper's; with --pipeline, a hub of
    /// clients. It takes a strait with the feature danger-legacy, and half an hour
    #[arg(long, group = "blocks")]
    pub(crate) measure: bool,
    /// The files to draw blocks from, such as the Calgary corpus [default: generated files]
    #[arg(long, value_name = "FOLDER", requires = "blocks", value_hint = ValueHint::DirPath)]
    pub(crate) corpus: Option<PathBuf>,
    /// Let stages work at the same time on different packets: the slowest sets the pace, instead of the sum of all
    #[arg(long)]
    pub(crate) pipeline: bool,
    /// Clients that share the link and the server of the pipeline
    #[arg(long, value_name = "NUMBER", requires = "pipeline", default_value = "1", value_parser = count)]
    pub(crate) clients: NonZeroU32,
    /// Processors of the server, and of each client
    #[arg(long, value_name = "NUMBER", requires = "pipeline", default_value = "1", value_parser = count)]
    pub(crate) processors: NonZeroU32,
    /// Also draw Figures 6 to 9, and where each codec breaks even, into this folder as SVG and PNG
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) figures: Option<PathBuf>,
    /// The printed form (all combinations with --json and --csv, all measured cells with --json), and how much is measured.
    #[command(flatten)]
    pub(crate) output: LabOutput,
    /// The program of the nodes that are measured.
    #[command(flatten)]
    pub(crate) program: TunnelProgram,
}

/// Flags of `lab sched`.
#[derive(Debug, Args)]
pub(crate) struct LabSched {
    /// Lengths and destinations of the pattern that the paper takes from a trace: a capture, comma-separated values with columns
    /// size and dst, or a text trace of the Internet Traffic Archive [default: one that is made]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,
    /// Also draw Figures 3 to 6, and latency by load, into this folder as SVG and PNG
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) figures: Option<PathBuf>,
    /// What is printed (all runs with --json), and how much is simulated.
    #[command(flatten)]
    pub(crate) output: LabOutput,
}

/// Flags of `lab klogin`.
#[derive(Debug, Args)]
pub(crate) struct LabKlogin {
    /// The server of OpenSSH into which keystrokes go as well [default: /usr/sbin/sshd, if it is there]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub(crate) sshd: Option<PathBuf>,
    /// The rate of a line of your own, such as 28.8kbit: keystrokes go over it, and a file beside the paper's [default: 14.4kbit]
    #[arg(long, value_name = "RATE")]
    pub(crate) line: Option<Rate>,
    /// Its round trip without what packets take by their length, such as 300ms [default: 80ms]
    #[arg(long, value_name = "TIME", value_parser = strait_node::config::duration)]
    pub(crate) rtt: Option<Duration>,
    /// Also send this file over it, its first 1,000,000 bytes at most [default: the paper's text]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// What is printed (each keystroke with its packets with --json), and how much is made.
    #[command(flatten)]
    pub(crate) output: LabOutput,
    /// Whose `strait login` keystrokes go into as well.
    #[command(flatten)]
    pub(crate) program: TunnelProgram,
}

/// Flags of `lab broker`.
#[derive(Debug, Args)]
pub(crate) struct LabBroker {
    /// Store this file as well, its first 64 MiB at most, beside the generated ones
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Also measure the table with strait put, a broker and strait fetch between hosts in network namespaces, over these networks
    /// [default: both; fast takes some two minutes, slow some ten]
    #[arg(long, value_name = "NETWORK", num_args = 0.., value_parser = PossibleValuesParser::new(BrokerNetwork::ALL.map(BrokerNetwork::key)))]
    pub(crate) measure: Option<Vec<String>>,
    /// Also draw speeds, load and rates by link into this folder as SVG and PNG
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) figures: Option<PathBuf>,
    /// What is printed, and how much is measured.
    #[command(flatten)]
    pub(crate) output: LabOutput,
    /// The program of the nodes that are measured.
    #[command(flatten)]
    pub(crate) program: TunnelProgram,
}

/// Flags of `lab enskip`.
#[derive(Debug, Args)]
pub(crate) struct LabEnskip {
    /// Send this file in the place of generated C source, its first 1.5 MB at most
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Also draw rates by algorithm and by share of a processor, and round trips by cache, into this folder as SVG and PNG
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) figures: Option<PathBuf>,
    /// What is printed, and how much is measured.
    #[command(flatten)]
    pub(crate) output: LabOutput,
    /// Whose tunnels carry the file as well.
    #[command(flatten)]
    pub(crate) program: TunnelProgram,
}

/// Flags of `lab verify`.
#[derive(Debug, Args)]
pub(crate) struct LabVerify {
    /// These links only, such as 10Mbit; `unshaped` is as fast as memory [default: six from 1.5Mbit on]
    #[arg(long = "link", value_name = "RATE", num_args = 1.., value_parser = link)]
    pub(crate) links: Vec<Option<Rate>>,
    /// These caps on blocks only, in bytes [default: 65536 and 4096]
    #[arg(long = "block", value_name = "BYTES", num_args = 1.., value_parser = clap::value_parser!(u32).range(2_048..=65_536))]
    pub(crate) blocks: Vec<u32>,
    /// These methods only [default: all that `auto` chooses among]
    #[arg(long = "codec", value_name = "METHOD", num_args = 1..)]
    pub(crate) codecs: Vec<Method>,
    /// Send the Calgary corpus's pic, trans and book1 from this folder, instead of generated pages and records
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) corpus: Option<PathBuf>,
    /// The form in which figures are printed.
    #[command(flatten)]
    pub(crate) form: LabForm,
    /// A few links and methods, a second each: to see that all is well, not for figures
    #[arg(long)]
    pub(crate) quick: bool,
    /// Which program runs the tunnels.
    #[command(flatten)]
    pub(crate) program: TunnelProgram,
}

/// Flags of `lab crime`.
#[derive(Debug, Args)]
pub(crate) struct LabCrime {
    /// Rules with these ways to pad blocks only [default: all]
    #[arg(long = "padding", value_name = "NAME", num_args = 1.., value_parser = PossibleValuesParser::new(Padding::ALL.map(Padding::name)))]
    pub(crate) paddings: Vec<String>,
    /// Rules with these ways to mix flows only [default: all]
    #[arg(long = "mix", value_name = "NAME", num_args = 1.., value_parser = PossibleValuesParser::new(Mix::ALL.map(Mix::name)))]
    pub(crate) mixes: Vec<String>,
    /// Rules that pause after blocks that are nearly equal, or that do not [default: both]
    #[arg(long, value_name = "BOOLEAN")]
    pub(crate) pause: Option<bool>,
    /// These places of the client's packets only [default: all]
    #[arg(long = "place", value_name = "NAME", num_args = 1.., value_parser = PossibleValuesParser::new(CrimePlace::ALL.map(CrimePlace::key)))]
    pub(crate) places: Vec<String>,
    /// These methods only, such as deflate-6 [default: lz4, deflate-6 and zstd-3]
    #[arg(long = "codec", value_name = "METHOD", num_args = 1..)]
    pub(crate) codecs: Vec<Method>,
    /// Cookies of each cell of the table
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pub(crate) cookies: u64,
    /// Packets of the client for each cookie
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(500..=10_000_000))]
    pub(crate) packets: u64,
    /// What cookies and fillers follow from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The form in which figures are printed.
    #[command(flatten)]
    pub(crate) form: LabForm,
    /// Two cookies and 1,000 packets each: to see that all is well, not for figures
    #[arg(long, conflicts_with_all = ["cookies", "packets"])]
    pub(crate) quick: bool,
}

/// Flags of `lab paths`.
#[derive(Debug, Args)]
pub(crate) struct LabPaths {
    /// Draw each path into this folder as SVG and PNG
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// These paths only [default: all]
    #[arg(long = "path", value_name = "NAME", num_args = 1.., value_parser = PossibleValuesParser::new(PathLab::names()))]
    pub(crate) paths: Vec<String>,
    /// The recorded rate of a cellular link, in mahimahi's format: milliseconds at which it had room for 1,504 bytes, a line each
    /// [default: a scripted stand-in]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,
    /// What loss, jitter and the scripted changes of shared links follow from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The form in which figures are printed.
    #[command(flatten)]
    pub(crate) form: LabForm,
    /// Ten seconds of each path: to see that all is well, not for figures
    #[arg(long)]
    pub(crate) quick: bool,
}

/// A number of clients or of processors.
fn count(given: &str) -> Result<NonZeroU32, String> {
    let number = given.parse::<NonZeroU32>().ok().filter(|number| number.get() <= MOST);
    number.ok_or_else(|| format!("write a whole number from 1 to {MOST}"))
}

/// The rate of a link, or none for one as fast as memory.
fn link(given: &str) -> Result<Option<Rate>, ParseRateError> {
    if given == "unshaped" { Ok(None) } else { given.parse().map(Some) }
}
