//! ESP alone: every suite, and every cipher with every integrity algorithm.

use strait_crypto::{Cipher, Integrity, KeyMaterial, Suite};
use strait_wire::{Protocol, Spi, Tos, esp};

use crate::sequence::NoNumber;
use crate::wrap::{Head, Inside, NotSealed};
use crate::{
    EspKeys, EspSpec, InboundSa, IvMode, OutboundSa, Payloads, PeerId, Reason, Reserve, SaSpec,
    SequenceNumbers,
};

const SPI: Spi = Spi(0x0400_0001);

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| u8::try_from(n).unwrap()).collect()
}

fn aead(suite: Suite, iv: IvMode, sequence: SequenceNumbers) -> SaSpec {
    let key = KeyMaterial::new(suite, &bytes(suite.key_material_len())).unwrap();
    SaSpec { sequence, ..SaSpec::session(PeerId(0), SPI, key, iv, Payloads::STANDARD) }
}

fn separate(cipher: Cipher, integrity: Option<Integrity>, sequence: SequenceNumbers) -> SaSpec {
    let integrity = integrity.map(|it| KeyMaterial::new(it, &bytes(it.key_len())).unwrap());
    let cipher = KeyMaterial::new(cipher, &bytes(cipher.key_len())).unwrap();
    let keys = EspKeys::Separate { cipher, integrity, seed: 7 };
    let session = aead(Suite::Aes128Gcm, IvMode::Explicit, sequence);
    SaSpec { esp: Some(EspSpec { spi: SPI, keys }), ..session }
}

/// Every way of protecting a packet that is whole by itself.
fn all() -> Vec<SaSpec> {
    let mut all = Vec::new();
    for sequence in [SequenceNumbers::Bits32, SequenceNumbers::Bits64] {
        for suite in Suite::ALL {
            all.extend([IvMode::Implicit, IvMode::Explicit].map(|iv| aead(suite, iv, sequence)));
        }
        for cipher in Cipher::ALL {
            all.extend(Integrity::ALL.map(|integrity| separate(cipher, Some(integrity), sequence)));
        }
    }
    all
}

fn seal(out: &mut OutboundSa, len: usize) -> Result<Vec<u8>, NotSealed> {
    let mut packet = vec![0x5a; out.sealed_len(0, len)];
    out.seal(Head::Fresh(Tos(0)), &mut packet, len, Protocol::IPIP)?;
    Ok(packet)
}

fn open(inn: &mut InboundSa, packet: &mut [u8]) -> Result<Inside, Reason> {
    inn.open(packet, Inside::untouched(0, packet.len(), Protocol::ESP))
}

#[test]
fn sealed_packet_opens_once_and_only_unchanged() {
    for spec in all() {
        let (mut out, mut inn) = (OutboundSa::new(&spec), InboundSa::new(&spec));
        for len in [0, 1, 2, 3, 20, 1400, 60_000] {
            let mut packet = seal(&mut out, len).unwrap();
            let room = |less| out.payload_room(0, packet.len() - less);
            assert!((len == 0 || len > room(16)) && len <= room(0), "{len} {spec:?}");
            let mut tampered = packet.clone();
            *tampered.last_mut().unwrap() ^= 1;
            assert_eq!(open(&mut inn, &mut tampered).unwrap_err(), Reason::Forged);
            let inside = open(&mut inn, &mut packet).unwrap();
            assert_eq!((inside.range().len(), inside.next), (len, Protocol::IPIP), "{spec:?}");
            assert!(packet[inside.range()].iter().all(|byte| *byte == 0x5a), "{spec:?}");
            assert_eq!(open(&mut inn, &mut packet).unwrap_err(), Reason::Replayed);
        }
        for len in 0..out.sealed_len(0, 0) - 2 {
            let mut short = vec![0; len];
            let _ = esp::Header { spi: SPI, seq: strait_wire::SeqLow(99) }.emit(&mut short);
            let error = open(&mut inn, &mut short).unwrap_err();
            assert!(matches!(error, Reason::MalformedEsp | Reason::Forged), "{len} {spec:?}: {error}");
        }
    }
}

#[test]
fn ciphertext_hides_plaintext_and_ivs_do_not_repeat() {
    for cipher in Cipher::ALL.into_iter().filter(|cipher| *cipher != Cipher::Null && cipher.iv_len() > 0) {
        let spec = separate(cipher, Some(Integrity::HmacSha256_128), SequenceNumbers::Bits32);
        let mut out = OutboundSa::new(&spec);
        let packets = [(); 3].map(|()| seal(&mut out, 64).unwrap());
        for packet in &packets {
            assert!(!packet.windows(8).any(|window| window == [0x5a; 8]), "{cipher}");
        }
        let ivs = packets.each_ref().map(|packet| &packet[8..8 + cipher.iv_len()]);
        assert!(ivs[0] != ivs[1] && ivs[1] != ivs[2] && ivs[0] != ivs[2], "{cipher}");
    }
}

#[test]
fn esp_without_integrity_is_not_delivered() {
    let spec = separate(Cipher::Aes128Cbc, None, SequenceNumbers::Bits32);
    let mut packet = seal(&mut OutboundSa::new(&spec), 100).unwrap();
    assert_eq!(open(&mut InboundSa::new(&spec), &mut packet).unwrap_err(), Reason::Unprotected);
}

#[test]
fn authentic_packet_with_wrong_padding_delivers_nothing() {
    let spec = separate(Cipher::Null, Some(Integrity::HmacSha256_128), SequenceNumbers::Bits32);
    let (mut out, mut inn) = (OutboundSa::new(&spec), InboundSa::new(&spec));
    let mac = strait_crypto::MacKey::new(
        &KeyMaterial::new(Integrity::HmacSha256_128, &bytes(Integrity::HmacSha256_128.key_len())).unwrap(),
    );
    for (pad_len, pad) in [(200, 2), (2, 9), (255, 1)] {
        let mut packet = seal(&mut out, 20).unwrap();
        let covered = packet.len() - 16;
        packet[covered - 2] = pad_len;
        packet[covered - 3] = pad;
        assert_eq!(open(&mut inn, &mut packet.clone()).unwrap_err(), Reason::Forged, "not read before that");
        let (text, icv) = packet.split_at_mut(covered);
        mac.sign(&[text], icv);
        assert_eq!(open(&mut inn, &mut packet).unwrap_err(), Reason::MalformedEsp);
    }
}

#[test]
fn the_last_32_bit_number_is_the_last() {
    let spec = aead(Suite::Aes128Gcm, IvMode::Explicit, SequenceNumbers::Bits32);
    let mut out = OutboundSa::new(&spec).within(Reserve::new(u64::from(u32::MAX), u64::MAX));
    let mut packet = seal(&mut out, 20).unwrap();
    assert_eq!(esp::Header::parse(&packet).unwrap().0.seq.0, u32::MAX);
    let mut inn = InboundSa::new(&spec);
    open(&mut inn, &mut packet).unwrap();
    // The number 0 of a next round is never taken for 2^32.
    packet[4..8].fill(0);
    assert_eq!(open(&mut inn, &mut packet).unwrap_err(), Reason::TooOld);
    for _ in 0..3 {
        assert_eq!(seal(&mut out, 20).unwrap_err(), NotSealed::NoNumber(NoNumber::Exhausted));
    }
}
