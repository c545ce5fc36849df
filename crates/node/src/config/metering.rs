//! The keys of `[link]` about metered links: a cap on bytes, what happens when parts of it are used, and quiet.

use strait_keying::{CarrierMode, RepairMode, Start};
use strait_scheduler::LinkRate;
use strait_scheduler::calendar::{DailyWindow, ParseWindowError, Period};
use strait_scheduler::metering::{Cap, CapStep, MeteringTerms, ParseCapError};

use super::checks::FoundPeer;
use super::peer::PeerKeys;
use super::problem::Problem;
use super::reader::{Placed, Section};
use super::{LinkSection, PeerSection};

/// What a cap is.
const CAP: &str = "a size and a period in quotes, as \"20GB/month\"";
/// No link layer or provider counts more for a datagram.
const MOST_OVERHEAD: u16 = 256;
/// From which part of a cap on it is said, where the file does not tell.
const WARN_PERCENT: u8 = 80;

/// `[link]`: what bytes cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeteredSection {
    /// The cap of the link, its steps, and when bulk traffic may leave.
    pub terms: MeteringTerms,
    /// Bytes that the provider counts for each datagram beyond its IP packet.
    pub overhead: u16,
    /// A command and its arguments, run at each step that is reached.
    pub on_cap: Vec<String>,
    /// Whether nothing is sent unasked.
    pub quiet: bool,
}

/// A text that is no part of a cap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no part of a cap; write for example \"80%\", from 1 % to 100 %, or \"off\"")]
pub struct BadPercent {
    given: String,
}

impl Default for MeteredSection {
    fn default() -> MeteredSection {
        // A peer may have a cap where the file says nothing of the link.
        let terms =
            MeteringTerms { steps: [Some(WARN_PERCENT), None, None, None], ..MeteringTerms::default() };
        MeteredSection { terms, overhead: 0, on_cap: Vec::new(), quiet: false }
    }
}

impl MeteredSection {
    /// The terms of a peer with this cap: the steps, the window and the day of the reset are the link's.
    #[must_use]
    pub fn of_peer(&self, cap: Option<Cap>) -> MeteringTerms {
        let cap = cap.map(|cap| Cap { every: on_day(cap.every, self.reset_day()), ..cap });
        // The window of the link holds for all peers already.
        let bulk_between = self.terms.bulk_between.filter(|_| self.steps_name_the_window());
        MeteringTerms { cap, bulk_between, ..self.terms }
    }

    /// Whether anything is counted or bound to a time of day.
    #[must_use]
    pub const fn is_metered(&self) -> bool {
        self.terms.cap.is_some() || self.terms.bulk_between.is_some()
    }

    const fn steps_name_the_window(&self) -> bool {
        let [_, window, ..] = self.terms.steps;
        window.is_some()
    }

    fn reset_day(&self) -> u8 {
        match self.terms.cap.map(|cap| cap.every) {
            Some(Period::Month { first_day }) => first_day,
            _ => 1,
        }
    }
}

const fn on_day(every: Period, first_day: u8) -> Period {
    match every {
        Period::Month { .. } => Period::Month { first_day },
        other => other,
    }
}

pub(super) fn metered(section: &Section<'_>) -> MeteredSection {
    let days = u64::from(*Period::FIRST_DAYS.start())..=u64::from(*Period::FIRST_DAYS.end());
    let day = section.integer("cap_reset_day", days).and_then(|day| u8::try_from(day).ok()).unwrap_or(1);
    let cap = section.parsed("cap", CAP, str::parse::<Cap>).map(|cap| cap.value);
    let cap = cap.map(|cap| Cap { every: on_day(cap.every, day), ..cap });
    let between = "a time of day to another in quotes, as \"01:00-06:00\"";
    let bulk_between = section.parsed("bulk_between", between, str::parse::<DailyWindow>);
    let bulk_between = bulk_between.map(|window| window.value);
    let steps = steps(section);
    let [_, window, ..] = steps;
    if let (Some(_), None, Some(value)) = (window, bulk_between, section.value("cap_bulk_window")) {
        section.note(value.span(), Problem::WindowMissing);
    }
    let command = section.list("on_cap", "a command and its arguments, as [\"/usr/local/bin/notify\"]", word);
    MeteredSection {
        terms: MeteringTerms { cap, steps, bulk_between },
        overhead: section.short("cap_overhead", 0..=MOST_OVERHEAD).unwrap_or(0),
        on_cap: command.into_iter().map(|word| word.value).collect(),
        quiet: section.boolean("quiet").unwrap_or(false),
    }
}

