//! A peer with keys that sends whatever it likes, while another site and the hub go on exchanging data.

use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_testbed::attack::{AttackRoute, HostilePeer, RunningAttack, hostile};
use strait_testbed::{Extra, LinkSpec, PORT, Site};
use strait_wire::Protocol;

use super::star::{HubStar, Spoke};
use super::watch::Disturbance;
use crate::content::generated;
use crate::error::Error;
use crate::random::rate;
use crate::report::{BenchSection, progress};
use crate::stage::{BenchSetup, rule};
use crate::target::Target;

/// Percent of goodput that another peer keeps, and milliseconds that its round trips take more.
const KEPT: Target = Target::AtLeast(95.0);
const ADDED: Target = Target::AtMost(5.0);
/// Of the honest site's link, in Mbit/s.
const LINK: f64 = 4.0;
/// What the hostile peer's link carries, in bit/s of whole Ethernet frames.
const HOSTILE: f64 = 1e6;
/// What the audit's fast attack sends, in packets a second.
const FAST: f64 = 150e3;
/// How much of the text the streams repeat: all windows see the same, and blocks do not reach so far back.
const CYCLE: usize = 128 * 1024;
/// Its file of keys.
const KEYS: &str = "esp-keys";
/// What is compared.
const COLUMNS: [&str; 9] = [
    "sent, kpps",
    "bytes a frame",
    "goodput before, Mbit/s",
    "goodput hub to site, %",
    "goodput site to hub, %",
    "round trip before, ms",
    "round trip, ms",
    "95 of 100 within, ms",
    "processors, %",
];

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerAttack {
    /// Nothing: how much two windows differ without an attack.
    Nothing,
    /// Blocks that expand to as many packets as they can.
    TinyPackets,
    /// Requests for an answer; at the speed of its link, or as fast as it can.
    Probes,
    FastProbes,
    /// Blocks of which only the first part comes.
    FirstParts,
    /// From another port each time.
    Moves,
    /// A changed condition each time.
    Conditions,
    /// Reports of what arrived.
    Reports,
    /// Nothing at all (RFC 4303 section 2.6).
    Dummies,
    /// To the honest site's address.
    Others,
}

impl PeerAttack {
    const ALL: [PeerAttack; 10] = [
        PeerAttack::Nothing,
        PeerAttack::TinyPackets,
        PeerAttack::Probes,
        PeerAttack::FastProbes,
        PeerAttack::FirstParts,
        PeerAttack::Moves,
        PeerAttack::Conditions,
        PeerAttack::Reports,
        PeerAttack::Dummies,
        PeerAttack::Others,
    ];

    const fn name(self) -> &'static str {
        match self {
            PeerAttack::Nothing => "nothing, for comparison",
            PeerAttack::TinyPackets => "blocks of 3,276 packets",
            PeerAttack::Probes => "probe requests",
            PeerAttack::FastProbes => "probe requests, 150 kpps",
            PeerAttack::FirstParts => "first parts of blocks",
            PeerAttack::Moves => "another port each time",
            PeerAttack::Conditions => "conditions",
            PeerAttack::Reports => "delivery reports",
            PeerAttack::Dummies => "dummy packets",
            PeerAttack::Others => "packets to another peer",
        }
    }
}

/// What was measured of one attack, a value a run.
#[derive(Debug, Default)]
struct AttackRuns([RunValues; COLUMNS.len()]);

