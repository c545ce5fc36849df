//! `strait advise`: on captures that are written here, whole and damaged; on live traffic; and against a real tunnel.
#![allow(clippy::unwrap_used)]

mod captures;
mod key_caches;
mod live;
mod tunnel;
mod write;
