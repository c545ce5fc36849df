//! What securing and compressing a packet costs, as arithmetic: McGregor and Lee, *Performance Impact of Data
//! Compression on Virtual Private Network Transactions*.
//!
//! A [`ModelPacket`] crosses a [`NetworkModel`] under a [`Security`], with or without [`Compression`]: [`Stages`] say how long each
//! step takes, headers, padding and fragments counted as they are on the wire.
//!
//! - [`Security::speedup`]: what security costs (section 4.2, Table 2);
//! - [`Security::gain`]: what compression gives back, one stage after the other (section 6.1);
//! - [`ByteRates::pays`]: the inequality, headers left aside, and its break-even in each variable (section 6.2);
//! - [`Pipeline`]: the same when stages work at the same time, with processors and clients in number (sections 2 and 8);
//! - [`Cost`]: a set-up time and a time a byte, where one rate for all sizes would be wrong;
//! - [`LoadFactor`]: how far a machine is from its calibration, learned from what work takes.
//!
//! Rates come from the caller. Everything is a pure function of its arguments; units are types: [`Bytes`],
//! [`Seconds`], [`BitRate`], [`Ratio`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod compression;
mod cost;
mod inequality;
mod load;
mod network;
mod packet;
mod pipeline;
mod quantity;
mod security;
mod stages;

pub use compression::Compression;
pub use cost::Cost;
pub use inequality::{BreakEven, ByteRates, LinkRates};
pub use load::LoadFactor;
pub use network::NetworkModel;
pub use packet::ModelPacket;
pub use pipeline::{Pipeline, PipelineSegment, Processors};
pub use quantity::{BitRate, Bytes, Ratio, Seconds};
pub use security::{AhModel, EspModel, Hash, Security};
pub use stages::Stages;
