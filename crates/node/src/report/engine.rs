//! The threads that compress, as they are shown.

use serde::{Deserialize, Serialize};

/// One engine: a thread that compresses blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineReport {
    /// The name of the thread.
    pub thread: String,
    /// The kind of engine.
    pub kind: EngineKind,
    /// Blocks that it compressed.
    pub jobs: u64,
    /// Its share of all engines' blocks, 0 to 1; none before there is one.
    pub job_share: Option<f64>,
    /// Time in seconds to bring a block to it and the result back, as found lately.
    pub transfer_seconds: f64,
    /// Methods that it compressed with.
    pub methods: Vec<EngineMethodReport>,
}

/// The kind of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// The thread that sends packets, which compresses beside that.
    PacketThread,
    /// A thread that only compresses.
    Worker,
}

/// One method on one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineMethodReport {
    /// The method.
    pub method: String,
    /// Blocks that it compressed with that.
    pub jobs: u64,
    /// Time in seconds of each block whatever its size, as found lately.
    pub set_up_seconds: f64,
    /// Time in seconds of each byte on top of that, as found lately.
    pub byte_seconds: f64,
}
