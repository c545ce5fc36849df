//! A stack of protocols, and the calls of the libraries that it cannot do without.

use strait_compress::{Ipcomp, IpcompAlgorithm};
use strait_crypto::{
    Cipher, CipherKey, ICV_MAX, IV_MAX, Integrity, Key, KeyMaterial, MacKey, NonceCounter, Suite,
};
use strait_ipsec::wrap::{Head, Inside};
use strait_ipsec::{
    AhSpec, Carrier, EspKeys, EspSpec, Fragments, InboundSa, IvMode, Mode, OutboundSa, Payloads, PeerId,
    SaSpec, SequenceNumbers,
};
use strait_wire::ah::Align;
use strait_wire::ip::{Front, V4_HEADER_LEN};
use strait_wire::{Protocol, Spi, Tos, ipcomp};

use crate::error::Error;

/// Addresses for documentation (RFC 5737).
const ENDS: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];
/// SPI and sequence number, which an AEAD suite covers beside the text (RFC 4106 section 5).
const AAD: [u8; 8] = [7; 8];
/// Bytes of the header in front of what ESP encrypts, without the IV.
const ESP_HEADER: usize = 8;

/// ESP of a stack.
#[derive(Clone, Copy, Debug)]
pub(super) enum StackEsp {
    /// One algorithm for both.
    Aead(Suite),
    /// A cipher, and an integrity algorithm unless AH stands around it.
    Separate(Cipher, Option<Integrity>),
}

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack {
    pub(super) name: &'static str,
    pub(super) ipcomp: Option<IpcompAlgorithm>,
    pub(super) esp: Option<StackEsp>,
    pub(super) ah: Option<Integrity>,
}

fn material(len: usize) -> Vec<u8> {
    (7_u8..).take(len).collect()
}

/// An error of a library that what is measured here never gives.
fn refused(what: &str) -> Error {
    Error::doing(format!("measure {what}"))(std::io::Error::other("a library refused its part"))
}

fn mac(integrity: Integrity) -> Result<KeyMaterial<Integrity>, Error> {
    KeyMaterial::new(integrity, &material(integrity.key_len())).map_err(|_| refused(integrity.name()))
}

impl Stack {
    fn keys(self) -> Result<Option<EspKeys>, Error> {
        Ok(match self.esp {
            None => None,
            Some(StackEsp::Aead(suite)) => {
                let key = KeyMaterial::new(suite, &material(suite.key_material_len()));
                Some(EspKeys::Aead { key: key.map_err(|_| refused(self.name))?, iv: IvMode::Explicit })
            }
            Some(StackEsp::Separate(cipher, integrity)) => {
                let key = KeyMaterial::new(cipher, &material(cipher.key_len()));
                let integrity = integrity.map(mac).transpose()?;
                Some(EspKeys::Separate { cipher: key.map_err(|_| refused(self.name))?, integrity, seed: 7 })
            }
        })
    }

    /// In tunnel mode, directly behind IPv4.
    fn spec(self) -> Result<SaSpec, Error> {
        let [from, to] = ENDS.map(Into::into);
        let ah = self.ah.map(mac).transpose()?;
        Ok(SaSpec {
            peer: PeerId(1),
            ah: ah.map(|integrity| AhSpec { spi: Spi(0x1001), integrity, align: Align::Four }),
            esp: self.keys()?.map(|keys| EspSpec { spi: Spi(0x1002), keys }),
            sequence: SequenceNumbers::Bits32,
            mode: Mode::Tunnel,
            carrier: Carrier::Ip { from, to },
            fragments: Fragments::Never,
            payloads: Payloads::STANDARD,
        })
    }

    pub(super) fn sender(self) -> Result<StackSender, Error> {
        let sa = OutboundSa::new(&self.spec()?);
        Ok(StackSender {
            stack: self,
            sa,
            ipcomp: Ipcomp::new(),
            compressed: vec![0; 1 << 16],
            packet: vec![0; 1 << 17],
        })
    }

    pub(super) fn receiver(self) -> Result<StackReceiver, Error> {
        let sa = InboundSa::new(&self.spec()?);
        Ok(StackReceiver {
            stack: self,
            sa,
            ipcomp: Ipcomp::new(),
            packet: vec![0; 1 << 17],
            expanded: vec![0; 1 << 17],
        })
    }

