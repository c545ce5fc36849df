//! The IPsec family against implementations that are not ours: a Linux kernel's XFRM in a guest, scapy, tshark.
//!
//! [`matrix`] lists the cases; everything that configures an implementation for one is generated from the same [`agreement`].
//! All need leave to make network namespaces; what is not here is named when a test is skipped.
#![allow(clippy::unwrap_used)]

mod agreement;
mod case;
mod daemon;
mod dissect;
mod echo;
mod guests;
mod kernel;
mod lines;
mod matrix;
mod oracles;
mod ours;
mod packets;
mod scapy;
mod tried;
mod wire;