impl AttackRuns {
    fn note(&mut self, before: &Disturbance, attacked: &Disturbance) {
        let kept = |way: usize| attacked.goodput[way] / before.goodput[way] * 100.0;
        let values = [
            attacked.sent.rate() / 1e3,
            attacked.sent.bytes as f64 / attacked.sent.frames.max(1) as f64,
            before.goodput[1],
            kept(0),
            kept(1),
            before.round_trip[0],
            attacked.round_trip[0],
            attacked.round_trip[1],
            attacked.busy * 100.0,
        ];
        self.0.iter_mut().zip(values).for_each(|(runs, value)| runs.push(value));
    }
}

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, millis) = setting.effort.pick((5, 2000), (1, 1500));
    let title = format!(
        "a peer with keys at 1 Mbit/s, beside two TCP streams of text and pings each 10 ms between another site and the hub \
         at {LINK} Mbit/s with a rule zstd-1; {runs} runs of {millis} ms, median (min-max)"
    );
    let mut section = BenchSection::new("hostile: a peer", title, &COLUMNS);
    section.notes.push(format!("targets: goodput {KEPT} % of that just before, round trip {ADDED} ms more"));
    let rules = rule("zstd-1", "");
    let honest = Extra { sections: &rules, ..Extra::default() };
    let export = format!("danger_export_keys = \"{KEYS}\"");
    let spokes = [
        Spoke { name: "site", spec: LinkSpec::thin(rate(LINK)), extra: honest },
        Spoke {
            name: "hostile",
            spec: LinkSpec::unshaped(),
            extra: Extra { node: &export, ..Extra::default() },
        },
    ];
    let star = HubStar::up(&setting.program, &spokes, honest)?;
    let route = AttackRoute::over(&star.links[1], PORT)?;
    let text = generated(1).bytes;
    let content = text.get(..CYCLE).unwrap_or(&text).into();
    let traffic = star.traffic(0, &content, Duration::from_millis(millis));
    let mut cells: [AttackRuns; PeerAttack::ALL.len()] = Default::default();
    let mut from = 0;
    for run in 1..=runs {
        // Not before each: each brings the undisturbed traffic that it is compared with.
        section.before.push(settle()?);
        for (kind, cell) in PeerAttack::ALL.into_iter().zip(&mut cells) {
            let peer = HostilePeer::of(&star.sites[1].folder().join(KEYS), from)?;
            // Each attack goes on behind the numbers of the one before.
            from += 1 << 22;
            let who = [&star.sites[1], &star.centre, &star.sites[0]];
            let [before, attacked] = traffic.watch(|| start(kind, &route, peer, who))?;
            cell.note(&before, &attacked);
            let kept = attacked.goodput[1] / before.goodput[1] * 100.0;
            progress("hostile", run, kind.name(), kept, "% of goodput, site to hub");
        }
    }
    for (kind, AttackRuns(cells)) in PeerAttack::ALL.into_iter().zip(cells) {
        let [_, _, _, there, back, before, round_trip, ..] = &cells;
        let name = kind.name();
        if kind != PeerAttack::Nothing {
            section.judge(format!("{name}: goodput hub to site, %"), there.clone(), KEPT);
            section.judge(format!("{name}: goodput site to hub, %"), back.clone(), KEPT);
            section.judge(format!("{name}: round trip, ms more"), round_trip.minus(before), ADDED);
        }
        section.row(name, cells);
    }
    Ok(section)
}

/// Starts to send from the hostile site, which knows the hub and the honest one.
fn start(
    kind: PeerAttack,
    route: &AttackRoute,
    mut peer: HostilePeer,
    [me, hub, other]: [&Site; 3],
) -> Result<Option<RunningAttack>, Error> {
    if kind == PeerAttack::Nothing {
        return Ok(None);
    }
    let sources = [PORT, PORT + 1].map(|port| route.own(port));
    let (me, hub, other, spi) = (me.inside(), hub.inside(), other.inside(), peer.received_spi());
    let (tiny, way) = (hostile::tiny_packets(hostile::TINY_MOST, me, hub, 0), route.clone());
    let mut next = move |number: u64| {
        let id = u16::try_from(number & 0xffff).unwrap_or(0);
        let (next, payload) = match kind {
            PeerAttack::TinyPackets => (Protocol::AGGFRAG, tiny.clone()),
            PeerAttack::Probes | PeerAttack::FastProbes => (Protocol::AGGFRAG, hostile::probe_request(id)),
            PeerAttack::FirstParts => (Protocol::AGGFRAG, hostile::first_part(id)),
            PeerAttack::Conditions => (Protocol::AGGFRAG, hostile::condition(number)),
            PeerAttack::Reports => (Protocol::AGGFRAG, hostile::report(spi, number)),
            PeerAttack::Nothing | PeerAttack::Moves | PeerAttack::Dummies => (Protocol::NO_NEXT, Vec::new()),
            PeerAttack::Others => (Protocol::IPIP, hostile::packet(me, other, &[0; 8])),
        };
        let [here, elsewhere] = sources;
        let source = if kind == PeerAttack::Moves && number % 2 == 1 { elsewhere } else { here };
        way.frame(source, &peer.seal(next, &payload))
    };
    let len = next(0).len();
    let rate = if kind == PeerAttack::FastProbes { FAST } else { HOSTILE / 8.0 / len as f64 };
    Ok(Some(route.start(rate, move |number, frame| *frame = next(number))?))
}