    pub(super) fn bare(self) -> Result<Bare, Error> {
        let (aead, cipher, esp_mac) = match self.keys()? {
            None => (None, None, None),
            Some(EspKeys::Aead { key, .. }) => (Some(Key::new(&key)), None, None),
            Some(EspKeys::Separate { cipher, integrity, .. }) => {
                (None, Some(CipherKey::new(&cipher)), integrity.as_ref().map(MacKey::new))
            }
        };
        let ah = self.ah.map(mac).transpose()?;
        Ok(Bare {
            stack: self,
            nonces: NonceCounter::new(),
            aead,
            cipher,
            esp_mac,
            ah_mac: ah.as_ref().map(MacKey::new),
            ipcomp: Ipcomp::new(),
            work: vec![0x5a; 1 << 17],
            out: vec![0; 1 << 17],
        })
    }
}

/// The steps on the way out.
pub(super) struct StackSender {
    stack: Stack,
    sa: OutboundSa,
    ipcomp: Ipcomp,
    compressed: Vec<u8>,
    packet: Vec<u8>,
}

impl StackSender {
    /// Protects a payload; the packet.
    pub(super) fn protect(&mut self, payload: &[u8]) -> Result<&[u8], Error> {
        let algorithm = self.stack.ipcomp;
        let len = algorithm.and_then(|it| self.ipcomp.compress(it, payload, &mut self.compressed));
        let head = Head::Fresh(Tos(0));
        let front = self.sa.front_len(head);
        let at = self.sa.payload_at(front);
        let inner = len.map_or(payload.len(), |len| len + ipcomp::HEADER_LEN);
        let whole = self.sa.sealed_len(front, inner);
        let packet = &mut self.packet[..whole];
        let next = match (len, algorithm) {
            (Some(len), Some(algorithm)) => {
                let cpi = strait_wire::Cpi(algorithm.number().into());
                let header = ipcomp::Header { next: Protocol::IPIP, cpi };
                let _ = header.emit(&mut packet[at..]);
                packet[at + ipcomp::HEADER_LEN..at + inner].copy_from_slice(&self.compressed[..len]);
                Protocol::IPCOMP
            }
            _ => {
                packet[at..at + inner].copy_from_slice(payload);
                Protocol::IPIP
            }
        };
        self.sa.seal(head, packet, inner, next).map_err(|_| refused(self.stack.name))?;
        Ok(packet)
    }
}

/// The steps on the way in.
pub(super) struct StackReceiver {
    stack: Stack,
    sa: InboundSa,
    ipcomp: Ipcomp,
    packet: Vec<u8>,
    expanded: Vec<u8>,
}

impl StackReceiver {
    /// Opens a packet, which is copied first as opening changes it; bytes of the payload.
    pub(super) fn open(&mut self, packet: &[u8]) -> Result<usize, Error> {
        let refused = || refused(self.stack.name);
        let work = &mut self.packet[..packet.len()];
        work.copy_from_slice(packet);
        let front = Front::parse(work).map_err(|_| refused())?;
        let inside = Inside::untouched(front.len, work.len(), front.next);
        let inside = self.sa.open(work, inside).map_err(|_| refused())?;
        match self.stack.ipcomp.filter(|_| inside.next == Protocol::IPCOMP) {
            None => Ok(inside.range().len()),
            Some(algorithm) => {
                let payload = &work[inside.at + ipcomp::HEADER_LEN..inside.end];
                self.ipcomp.expand(algorithm, payload, &mut self.expanded).map_err(|_| refused())
            }
        }
    }
}

/// The calls of cipher, integrity algorithm and codec that the steps consist of, on as many bytes, and nothing else.
pub(super) struct Bare {
    stack: Stack,
    nonces: NonceCounter,
    aead: Option<Key>,
    cipher: Option<CipherKey>,
    esp_mac: Option<MacKey>,
    ah_mac: Option<MacKey>,
    ipcomp: Ipcomp,
    work: Vec<u8>,
    out: Vec<u8>,
}

/// How long the parts of a packet are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// The whole packet.
    packet: usize,
    /// What ESP encrypts; 0 without ESP.
    text: usize,
    /// ESP's header and IV.
    front: usize,
    /// ESP's integrity check value.
    icv: usize,
}

