//! The end that receives.

use core::time::Duration;
use std::collections::BTreeMap;

use strait_clock::Time;
use strait_wire::tcp::Segment;

use super::options::{self, BLOCKS};
use super::{timestamp, unwrapped};
use crate::FlowShape;
use crate::packet::TcpFields;

/// How long an acknowledgement may wait for a second segment: Linux's least (RFC 1122 allows 500 ms).
const DELAYED: Duration = Duration::from_millis(40);
/// Segments at the beginning that are acknowledged one by one, as Linux does.
const QUICK: u64 = 16;

/// The end that receives: what came, and what it says of that.
#[derive(Debug)]
pub struct TcpReceiver {
    shape: FlowShape,
    /// The first byte that is missing.
    next: u64,
    /// What came beyond it: ends by beginnings.
    ahead: BTreeMap<u64, u64>,
    /// Where the newest segment is that came beyond a gap.
    newest: u64,
    segments: u64,
    repeated: u64,
    /// The timestamp to send back; none as long as none came.
    echo: Option<u32>,
    /// When segments that were not acknowledged must be.
    due: Option<Time>,
    ready: Vec<Vec<u8>>,
}

impl TcpReceiver {
    /// An end that sends packets of `shape`, and has received nothing.
    #[must_use]
    pub fn new(shape: FlowShape) -> TcpReceiver {
        TcpReceiver {
            shape,
            next: 0,
            ahead: BTreeMap::new(),
            newest: 0,
            segments: 0,
            repeated: 0,
            echo: None,
            due: None,
            ready: Vec::new(),
        }
    }

    /// Bytes that came in order.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.next
    }

    /// Segments of which every byte was there before.
    #[must_use]
    pub const fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Takes a segment.
    pub fn take(&mut self, segment: &[u8], now: Time) {
        let Ok(segment) = Segment::parse(segment) else { return };
        let from = unwrapped(segment.seq(), self.next);
        let to = from + segment.payload().len() as u64;
        self.segments += 1;
        let in_order = from <= self.next;
        if in_order {
            self.echo = options::sent_at(segment.options()).or(self.echo);
        }
        let known =
            to <= self.next || self.ahead.range(..=from).next_back().is_some_and(|(_, end)| to <= *end);
        if known {
            self.repeated += 1;
        } else {
            self.add(from, to);
        }
        // RFC 5681 section 4.2: at once when something is missing or was, else every second segment.
        let at_once = known || !in_order || !self.ahead.is_empty() || self.segments <= QUICK;
        if at_once || self.due.is_some() {
            let acknowledgement = self.acknowledgement(now);
            self.ready.push(acknowledgement);
            self.due = None;
        } else {
            self.due = Some(now + DELAYED);
        }
    }

    /// Acknowledgements that are to be sent.
    pub fn poll(&mut self, now: Time) -> Vec<Vec<u8>> {
        if self.due.is_some_and(|due| due <= now) {
            let acknowledgement = self.acknowledgement(now);
            self.ready.push(acknowledgement);
            self.due = None;
        }
        core::mem::take(&mut self.ready)
    }

    fn add(&mut self, from: u64, to: u64) {
        if from <= self.next {
            self.next = self.next.max(to);
        } else {
            self.newest = from;
            self.join(from, to);
        }
        while let Some(range) = self.ahead.first_entry().filter(|range| *range.key() <= self.next) {
            self.next = self.next.max(range.remove());
        }
    }

    /// Adds a range to those ahead.
    fn join(&mut self, mut from: u64, mut to: u64) {
        while let Some((begin, end)) = self.ahead.range(..=to).next_back().map(|(begin, end)| (*begin, *end))
        {
            if end < from {
                break;
            }
            (from, to) = (from.min(begin), to.max(end));
            self.ahead.remove(&begin);
        }
        self.ahead.insert(from, to);
    }

    /// The block with the newest segment first, then the highest (RFC 2018 section 4).
    fn blocks(&self) -> Vec<(u32, u32)> {
        let newest = self.ahead.range(..=self.newest).next_back().filter(|(_, end)| **end > self.newest);
        let others = self.ahead.iter().rev().filter(|range| Some(*range) != newest);
        newest.into_iter().chain(others).take(BLOCKS).map(|(from, to)| (*from as u32, *to as u32)).collect()
    }

    fn acknowledgement(&self, now: Time) -> Vec<u8> {
        let stamps = self.echo.map(|echo| (timestamp(now), echo));
        let options = options::written(stamps, &self.blocks());
        let fields = TcpFields { ack: self.next as u32, options: &options, ..TcpFields::default() };
        self.shape.tcp_with(&fields, &[])
    }
}
