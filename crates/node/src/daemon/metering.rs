//! Metered links: what the meters read, and what follows from it.
//!
//! The thread that keeps figures looks at the meters, since it has what they need ([`saved_keeper`](super::saved_keeper)). What they say
//! comes here: the sender is told what may leave, and a step that was reached is logged and given to the command of `on_cap`.

use std::collections::BTreeMap;

use strait_ipsec::{PeerId, outbound};
use strait_scheduler::metering::{Admission, CapStanding, CapStep, Meter, MeterReading, MeteringTerms};
use tokio::sync::mpsc;

use super::Daemon;
use crate::report::MeteredReport;

/// Looks that may wait: one a second.
const WAITING: usize = 16;

/// Whose bytes a meter counts: a peer's, or those of the whole link.
pub(super) type MeterOwner = Option<PeerId>;

/// What a meter is told to count.
#[derive(Clone, Debug)]
pub(super) struct MeterSpec {
    pub(super) owner: MeterOwner,
    /// The peer's name, by which its figures are kept; nothing for all figures of the node.
    pub(super) name: Option<String>,
    pub(super) terms: MeteringTerms,
}

/// A meter of the thread that looks.
#[derive(Clone, Debug)]
pub(super) struct RunningMeter {
    pub(super) owner: MeterOwner,
    pub(super) name: Option<String>,
    pub(super) meter: Meter,
}

impl MeterSpec {
    /// The meter for it, which goes on from the one `before` with the same owner.
    pub(super) fn run(self, before: &[RunningMeter]) -> RunningMeter {
        let MeterSpec { owner, name, terms } = self;
        let known = before.iter().find(|known| known.owner == owner).map(|known| known.meter.clone());
        let mut meter = known.unwrap_or_else(|| Meter::new(terms));
        meter.change(terms);
        RunningMeter { owner, name, meter }
    }
}

/// What all meters said at one look.
pub(super) type MeterReadings = Vec<(MeterOwner, MeterReading)>;

/// What was read last.
#[derive(Debug)]
pub(super) struct MeterBoard {
    from: mpsc::Receiver<MeterReadings>,
    last: BTreeMap<MeterOwner, MeterReading>,
}

/// A board, and where the thread puts what it reads.
pub(super) fn board() -> (mpsc::Sender<MeterReadings>, MeterBoard) {
    let (sender, from) = mpsc::channel(WAITING);
    (sender, MeterBoard { from, last: BTreeMap::new() })
}

impl MeterBoard {
    /// The next look; none where no thread looks.
    pub(super) async fn next(&mut self) -> MeterReadings {
        match self.from.recv().await {
            Some(readings) => readings,
            None => std::future::pending().await,
        }
    }
}

impl Daemon {
    /// What is to be metered.
    pub(super) fn meters(&self) -> Vec<MeterSpec> {
        let metered = &self.config.link.metered;
        let link =
            metered.is_metered().then_some(MeterSpec { owner: None, name: None, terms: metered.terms });
        let peers = self.config.peers.iter().filter(|peer| peer.cap.is_some()).filter_map(|peer| {
            let (owner, name) = (Some(self.roster.number(peer)?), Some(peer.name.clone()));
            Some(MeterSpec { owner, name, terms: metered.of_peer(peer.cap) })
        });
        link.into_iter().chain(peers).collect()
    }

    /// Lets everything leave again that is not metered any more.
    pub(super) fn forget_meters(&mut self) {
        let metered: Vec<MeterOwner> = self.meters().into_iter().map(|spec| spec.owner).collect();
        let gone = |owner: &MeterOwner| !metered.contains(owner);
        let gone: Vec<MeterOwner> = self.meters_read.last.keys().copied().filter(gone).collect();
        for owner in gone {
            self.meters_read.last.remove(&owner);
            self.order_out(outbound::Order::Admit(owner, Admission::All));
        }
    }

    /// Does what the meters call for.
    pub(super) fn metered(&mut self, readings: MeterReadings) {
        let metered: Vec<MeterOwner> = self.meters().into_iter().map(|spec| spec.owner).collect();
        // Of a look before the configuration was read again, what is not metered any more says nothing.
        for (owner, reading) in readings.into_iter().filter(|(owner, _)| metered.contains(owner)) {
            let before = self.meters_read.last.insert(owner, reading.clone());
            if before.map_or(Admission::All, |before| before.admission) != reading.admission {
                self.order_out(outbound::Order::Admit(owner, reading.admission));
                let whose = self.name_of_meter(owner);
                tracing::info!(peer = whose.as_deref(), "what may leave: {}", reading.admission.name());
            }
            if let Some((step, standing)) = reading.crossed.zip(reading.cap) {
                self.tell_step(owner, step, &standing);
            }
        }
    }

    /// A step of a cap was reached.
    fn tell_step(&self, owner: MeterOwner, step: CapStep, standing: &CapStanding) {
        let whose = self.name_of_meter(owner);
        let cap = self.cap_of(owner);
        let percent = u128::from(standing.used) * 100 / u128::from(cap.max(1));
        tracing::warn!(
            peer = whose.as_deref(),
            used_bytes = standing.used,
            cap_bytes = cap,
            forecast_bytes = standing.forecast,
            "{percent} % of the cap is used: {step}"
        );
        if self.config.link.metered.on_cap.is_empty() {
            return;
        }
        let run = self.starter.run_on_cap(whose, step, standing, cap);
        if let Err(error) = run {
            tracing::warn!("the command of `on_cap` was not run: {error}");
        }
    }

    fn cap_of(&self, owner: MeterOwner) -> u64 {
        let spec = self.meters().into_iter().find(|spec| spec.owner == owner);
        spec.and_then(|spec| spec.terms.cap).map_or(0, |cap| cap.bytes)
    }

    fn name_of_meter(&self, owner: MeterOwner) -> Option<String> {
        self.roster.whose(owner?, &self.config.peers).map(|peer| peer.name.clone())
    }

    /// How the caps and windows stand.
    pub(super) fn metered_report(&self) -> Vec<MeteredReport> {
        let said = self.meters().into_iter().filter_map(|spec| {
            let reading = self.meters_read.last.get(&spec.owner)?;
            let standing = reading.cap.as_ref();
            Some(MeteredReport {
                peer: spec.name,
                cap_bytes: spec.terms.cap.map(|cap| cap.bytes),
                every: spec.terms.cap.map(|cap| cap.every.to_string()),
                used_bytes: standing.map(|standing| standing.used),
                forecast_bytes: standing.and_then(|standing| standing.forecast),
                period_start: standing.map(|standing| standing.period.start),
                period_end: standing.map(|standing| standing.period.end),
                step: standing.and_then(|standing| standing.step).map(|step| step.name().to_owned()),
                admission: reading.admission.name().to_owned(),
                bulk_between: spec.terms.bulk_between.map(|window| window.to_string()),
                changes_at: reading.changes_at,
            })
        });
        said.collect()
    }
}
