//! One direction of a connection: octets from port to port.

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;

use super::hdlc::{LAPM_CONTENT, PppReader, lapm_bits, write_ppp};
use super::{
    DialUpSettings, HeaderCompression, IphcCompressor, IphcExpander, IphcPacket, V42bisDecoder,
    V42bisEncoder, V42bisError, VjCompressor, VjExpander, VjPacket,
};

/// Octets that a modem keeps for its line; with more it stops the port (V.24 circuit 106).
const MODEM_ROOM: usize = 1024;
/// How long a modem waits for more before it sends a frame that is not full, in octets' time at the port.
const WAITS_FOR: u32 = 4;
/// And how long it waits at most, in bits' time on the line: as long as a full frame takes, so that what is compressed comes no later than what is not.
const LAPM_BITS: u64 = (LAPM_CONTENT as u64 + 6) * 8;
/// PPP's numbers of what it carries, in one octet as both ends agreed (RFC 1332 section 4, RFC 3544 section 3, RFC 1661 section 6.5).
const IP: u8 = 0x21;
const VJ_COMPRESSED: u8 = 0x2d;
const VJ_UNCOMPRESSED: u8 = 0x2f;
const FULL_HEADER: u8 = 0x61;
const COMPRESSED_NON_TCP: u8 = 0x65;

/// Counts of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DialUpTally {
    /// IP packets, and their bytes.
    pub packets: u64,
    /// Bytes of those packets.
    pub packet_bytes: u64,
    /// Octets at the sending port: packets with compressed headers, in PPP's frames.
    pub port_octets: u64,
    /// Octets that the modem made of those.
    pub modem_octets: u64,
    /// Frames on the line.
    pub frames: u64,
    /// Their bits.
    pub line_bits: u64,
    /// Frames of PPP that arrived damaged, and packets whose headers could not be expanded: none, as the line loses nothing.
    pub damaged: u64,
}

/// The sending host's port.
#[derive(Debug, Default)]
struct NearPort {
    compressor: VjCompressor,
    contexts: IphcCompressor,
    /// Octets that wait, and when the one that crosses is through.
    octets: VecDeque<u8>,
    crossing: Option<Time>,
}

/// The line before the receiving modem.
#[derive(Debug, Default)]
struct LapmLine {
    /// Octets that wait in the sending modem, when the first of those that are not sent came from the port, and the last.
    octets: VecDeque<u8>,
    first: Option<Time>,
    last: Time,
    /// The frame that is on the line, and when it is through.
    frame: Option<(Time, Vec<u8>)>,
    free_at: Time,
}

/// The receiving host's port.
#[derive(Debug, Default)]
struct FarPort {
    reader: PppReader,
    expander: VjExpander,
    contexts: IphcExpander,
    free_at: Time,
    arrived: Vec<(Time, Vec<u8>)>,
}

/// One direction.
#[derive(Debug)]
pub struct DialUpWay {
    settings: DialUpSettings,
    near: NearPort,
    encoder: Option<V42bisEncoder>,
    line: LapmLine,
    decoder: Option<V42bisDecoder>,
    far: FarPort,
    tally: DialUpTally,
}

impl DialUpWay {
    pub(super) fn new(settings: DialUpSettings) -> DialUpWay {
        DialUpWay {
            settings,
            near: NearPort::default(),
            encoder: settings.v42bis.map(V42bisEncoder::new),
            line: LapmLine::default(),
            decoder: settings.v42bis.map(V42bisDecoder::new),
            far: FarPort::default(),
            tally: DialUpTally::default(),
        }
    }

    /// Counts so far.
    #[must_use]
    pub const fn tally(&self) -> DialUpTally {
        self.tally
    }

    pub(super) fn send(&mut self, packet: &[u8], now: Time) {
        self.tally.packets += 1;
        self.tally.packet_bytes += packet.len() as u64;
        let (protocol, content) = match self.settings.headers {
            HeaderCompression::Off => (IP, packet.to_vec()),
            HeaderCompression::Tcp => match self.near.compressor.compress(packet) {
                VjPacket::Plain(packet) => (IP, packet),
                VjPacket::Remembered(packet) => (VJ_UNCOMPRESSED, packet),
                VjPacket::Changed(packet) => (VJ_COMPRESSED, packet),
            },
            HeaderCompression::NotTcp => match self.near.contexts.compress(packet, now) {
                IphcPacket::Plain(packet) => (IP, packet),
                IphcPacket::Full(packet) => (FULL_HEADER, packet),
                IphcPacket::Compressed(packet) => (COMPRESSED_NON_TCP, packet),
            },
        };
        let mut octets = Vec::with_capacity(content.len() + 8);
        write_ppp(&[&[protocol][..], &content].concat(), &mut octets);
        self.near.octets.extend(octets);
        self.cross(now);
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        let arrives = self.far.arrived.iter().map(|(at, _)| *at).min();
        self.works_at().into_iter().chain(arrives).min()
    }

