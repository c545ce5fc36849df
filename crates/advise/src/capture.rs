//! Files of traffic, told apart by their first bytes: pcap, pcapng, text traces without payload, and ordinary files,
//! whose bytes are taken as what would be sent.
//!
//! Reading is a stream over a window of fixed size, whatever a file says of itself.

mod file;
mod order;
mod pcap;
mod pcapng;
mod trace;
mod window;

use std::io::{self, Read};

use serde::{Serialize, Serializer};
use strait_clock::Time;

use crate::{LinkType, UnknownLink, link_layer};
use file::File;
use pcap::Pcap;
use pcapng::Pcapng;
use trace::TextTrace;
use window::ReadWindow;

/// The longest frame that is believed: `MAXIMUM_SNAPLEN` of tcpdump, which no capture of a network exceeds.
const FRAME_MAX: usize = 262_144;
/// How much of a file is looked at to tell what it is: two lines of a trace.
const SNIFFED: usize = 2 * trace::LINE_MAX;

/// One frame as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct CapturedFrame<'a> {
    /// When, as the file counts time: since 1970 or since its own beginning.
    pub at: Time,
    /// What its bytes begin with.
    pub link: LinkType,
    /// What of it was kept.
    pub bytes: &'a [u8],
    /// Its length on the network, at least that of `bytes`.
    pub len: usize,
}

impl<'a> CapturedFrame<'a> {
    /// What was kept of its IP packet, with what the line added behind, and how long that was on the network; nothing for
    /// frames that carry something else.
    ///
    /// # Errors
    /// [`UnknownLink`] when the link type is not supported.
    pub fn ip(&self) -> Result<Option<(&'a [u8], usize)>, UnknownLink> {
        let bytes = link_layer::ip_bytes(self.link, self.bytes)?;
        Ok(bytes.map(|bytes| (bytes, self.len - (self.bytes.len() - bytes.len()))))
    }
}

/// What traffic is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureKind {
    /// libpcap's format (draft-ietf-opsawg-pcap).
    Pcap,
    /// The next generation of it (draft-ietf-opsawg-pcapng).
    Pcapng,
    /// Sizes and times in columns, as the Internet Traffic Archive has them; no payload.
    Trace,
    /// Any other file: its bytes, in packets of 1,400.
    File,
    /// The same of one that was compressed: a capture inside is not found.
    Packed,
    /// No file: frames as they pass an interface.
    Interface,
}

impl Serialize for CaptureKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl CaptureKind {
    /// In a word or two.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CaptureKind::Pcap => "pcap",
            CaptureKind::Pcapng => "pcapng",
            CaptureKind::Trace => "text trace",
            CaptureKind::File => "file",
            CaptureKind::Packed => "compressed file",
            CaptureKind::Interface => "interface",
        }
    }
}

/// Why reading stopped before the end of a file; what came before is good.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system could not read on.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// There are no bytes at all.
    #[error("is empty")]
    Empty,
    /// The file ends in the middle of something.
    #[error("is cut short: it ends within {what} that begins at byte {at}")]
    CutShort {
        /// What.
        what: &'static str,
        /// Where that begins, in bytes.
        at: u64,
    },
    /// A figure cannot be right.
    #[error("is damaged: at byte {at}, {value} cannot be {what}")]
    Malformed {
        /// Of what.
        what: &'static str,
        /// The figure.
        value: u64,
        /// Where it stands, or the record that it is in.
        at: u64,
    },
    /// A line of a trace is not like the others.
    #[error("is damaged: at byte {at} there is no line of {columns} columns as before")]
    Line {
        /// Where it begins.
        at: u64,
        /// How many columns the first one has.
        columns: usize,
    },
    /// A format that is known, and not read.
    #[error("is {0}")]
    Unsupported(&'static str),
}

/// A file as a stream of frames.
#[derive(Debug)]
pub struct CaptureReader<R> {
    window: ReadWindow<R>,
    format: CaptureFormat,
}

#[derive(Debug)]
enum CaptureFormat {
    Pcap(Pcap),
    Pcapng(Pcapng),
    Trace(TextTrace),
    File(File),
}

impl<R: Read> CaptureReader<R> {
    /// Tells what `source` is by its first bytes.
    ///
    /// # Errors
    /// [`ReadError`] when it is empty, ends within its own header, or is of a kind that is not read.
    pub fn open(source: R) -> Result<CaptureReader<R>, ReadError> {
        let mut window = ReadWindow::new(source);
        let first = window.peek(SNIFFED)?;
        if first.is_empty() {
            return Err(ReadError::Empty);
        }
        let format = if let Some(variant) = pcap::variant(first) {
            CaptureFormat::Pcap(Pcap::open(variant, &mut window)?)
        } else if pcapng::recognizes(first) {
            CaptureFormat::Pcapng(Pcapng::new())
        } else if let Some(columns) = trace::recognizes(first)? {
            CaptureFormat::Trace(TextTrace::new(columns))
        } else {
            CaptureFormat::File(File::new(file::is_packed(first)))
        };
        Ok(CaptureReader { window, format })
    }

    /// What the file is.
    #[must_use]
    pub const fn kind(&self) -> CaptureKind {
        match &self.format {
            CaptureFormat::Pcap(_) => CaptureKind::Pcap,
            CaptureFormat::Pcapng(_) => CaptureKind::Pcapng,
            CaptureFormat::Trace(_) => CaptureKind::Trace,
            CaptureFormat::File(file) if file.is_packed => CaptureKind::Packed,
            CaptureFormat::File(_) => CaptureKind::File,
        }
    }

    /// Whether its frames are no conversation of hosts, but an ordinary file's bytes.
    #[must_use]
    pub const fn is_file(&self) -> bool {
        matches!(self.format, CaptureFormat::File(_))
    }

    /// The next frame; nothing at the end.
    ///
    /// # Errors
    /// [`ReadError`] when there is no telling where the next one begins; reading ends there.
    pub fn frame(&mut self) -> Result<Option<CapturedFrame<'_>>, ReadError> {
        match &mut self.format {
            CaptureFormat::Pcap(pcap) => pcap.frame(&mut self.window),
            CaptureFormat::Pcapng(pcapng) => pcapng.frame(&mut self.window),
            CaptureFormat::Trace(trace) => trace.frame(&mut self.window),
            CaptureFormat::File(file) => file.frame(&mut self.window),
        }
    }

    /// How many bytes have been read of it.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.window.position()
    }
}

#[cfg(test)]
mod tests;
