//! `put`, `fetch`, `ls` and `rm` at a broker.

mod fetch;
mod inbox;
mod link;
mod places;

pub(crate) use fetch::{FetchTold, LettersLater, fetch};
pub(crate) use inbox::VisitPlan;
pub(crate) use link::{BrokerLink, failed};
pub(crate) use places::{ArrivalPlaces, Elsewhere};
