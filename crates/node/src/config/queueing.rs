//! The keys of `[link]` that configure queueing and aggregation.

use std::time::Duration;

use strait_ipsec::outbound::Queueing;
use strait_scheduler::{Shares, TinShare};
use toml::de::DeValue;

use super::problem::Problem;
use super::reader::{Placed, Section};
use super::sections::span;

/// Longest hold time: after it a sender retransmits (TCP's minimum RTO: RFC 6298 section 2.4).
const LONGEST_HOLD: Duration = Duration::from_secs(1);

pub(super) fn queueing(section: &Section<'_>) -> Queueing {
    let normal = Queueing::NORMAL;
    let lossless = section.choice_or("aqm", &["codel", "off"], &[false, true]);
    let thin_acks = section.choice("acks", &["thin", "all"], &[true, false]);
    Queueing {
        window: window(section).unwrap_or(normal.window),
        hold: span(section, "hold", Duration::ZERO, LONGEST_HOLD, ["0s", "1s"]).unwrap_or(normal.hold),
        shares: shares(section).unwrap_or(normal.shares),
        lossless: lossless.unwrap_or(normal.lossless),
        thin_acks: thin_acks.unwrap_or(normal.thin_acks),
    }
}

fn window(section: &Section<'_>) -> Option<usize> {
    match section.value("window")?.get_ref() {
        DeValue::Integer(_) => {
            let packets = section.integer("window", 1..=Queueing::WINDOW_MAX as u64)?;
            usize::try_from(packets).ok()
        }
        _ => section.choice("window", &["auto"], &[Queueing::WINDOW]),
    }
}

fn shares(section: &Section<'_>) -> Option<Shares> {
    let share = |key| section.parsed(key, "a share in quotes, as \"25%\"", str::parse::<TinShare>);
    let (interactive, bulk) = (share("interactive"), share("bulk"));
    let or = |share: &Option<Placed<TinShare>>, normal| share.as_ref().map_or(normal, |share| share.value);
    let normal = Queueing::NORMAL.shares;
    let shares = Shares::new(or(&interactive, normal.interactive()), or(&bulk, normal.bulk()));
    if shares.is_none()
        && let Some(at) = bulk.or(interactive)
    {
        section.note(at.span, Problem::Shares);
    }
    shares
}
