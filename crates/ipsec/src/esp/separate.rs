//! ESP with a cipher, then an integrity algorithm over header, IV and what the cipher made
//! (RFC 4303 section 3.3.2.1).

use strait_crypto::{Cipher, CipherKey, Integrity, KeyMaterial, MacKey};
use strait_wire::Esn;
use strait_wire::esp::HEADER_LEN;

use crate::layers::{Authentic, Unsealable};
use crate::sequence::unsent;
use crate::{Reason, SequenceNumbers};

/// Both keys of one direction.
#[derive(Debug)]
pub(super) struct Separate {
    cipher: CipherKey,
    /// Nothing only where AH protects the packet.
    mac: Option<MacKey>,
    seed: u64,
}

impl Separate {
    pub(super) fn new(
        cipher: &KeyMaterial<Cipher>,
        integrity: Option<&KeyMaterial<Integrity>>,
        seed: u64,
    ) -> Separate {
        Separate { cipher: CipherKey::new(cipher), mac: integrity.map(MacKey::new), seed }
    }

    pub(super) fn iv_len(&self) -> usize {
        self.cipher.cipher().iv_len()
    }

    pub(super) fn block_len(&self) -> usize {
        self.cipher.cipher().block_len()
    }

    pub(super) fn icv_len(&self) -> usize {
        self.mac.as_ref().map_or(0, |mac| mac.integrity().icv_len())
    }

    /// The rest of sealing: header, payload and trailer are in their places.
    pub(super) fn seal(
        &self,
        esn: Esn,
        length: SequenceNumbers,
        packet: &mut [u8],
    ) -> Result<(), Unsealable> {
        let text_end = packet.len().checked_sub(self.icv_len()).ok_or(Unsealable)?;
        let (covered, icv) = packet.split_at_mut_checked(text_end).ok_or(Unsealable)?;
        let (front, text) = covered.split_at_mut_checked(HEADER_LEN + self.iv_len()).ok_or(Unsealable)?;
        let iv = front.get_mut(HEADER_LEN..).ok_or(Unsealable)?;
        self.cipher.iv_for(esn.0, self.seed, iv);
        self.cipher.encrypt(iv, text).map_err(|_| Unsealable)?;
        if let Some(mac) = &self.mac {
            let (high, len) = unsent(esn, length);
            mac.sign(&[covered, high.get(..len).unwrap_or_default()], icv);
        }
        Ok(())
    }

    /// Checks, then decrypts; the text with the proof, if this is where the packet is checked.
    pub(super) fn open<'a>(
        &self,
        esn: Esn,
        length: SequenceNumbers,
        packet: &'a mut [u8],
    ) -> Result<(&'a [u8], Option<Authentic>), Reason> {
        let text_end = packet.len().checked_sub(self.icv_len()).ok_or(Reason::MalformedEsp)?;
        let (covered, icv) = packet.split_at_mut_checked(text_end).ok_or(Reason::MalformedEsp)?;
        let mut proof = None;
        if let Some(mac) = &self.mac {
            let (high, len) = unsent(esn, length);
            mac.verify(&[covered, high.get(..len).unwrap_or_default()], icv).map_err(|_| Reason::Forged)?;
            proof = Some(Authentic::checked());
        }
        let (front, text) =
            covered.split_at_mut_checked(HEADER_LEN + self.iv_len()).ok_or(Reason::MalformedEsp)?;
        let iv = front.get(HEADER_LEN..).ok_or(Reason::MalformedEsp)?;
        self.cipher.decrypt(iv, text).map_err(|_| Reason::MalformedEsp)?;
        Ok((text, proof))
    }
}
