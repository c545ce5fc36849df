//! `put`, `fetch`, `ls` and `rm` at a broker.

mod fetch;
mod inbox;
mod letters;
mod link;
mod ls;
mod places;
mod put;
mod rm;

pub(crate) use fetch::{FetchTold, LettersLater, fetch};
pub(crate) use inbox::VisitPlan;
pub(crate) use link::{BrokerLink, failed};
pub(crate) use ls::ls;
pub(crate) use places::{ArrivalPlaces, Elsewhere};
pub(crate) use put::put;
pub(crate) use rm::rm;
