//! What came of a replay: for the whole and for each class of traffic, bytes, time and money on every [`crate::Way`], what codecs
//! make of it, and up to which link compression pays.

mod class;
mod codecs;
mod group;

use core::time::Duration;

use ipnet::IpNet;
use serde::Serialize;

pub use class::{Class, Sent, Share, Verdict, Waits};
pub use codecs::{Tried, UpTo};
pub use group::{Group, Others};

use crate::{Kind, Machine, Replay, Seen};
use class::Terms;

/// What a person says of the link, besides how fast it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// What a gigabyte (10^9 bytes) on the wire costs, in whatever money.
    pub price: Option<f64>,
    /// There and back.
    pub round_trip: Option<Duration>,
}

/// A file that was read.
#[derive(Clone, Debug, Serialize)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// What it is; nothing when that could not be told.
    pub kind: Option<Kind>,
    /// Frames that were read of it.
    pub frames: u64,
    /// Frames that passed an interface faster than they could be read.
    pub missed: u64,
    /// Why reading ended before the end.
    pub stopped: Option<String>,
}

/// Everything about a replay.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The link.
    pub link: LinkFigures,
    /// What was read.
    pub inputs: Vec<Input>,
    /// What became of frames.
    pub seen: Seen,
    /// How long the captures take, gaps cut to a second.
    pub seconds: f64,
    /// All of it.
    pub whole: Class,
    /// By protocol.
    pub protocols: Group,
    /// By service.
    pub services: Group,
    /// By pair of hosts.
    pub pairs: Group,
}

/// The link, in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct LinkFigures {
    /// Its rate.
    pub bits_per_second: u64,
    /// The longest packet.
    pub mtu: usize,
    /// What is on the near side.
    pub near: Option<IpNet>,
    /// Seconds there and back.
    pub round_trip_seconds: Option<f64>,
    /// Money a gigabyte.
    pub price_per_gigabyte: Option<f64>,
}

impl Report {
    /// A report of what was replayed so far; [`Replay::finish`] comes before it.
    #[must_use]
    pub fn new(replay: &Replay, machine: &Machine, conditions: &Conditions, inputs: Vec<Input>) -> Report {
        let link = replay.link();
        let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
        let terms = Terms { machine, conditions, rate: link.rate, names: &names };
        let classes = &replay.classes;
        Report {
            link: LinkFigures {
                bits_per_second: link.rate.bits(),
                mtu: link.mtu,
                near: link.near,
                round_trip_seconds: conditions.round_trip.map(|it| it.as_secs_f64()),
                price_per_gigabyte: conditions.price,
            },
            seen: replay.seen,
            seconds: replay.span().as_secs_f64(),
            whole: Class::new("all".to_owned(), &classes.whole, &terms),
            protocols: Group::new(&classes.protocols, &terms),
            services: Group::new(&classes.services, &terms),
            pairs: Group::new(&classes.pairs, &terms),
            inputs,
        }
    }
}

#[cfg(test)]
mod tests;
