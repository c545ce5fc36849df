//! The scripted client of CRIME and VORACLE against a live tunnel: two daemons, a victim behind one of them, and an observer of the
//! wire between. The table of docs/design/oracle.md is made with the same client and the same data plane in virtual time
//! (`strait lab crime`); one test here compares the two.
//!
//! Needs leave to make network namespaces and TUN devices; without it the tests say that they are skipped.
#![allow(clippy::unwrap_used)]

mod live;
mod yields;
