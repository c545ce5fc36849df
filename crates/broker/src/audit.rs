//! The audit log: a line of JSON for each thing that was done or refused. It names peers, keys and ids, and no file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use strait_keying::PublicKey;
use strait_transfer::TransferId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use crate::engine::Client;

/// Lines that may wait to be written; who has another waits.
const LINES: usize = 256;
/// How often what was written is flushed to the disk.
const FLUSHED: Duration = Duration::from_secs(1);

/// What the writer hears.
#[derive(Debug)]
enum Waiting {
    Line(Line),
    /// All before this is to be on the disk.
    Flush(oneshot::Sender<()>),
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Deed {
    /// An object was put, or not.
    Put,
    /// Bytes of an object were read to the end, or not.
    Fetch,
    /// A letter was removed by its receiver, or letters by their sender.
    Remove,
    /// A letter expired.
    Expire,
    /// Pieces of an upload that was forgotten were removed.
    Collect,
    /// A stream was refused.
    Stream,
}

/// A line.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Seconds since 1970.
    pub time: i64,
    /// What was done.
    pub deed: Deed,
    /// `done`, or the reason why not.
    pub outcome: String,
    /// The peer that asked for it; nothing for what the broker did by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Its key, or the sender's of what the broker removed.
    pub key: String,
    /// The object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its sender, where that is another than the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// To whom.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub receivers: Vec<String>,
    /// How many bytes.
    pub bytes: u64,
}

impl Line {
    /// That a client's request removed a letter of this many bytes.
    #[must_use]
    pub fn removed(client: &Client, id: TransferId, bytes: u64) -> Line {
        Line { id: Some(id.to_string()), bytes, ..Line::new(Deed::Remove, Some(&client.name), &client.key) }
    }

    /// That something was done by the peer with this key.
    #[must_use]
    pub fn new(deed: Deed, peer: Option<&str>, key: &PublicKey) -> Line {
        Line {
            time: crate::now(),
            deed,
            outcome: "done".to_owned(),
            peer: peer.map(str::to_owned),
            key: key.to_string(),
            id: None,
            sender: None,
            receivers: Vec::new(),
            bytes: 0,
        }
    }
}

/// Where lines go.
#[derive(Debug)]
pub struct Audit {
    lines: mpsc::Sender<Waiting>,
    file: Arc<Mutex<File>>,
    path: PathBuf,
}

impl Audit {
    /// Appends to the file at `path`; to be called in a runtime.
    ///
    /// # Errors
    /// As `open(2)`.
    pub fn open(path: &Path) -> io::Result<Audit> {
        let file = Arc::new(Mutex::new(append(path)?));
        let (lines, waiting) = mpsc::channel(LINES);
        tokio::spawn(write(waiting, Arc::clone(&file)));
        Ok(Audit { lines, file, path: path.to_owned() })
    }

    /// Opens the file anew, which something may have renamed.
    ///
    /// # Errors
    /// As `open(2)`; then the old one stays.
    pub fn reopen(&self) -> io::Result<()> {
        let file = append(&self.path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
        Ok(())
    }

    /// Writes a line; waits while many wait.
    pub async fn say(&self, line: Line) {
        let _ = self.lines.send(Waiting::Line(line)).await;
    }

    /// Waits until all lines are on the disk.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.lines.send(Waiting::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Writes lines as they come, and flushes them once in a while, and at the end.
async fn write(mut waiting: mpsc::Receiver<Waiting>, file: Arc<Mutex<File>>) {
    let mut tick = interval(FLUSHED);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut heard, mut dirty, mut open) = (Vec::new(), false, true);
    while open {
        let mut flush = tokio::select! {
            count = waiting.recv_many(&mut heard, LINES) => {
                open = count > 0;
                !open
            }
            _ = tick.tick() => true,
        };
        let (mut lines, mut told) = (Vec::new(), Vec::new());
        for one in heard.drain(..) {
            match one {
                Waiting::Line(line) => lines.push(line),
                Waiting::Flush(done) => told.push(done),
            }
        }
        flush |= !told.is_empty();
        if !lines.is_empty() || flush && dirty {
            dirty = !flush;
            let file = Arc::clone(&file);
            let written = spawn_blocking(move || append_all(&lines, &file, flush)).await;
            if let Ok(Err(error)) = written {
                tracing::error!("the audit log cannot be written: {error}");
            }
        }
        for done in told {
            let _ = done.send(());
        }
    }
}

fn append_all(lines: &[Line], file: &Mutex<File>, flush: bool) -> io::Result<()> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    file.write_all(&text)?;
    if flush { file.sync_data() } else { Ok(()) }
}