impl Stack {
    /// The lengths in a packet of this stack.
    pub(super) fn lengths(self, packet: &[u8]) -> Lengths {
        let ah = self.ah.map_or(0, |ah| strait_wire::ah::len(ah.icv_len(), Align::Four));
        let (iv, icv) = match self.esp {
            None => return Lengths { packet: packet.len(), text: 0, front: 0, icv: 0 },
            Some(StackEsp::Aead(suite)) => (8, suite.icv_len()),
            Some(StackEsp::Separate(cipher, integrity)) => {
                (cipher.iv_len(), integrity.map_or(0, Integrity::icv_len))
            }
        };
        let front = ESP_HEADER + iv;
        let text = packet.len() - V4_HEADER_LEN - ah - front - icv;
        Lengths { packet: packet.len(), text, front, icv }
    }
}

impl Bare {
    pub(super) fn out(&mut self, payload: &[u8], lengths: Lengths) -> Result<(), Error> {
        let refused = || refused(self.stack.name);
        if let Some(algorithm) = self.stack.ipcomp {
            std::hint::black_box(self.ipcomp.compress(algorithm, payload, &mut self.out));
        }
        let Lengths { packet, text, front, .. } = lengths;
        if let Some(key) = &self.aead {
            let nonce = self.nonces.next().map_err(|_| refused())?;
            std::hint::black_box(key.seal(nonce, &AAD, &mut self.work[..text]).map_err(|_| refused())?);
        }
        if let Some(key) = &self.cipher {
            let mut iv = [0; IV_MAX];
            let iv = &mut iv[..key.cipher().iv_len()];
            key.iv_for(1, 7, iv);
            key.encrypt(iv, &mut self.work[..text]).map_err(|_| refused())?;
        }
        let mut icv = [0; ICV_MAX];
        if let Some(mac) = &self.esp_mac {
            mac.sign(&[&self.work[..front + text]], &mut icv[..mac.integrity().icv_len()]);
        }
        if let Some(mac) = &self.ah_mac {
            mac.sign(&[&self.work[..packet]], &mut icv[..mac.integrity().icv_len()]);
        }
        std::hint::black_box(icv);
        Ok(())
    }

    /// The same calls backwards on `packet`, which is copied first as it is for the steps. Integrity check values are
    /// compared with others than the packet's: that takes the same time.
    pub(super) fn back(
        &mut self,
        packet: &[u8],
        compressed: Option<&[u8]>,
        lengths: Lengths,
    ) -> Result<(), Error> {
        let Lengths { text, front, icv, .. } = lengths;
        self.work[..packet.len()].copy_from_slice(packet);
        if let Some(mac) = &self.ah_mac {
            let _ = std::hint::black_box(
                mac.verify(&[&self.work[..packet.len()]], &[7; ICV_MAX][..mac.integrity().icv_len()]),
            );
        }
        if let Some(mac) = &self.esp_mac {
            let _ = std::hint::black_box(mac.verify(&[&self.work[..front + text]], &[7; ICV_MAX][..icv]));
        }
        if let Some(key) = &self.aead {
            let esp = &mut self.work[packet.len() - front - text - icv..packet.len()];
            let (header, sealed) = esp.split_at_mut(front);
            let (aad, iv) = header.split_at(ESP_HEADER);
            let iv = u64::from_be_bytes(iv.try_into().map_err(|_| refused(self.stack.name))?);
            std::hint::black_box(key.open(iv, aad, sealed).map_err(|_| refused(self.stack.name))?);
        }
        if let Some(key) = &self.cipher {
            let iv = &[7; IV_MAX][..key.cipher().iv_len()];
            key.decrypt(iv, &mut self.work[..text]).map_err(|_| refused(self.stack.name))?;
        }
        if let (Some(algorithm), Some(compressed)) = (self.stack.ipcomp, compressed) {
            let expanded = self.ipcomp.expand(algorithm, compressed, &mut self.out);
            std::hint::black_box(expanded.map_err(|_| refused(self.stack.name))?);
        }
        Ok(())
    }

    /// A payload compressed as the steps do.
    pub(super) fn compress(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let len = self.ipcomp.compress(self.stack.ipcomp?, payload, &mut self.out)?;
        Some(self.out[..len].to_vec())
    }
}