    pub(super) fn poll(&mut self, now: Time) -> Vec<(Time, Vec<u8>)> {
        while let Some(at) = self.works_at().filter(|at| *at <= now) {
            self.work(at);
        }
        let arrived = core::mem::take(&mut self.far.arrived);
        let (arrived, later) = arrived.into_iter().partition(|(at, _)| *at <= now);
        self.far.arrived = later;
        arrived
    }

    /// When an octet or a frame is through, or a frame begins.
    fn works_at(&self) -> Option<Time> {
        let line = self.line.frame.as_ref().map_or_else(|| self.sends_at(), |(at, _)| Some(*at));
        self.near.crossing.into_iter().chain(line).min()
    }

    /// When the next frame goes on the idle line.
    fn sends_at(&self) -> Option<Time> {
        let LapmLine { octets, first, last, free_at, .. } = &self.line;
        let (full, first) = (octets.len() >= LAPM_CONTENT, (*first)?);
        let pause = *last + self.octet_time() * WAITS_FOR;
        let ready = if full { *last } else { pause.min(first + self.line_time(LAPM_BITS)) };
        Some(ready.max(*free_at))
    }

    fn work(&mut self, now: Time) {
        if self.near.crossing.is_some_and(|at| at <= now) {
            self.near.crossing = None;
            if let Some(octet) = self.near.octets.pop_front() {
                self.enter(octet, now);
            }
        } else if let Some((_, content)) = self.line.frame.take_if(|(at, _)| *at <= now) {
            self.line.free_at = now;
            self.arrive(&content, now + self.settings.delay);
        } else if self.sends_at().is_some_and(|at| at <= now) {
            self.put_on_line(now);
        }
        self.cross(now);
    }

    /// The next octet begins to cross the port, if the modem has room.
    fn cross(&mut self, now: Time) {
        let NearPort { octets, crossing, .. } = &self.near;
        if crossing.is_none() && !octets.is_empty() && self.line.octets.len() < MODEM_ROOM {
            self.near.crossing = Some(now + self.octet_time());
        }
    }

    fn octet_time(&self) -> Duration {
        Duration::from_nanos(10_000_000_000 / self.settings.port)
    }

    fn line_time(&self, bits: u64) -> Duration {
        Duration::from_nanos(bits * 1_000_000_000 / self.settings.line)
    }

    /// An octet enters the modem.
    fn enter(&mut self, octet: u8, now: Time) {
        self.tally.port_octets += 1;
        let mut coded = Vec::new();
        match &mut self.encoder {
            Some(encoder) => encoder.push(octet, &mut coded),
            None => coded.push(octet),
        }
        self.queue(&coded);
        self.line.first.get_or_insert(now);
        self.line.last = now;
    }

    fn queue(&mut self, coded: &[u8]) {
        self.tally.modem_octets += coded.len() as u64;
        self.line.octets.extend(coded);
    }

    fn put_on_line(&mut self, now: Time) {
        let mut coded = Vec::new();
        if let Some(encoder) = self.encoder.as_mut().filter(|_| self.line.octets.len() < LAPM_CONTENT) {
            encoder.flush(&mut coded);
        }
        self.queue(&coded);
        let len = self.line.octets.len().min(LAPM_CONTENT);
        let content: Vec<u8> = self.line.octets.drain(..len).collect();
        let bits = lapm_bits(&content, self.tally.frames);
        self.tally.frames += 1;
        self.tally.line_bits += bits;
        let holds_back = self.encoder.as_ref().is_some_and(V42bisEncoder::holds_back);
        self.line.first = (holds_back || !self.line.octets.is_empty()).then_some(now);
        self.line.frame = Some((now + self.line_time(bits), content));
    }

    /// A frame is whole at the far modem, which expands it and passes it on.
    fn arrive(&mut self, content: &[u8], at: Time) {
        let mut octets = Vec::new();
        let expanded = content.iter().try_for_each(|octet| match &mut self.decoder {
            Some(decoder) => decoder.push(*octet, &mut octets),
            None => {
                octets.push(*octet);
                Ok::<_, V42bisError>(())
            }
        });
        self.tally.damaged += u64::from(expanded.is_err());
        let octet_time = self.octet_time();
        self.far.free_at = self.far.free_at.max(at);
        for octet in octets {
            self.far.free_at += octet_time;
            let Some(frame) = self.far.reader.push(octet) else { continue };
            let packet = self.far.read(frame);
            match packet {
                Some(packet) => self.far.arrived.push((self.far.free_at, packet)),
                None => self.tally.damaged += 1,
            }
        }
        self.tally.damaged += self.far.reader.take_damaged();
    }
}

impl FarPort {
    /// The packet that a frame of PPP carries.
    fn read(&mut self, mut frame: Vec<u8>) -> Option<Vec<u8>> {
        let protocol = *frame.first()?;
        frame.remove(0);
        match protocol {
            IP => Some(frame),
            VJ_UNCOMPRESSED => self.expander.expand(&VjPacket::Remembered(frame)),
            VJ_COMPRESSED => self.expander.expand(&VjPacket::Changed(frame)),
            FULL_HEADER => self.contexts.expand(&IphcPacket::Full(frame)),
            COMPRESSED_NON_TCP => self.contexts.expand(&IphcPacket::Compressed(frame)),
            _ => None,
        }
    }
}
