//! A real hub with many peers that have no session, each with a card in the configuration: how long it takes to start, what it
//! needs, and whether it answers.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use strait_keying::Capabilities;
use strait_keying::sessionless::{EpochLength, KemKey, KeyCard};
use strait_lab::measure::{RunValues, settle};
use strait_testbed::{Extra, LinkSpec, Site, TwoHosts, Workdir};

use super::peers::{identity, wrong};
use super::stage::Keying;
use crate::echo::{Echoes, within};
use crate::error::Error;
use crate::files::{own_memory, tree};
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// MiB, all processes of the daemon.
const MEMORY: Target = Target::AtMost(512.0);
const PEERS: u32 = 10_000;
/// RFC 2544's addresses for benchmarks: where peers are said to be. What hosts of the testbed have is elsewhere in it.
const OUTSIDE: u32 = u32::from_be_bytes([198, 19, 0, 1]);
/// Inside the tunnel.
const INSIDE: u32 = u32::from_be_bytes([10, 78, 0, 1]);
const COLUMNS: [&str; 4] =
    ["start, s", "memory, all processes, MiB", "`strait show --json`, s", "ping of one of them, ms"];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, peers) = setting.effort.pick((5, PEERS), (1, PEERS));
    let title = format!(
        "a daemon with {peers} peers without sessions in its configuration, each with a card that has an ML-KEM key, {runs} runs, \
         median (min-max)"
    );
    let mut section = BenchSection::new("sessionless: daemon", title, &COLUMNS);
    section.notes.push(
        "start: from the command to ready, with the checks of all cards; memory that is a process's own (RssAnon and RssShmem), after \
         `strait show` and the ping"
            .to_owned(),
    );
    let mut values: [RunValues; COLUMNS.len()] = Default::default();
    let hub = ManyPeers::set(setting, peers)?;
    for run in 1..=runs {
        section.before.push(settle()?);
        for ((values, value), name) in values.iter_mut().zip(hub.measure(run)?).zip(COLUMNS) {
            progress(section.name, run, name, value, "");
            values.push(value);
        }
    }
    section.judge(format!("memory of a daemon with {peers} peers, MiB"), values[1].clone(), MEMORY);
    section.row(format!("{peers} peers"), values);
    Ok(section)
}

/// A hub whose configuration has many peers, of which one is there.
struct ManyPeers {
    sites: [Site; 2],
    hosts: TwoHosts,
    config: PathBuf,
    peer: PathBuf,
    _dir: Workdir,
}

impl ManyPeers {
    fn set(setting: &BenchSetup, peers: u32) -> Result<ManyPeers, Error> {
        setting.has_program()?;
        let hosts = TwoHosts::direct(LinkSpec::unshaped())?;
        let dir = Workdir::create()?;
        let sites = Site::pair(&setting.program, &hosts, dir.path())?;
        let keying = format!("keying = \"{}\"\n", Keying::Sessionless.name());
        let extra = Extra { peer: &keying, ..Extra::default() };
        let peer = sites[0].configure("tunnel", &[&sites[1]], extra)?;
        let mut text = sites[1].configuration(&[&sites[0]], extra);
        for number in 0..peers - 1 {
            // Writing to a text does not fail.
            let _ = write!(text, "{}", section_of(number)?);
        }
        let config = sites[1].folder().join("many.toml");
        fs::write(&config, text).map_err(Error::doing("write a configuration"))?;
        Ok(ManyPeers { sites, hosts, config, peer, _dir: dir })
    }

    fn measure(&self, run: usize) -> Result<[f64; COLUMNS.len()], Error> {
        let [site, hub] = &self.sites;
        let _site = site.start(&self.peer, &format!("run{run}"))?;
        let start = Instant::now();
        let daemon = hub.start(&self.config, &format!("run{run}"))?;
        let started = start.elapsed();
        let asked = Instant::now();
        let said = daemon.command(&["show", "--json"]).output().map_err(Error::doing("run strait show"))?;
        let answered = asked.elapsed();
        let report: serde_json::Value =
            serde_json::from_slice(&said.stdout).map_err(|_| wrong("an answer"))?;
        let shown = report["peers"].as_array().map_or(0, Vec::len);
        if shown < 2 {
            return Err(wrong("peers in the answer"));
        }
        let inside = SocketAddr::new(hub.inside().into(), 0);
        let mut times = Echoes::beside(&self.hosts, inside, Duration::ZERO, Duration::ZERO).run()?;
        let memory = own_memory(&tree(daemon.pid()), &["strait"]);
        Ok([started.as_secs_f64(), memory, answered.as_secs_f64(), within(&mut times, 50)])
    }
}

/// What the configuration says of a peer that is not there.
fn section_of(number: u32) -> Result<String, Error> {
    let own = identity(number);
    let kem = KemKey::generate().map_err(|_| wrong("an ML-KEM key"))?;
    let card = KeyCard {
        name: format!("peer-{number}").parse().map_err(|_| wrong("a name"))?,
        key: own.public(),
        kem: Some(kem.public().clone()),
        valid: (0, u64::from(u32::MAX)),
        epoch: EpochLength::default(),
        capabilities: Capabilities::typical(),
    };
    let card = card.sign(&own);
    Ok(format!(
        "\n[[peer]]\nname = \"peer-{number}\"\npublic_key = \"{}\"\nendpoint = \"{}:51820\"\nallowed_ips = [\"{}/32\"]\n\
         keying = \"sessionless\"\ncard = \"{card}\"\n",
        own.public(),
        Ipv4Addr::from_bits(OUTSIDE + number),
        Ipv4Addr::from_bits(INSIDE + number),
    ))
}
