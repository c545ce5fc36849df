//! A peer who has the keys of a session and seals whatever it likes.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;
use strait_crypto::{Key, KeyMaterial, NonceCounter, Suite};
use strait_wire::esp::{Header, emit_trailer, pad_len};
use strait_wire::{Esn, Protocol, Spi};

use crate::Error;

/// ESP's header; the IV is implicit.
const FRONT: usize = strait_wire::esp::HEADER_LEN;
/// Pad length and next header.
const TRAILER: usize = 2;
/// Where its sequence numbers begin: beyond all that the real daemon, which keeps the session alive, has sent.
const FIRST: u64 = 1 << 20;

/// The sending end of a session's security association.
#[derive(Debug)]
pub struct HostilePeer {
    spi: Spi,
    key: Key,
    numbers: NonceCounter,
    /// The association that it receives with, which reports name.
    received: Spi,
}

impl HostilePeer {
    /// With the last keys in the file that a daemon's `danger_export_keys` names, and numbers from `after` on beyond those of
    /// that daemon. IVs must be implicit.
    ///
    /// # Errors
    /// [`Error::System`] when there are none.
    pub fn of(keys: &Path, after: u64) -> Result<HostilePeer, Error> {
        let read = || -> io::Result<HostilePeer> {
            let text = fs::read_to_string(keys)?;
            let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            let last = |direction: &str| lines.iter().rev().find(|line| line["direction"] == direction);
            let lack = || io::Error::new(io::ErrorKind::NotFound, "no key of a session");
            let (out, back) = (last("out").ok_or_else(lack)?, last("in").ok_or_else(lack)?);
            let suite = Suite::ALL.into_iter().find(|suite| out["suite"] == suite.name());
            let bytes = bytes(out["key_and_salt"].as_str().unwrap_or_default());
            let material = KeyMaterial::new(suite.ok_or_else(lack)?, &bytes).map_err(io::Error::other)?;
            let (spi, received) = (spi(out).ok_or_else(lack)?, spi(back).ok_or_else(lack)?);
            let numbers = NonceCounter::starting_at(FIRST + after);
            Ok(HostilePeer { spi, key: Key::new(&material), numbers, received })
        };
        read().map_err(Error::doing(format!("read the keys in {}", keys.display())))
    }

    /// The SPI of what the victim sends to it.
    #[must_use]
    pub const fn received_spi(&self) -> Spi {
        self.received
    }

    /// The ESP packet with a payload, under the next number; empty when the key is used up.
    pub fn seal(&mut self, next: Protocol, payload: &[u8]) -> Vec<u8> {
        let Ok(nonce) = self.numbers.next() else { return Vec::new() };
        let esn = Esn(nonce.value());
        let text = payload.len() + pad_len(payload.len(), 4) + TRAILER;
        let mut packet = vec![0; FRONT + text];
        let _ = Header { spi: self.spi, seq: esn.low() }.emit(&mut packet);
        let (_, body) = packet.split_at_mut(FRONT);
        let (front, trailer) = body.split_at_mut(payload.len());
        front.copy_from_slice(payload);
        let _ = emit_trailer(trailer, next);
        let aad = [&self.spi.0.to_be_bytes()[..], &esn.0.to_be_bytes()].concat();
        match self.key.seal(nonce, &aad, body) {
            Ok(icv) => packet.extend_from_slice(&icv),
            Err(_) => packet.clear(),
        }
        packet
    }
}

fn spi(line: &Value) -> Option<Spi> {
    let digits = line["spi"].as_str()?.strip_prefix("0x")?;
    u32::from_str_radix(digits, 16).ok().map(Spi)
}

/// Bytes from hexadecimal digits; what is none is left out.
fn bytes(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}