/// The cap of a peer.
pub(super) fn cap_of_peer(section: &Section<'_>) -> Option<Cap> {
    section.parsed("cap", CAP, str::parse::<Cap>).map(|cap| cap.value)
}

fn steps(section: &Section<'_>) -> [Option<u8>; 4] {
    let percent = |key: &'static str, usual: Option<u8>| {
        let read = section.parsed(key, "a part of the cap in quotes, as \"80%\", or \"off\"", percent);
        read.map_or(usual, |Placed { value, .. }| value)
    };
    CapStep::ALL.map(|step| match step {
        CapStep::Warn => percent("cap_warn", Some(WARN_PERCENT)),
        CapStep::BulkInWindow => percent("cap_bulk_window", None),
        CapStep::StopBulk => percent("cap_stop_bulk", None),
        CapStep::InteractiveOnly => percent("cap_interactive_only", None),
    })
}

fn percent(text: &str) -> Result<Option<u8>, Problem> {
    if text == "off" {
        return Ok(None);
    }
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<u8>().ok());
    let number = number.filter(|number| (1..=100).contains(number));
    number.map(Some).ok_or_else(|| BadPercent { given: text.to_owned() }.into())
}

fn word(text: &str) -> Result<String, Problem> {
    if text.is_empty() || text.contains('\0') { Err(Problem::EmptyCommand) } else { Ok(text.to_owned()) }
}

impl From<ParseCapError> for Problem {
    fn from(error: ParseCapError) -> Problem {
        Problem::Cap(error)
    }
}

impl From<ParseWindowError> for Problem {
    fn from(error: ParseWindowError) -> Problem {
        Problem::DailyWindow(error)
    }
}

/// Takes from a link and its peers what a quiet node does without; says what that costs, and what is not quiet, for `check`.
pub(super) fn hush(link: &mut LinkSection, peers: &mut [FoundPeer], has_directory: bool) -> Vec<String> {
    let mut losses = Vec::new();
    for (key, rate) in [("up", &mut link.up), ("down", &mut link.down)] {
        if *rate == LinkRate::Auto {
            *rate = LinkRate::Unpaced;
            losses.push(format!(
                "`{key} = \"auto\"` has no effect, as no delivery reports are sent: packets queue in the modem; give a rate"
            ));
        }
    }
    for peer in peers.iter_mut().filter_map(|found| found.peer.as_mut()) {
        losses.extend(hush_peer(peer));
    }
    losses.push(
        "a peer that is gone is noticed when packets to it are answered again; blocks of long transfers have less history"
            .to_owned(),
    );
    if has_directory {
        losses.push(
            "`[directory]` still follows its server, and sends datagrams even when there is no traffic"
                .to_owned(),
        );
    }
    losses
}

/// The same for one peer.
pub(crate) fn hush_peer(peer: &mut PeerSection) -> Vec<String> {
    let name = peer.name.clone();
    peer.start = Start::OnTraffic;
    let mut losses = Vec::new();
    if peer.keepalive.take().is_some() {
        losses.push(format!(
            "{name}: `keepalive` has no effect: behind a NAT, the peer reaches this node only after this node sent something"
        ));
    }
    let PeerKeys::Session { repair, carrier, .. } = &mut peer.keys else { return losses };
    if *repair == RepairMode::Auto {
        *repair = RepairMode::Off;
        losses.push(format!("{name}: losses on the path are not repaired"));
    }
    if *carrier == CarrierMode::Ip {
        *carrier = CarrierMode::Udp;
        losses.push(format!("{name}: `carrier = \"ip\"` has no effect, as it needs probes"));
    }
    if peer.mtu.is_none() {
        losses.push(format!(
            "{name}: the path MTU is not searched for, and packets over some 1,200 bytes leave in two pieces; give `mtu`"
        ));
    }
    losses
}
