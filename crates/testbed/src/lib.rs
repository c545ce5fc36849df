//! Two hosts and a thin link, made of network namespaces.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod sample;
