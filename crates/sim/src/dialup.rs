//! A dial-up connection of the 1990s: PPP over serial ports, and two modems between them that compress and frame what they carry.
//!
//! ```text
//! host    PPP, with or without compressed headers            vj.rs (RFC 1144), iphc.rs (RFC 2507), hdlc.rs (RFC 1662)
//!  |      serial port, ten bits an octet, hardware flow control
//! modem   V.42bis, or characters as they are                 encoder.rs dictionary.rs decoder.rs (ITU-T V.42bis)
//!  |      LAPM frames of up to 128 octets                    hdlc.rs (ITU-T V.42)
//!  |      the telephone line
//! modem   the same, backwards
//!  |      serial port
//! host
//! ```
//!
//! Octets move in virtual time, each direction by itself. The line loses nothing, and the modems' acknowledgements to each other
//! take no time of it.

mod decoder;
mod dictionary;
mod direction;
mod encoder;
mod hdlc;
mod iphc;
mod vj;

use core::time::Duration;

use strait_clock::Time;

pub use decoder::{V42bisDecoder, V42bisError};
pub use direction::{DialUpTally, DialUpWay};
pub use encoder::V42bisEncoder;
pub use iphc::{IphcCompressor, IphcExpander, IphcPacket};
pub use vj::{VjCompressor, VjExpander, VjPacket};

/// Codewords that are commands in compressed mode (V.42bis table 1).
mod command {
    /// Transparent mode follows (ETM).
    pub(super) const TRANSPARENT: u16 = 0;
    /// Bits up to the next octet mean nothing (FLUSH).
    pub(super) const FLUSH: u16 = 1;
    /// Codewords are a bit longer from here on (STEPUP).
    pub(super) const STEP_UP: u16 = 2;
}

/// Octets behind the escape character in transparent mode (V.42bis table 2), and how that one changes.
mod escape {
    /// Compressed mode follows (ECM).
    pub(super) const COMPRESS: u8 = 0;
    /// The escape character itself, as data (EID).
    pub(super) const DATA: u8 = 1;
    /// Both ends begin anew (RESET).
    pub(super) const RESET: u8 = 2;

    /// The escape character after it was met in the data, in either mode (section 9.2).
    pub(super) const fn after(escape: u8) -> u8 {
        escape.wrapping_add(51)
    }
}

/// What two modems agree on for V.42bis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V42bisSettings {
    codewords: u16,
    longest: u8,
}

impl V42bisSettings {
    /// A dictionary of so many codewords (N2, from 512), with strings of up to so many characters (N7, 6 to 250); nothing for what
    /// the Recommendation does not allow (section 10).
    #[must_use]
    pub const fn new(codewords: u16, longest: u8) -> Option<V42bisSettings> {
        if codewords < 512 || longest < 6 || longest > 250 {
            return None;
        }
        Some(V42bisSettings { codewords, longest })
    }

    /// Bits of the longest codeword (N1).
    const fn width(self) -> u32 {
        u16::BITS - (self.codewords - 1).leading_zeros()
    }
}

impl Default for V42bisSettings {
    /// 2,048 codewords and strings of 32 characters, which modems of 14.4 kbit/s offered; the Recommendation itself has 512 and 6
    /// where two modems agree on nothing else.
    fn default() -> V42bisSettings {
        V42bisSettings { codewords: 2048, longest: 32 }
    }
}

/// The headers that hosts compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderCompression {
    /// None.
    Off,
    /// Those of TCP (RFC 1144), as every PPP has it.
    Tcp,
    /// Those of UDP and ESP (RFC 2507 and 3544), as routers have it; of TCP none.
    NotTcp,
}

/// What a connection is like; the default is that of Braun, Claffy and Gross, *Measured interference of network security mechanisms
/// with network performance* (1995), as far as they say.
#[derive(Clone, Copy, Debug)]
pub struct DialUpSettings {
    /// Bits a second on the line.
    pub line: u64,
    /// Bits a second at the serial ports, ten an octet.
    pub port: u64,
    /// How modems compress, if they do.
    pub v42bis: Option<V42bisSettings>,
    /// The headers that hosts compress.
    pub headers: HeaderCompression,
    /// From the end of a frame on the line to its first octet at the far port: what both modems need to make sounds of bits and
    /// bits of sounds. Tens of milliseconds with V.32bis, whose trellis code has both wait.
    pub delay: Duration,
}

impl Default for DialUpSettings {
    fn default() -> DialUpSettings {
        DialUpSettings {
            line: 14_400,
            port: 38_400,
            v42bis: Some(V42bisSettings::default()),
            headers: HeaderCompression::Tcp,
            delay: Duration::from_millis(40),
        }
    }
}

/// Both directions of a connection.
#[derive(Debug)]
pub struct DialUp {
    ways: [DialUpWay; 2],
}

impl DialUp {
    /// A connection on which nothing was sent.
    #[must_use]
    pub fn new(settings: DialUpSettings) -> DialUp {
        DialUp { ways: [DialUpWay::new(settings), DialUpWay::new(settings)] }
    }

    /// One direction: the first host's packets, or the second's.
    #[must_use]
    pub const fn way(&self, from: usize) -> &DialUpWay {
        &self.ways[from]
    }

    /// Host `from` sends an IP packet.
    pub fn send(&mut self, from: usize, packet: &[u8], now: Time) {
        self.ways[from].send(packet, now);
    }

    /// When something happens next by itself, if anything does.
    #[must_use]
    pub fn next_at(&self) -> Option<Time> {
        self.ways.iter().filter_map(DialUpWay::next_at).min()
    }

    /// What arrived until `now`: from which host, when, and the packet.
    pub fn poll(&mut self, now: Time) -> Vec<(usize, Time, Vec<u8>)> {
        let mut arrived = Vec::new();
        for (from, way) in self.ways.iter_mut().enumerate() {
            arrived.extend(way.poll(now).into_iter().map(|(at, packet)| (from, at, packet)));
        }
        arrived.sort_by_key(|(_, at, _)| *at);
        arrived
    }
}

/// Returns the two bytes of a header from `at` on, as a number.
fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests;
