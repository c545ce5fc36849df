//! Whole packets that others made.

use strait_crypto::{Cipher, KeyMaterial, Suite};
use strait_wire::esp::{Header, parse_trailer};
use strait_wire::ip::Packet;
use strait_wire::{Esn, Protocol, SeqLow, Spi};

use super::Separate;
use crate::layers::Authentic;
use crate::wrap::Inside;
use crate::{InboundSa, IvMode, Payloads, PeerId, SaSpec, SequenceNumbers};

/// Bytes written in hex, spaces and line ends between them.
fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn sa(suite: Suite, key: &[u8], spi: Spi, sequence: SequenceNumbers) -> InboundSa {
    let key = KeyMaterial::new(suite, key).unwrap();
    let session = SaSpec::session(PeerId(0), spi, key, IvMode::Explicit, Payloads::STANDARD);
    InboundSa::new(&SaSpec { sequence, ..session })
}

/// Opens a whole ESP packet: its number, what it is and what was inside.
fn open(sa: &mut InboundSa, mut packet: Vec<u8>) -> (Esn, Protocol, Vec<u8>) {
    let inside = Inside::untouched(0, packet.len(), Protocol::ESP);
    let inside = sa.open(&mut packet, inside).unwrap();
    (inside.esn, inside.next, packet[inside.range()].to_vec())
}

/// The section of the vector file under `title`.
fn section(title: &str) -> Vec<u8> {
    let file = include_str!("../../tests/vectors/rfc7634-appendix-a.txt");
    let lines = file.lines().skip_while(|line| *line != title).skip(1);
    hex(&lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" "))
}

#[test]
fn the_packet_of_rfc_7634_opens() {
    let key = section("KEYMAT");
    let mut sa = sa(Suite::ChaCha20Poly1305, &key, Spi(0x0102_0304), SequenceNumbers::Bits32);
    let packet = section("ESP packet").split_off(20);
    let header = Header::parse(&packet).unwrap().0;
    assert_eq!((header.spi, header.seq), (Spi(0x0102_0304), SeqLow(5)));
    assert_eq!(open(&mut sa, packet), (Esn(5), Protocol::IPIP, section("Source Packet")));
}

/// A file of vectors that cannot be part of the project.
fn file(name: &str) -> Option<String> {
    strait_testdata::find_or_skip(name).map(|path| std::fs::read_to_string(path).unwrap())
}

/// The text of `field` in the case of this name.
fn field(file: &str, case: &str, field: &str) -> String {
    let at = file.find(&format!("\"name\": \"{case}\"")).unwrap();
    let value = file[at..].split_once(&format!("\"{field}\": \"")).unwrap().1;
    value.split('"').next().unwrap().to_owned()
}

/// Opens `sealed`, the packet behind SPI and sequence number, as the one numbered `esn`.
fn opens(mut sa: InboundSa, esn: Esn, sealed: &[u8]) -> (Vec<u8>, Protocol) {
    if esn.high() > 0 {
        let window = &mut sa.esp.as_mut().unwrap().received.window;
        window.commit(Esn(esn.0 - 1), &Authentic::checked());
    }
    let mut packet = vec![0; 8];
    Header { spi: sa.spi, seq: esn.low() }.emit(&mut packet).unwrap();
    packet.extend(sealed);
    let (opened, next, payload) = open(&mut sa, packet);
    assert_eq!(opened, esn);
    (payload, next)
}

/// The packets whose upper half is in the integrity check alone, to a receiver that knows of no packet before them.
#[test]
fn an_upper_half_that_was_lost_is_the_one_with_which_the_packet_opens() {
    let (Some(mcgrew), Some(linux)) =
        (file("vectors/esp-aes-gcm-mcgrew-draft.json"), file("vectors/esp-linux-kernel-packets.json"))
    else {
        return;
    };
    let case = "AES-128-GCM, ESN AAD (12 octets)";
    let value = |name| hex(&field(&mcgrew, case, name));
    let (nonce, key) = (value("nonce"), value("key"));
    let (salt, iv) = nonce.split_at(4);
    let mcgrew = ([&key, salt].concat(), 0x4321, 0, [iv, &value("ctext_tag")].concat(), 0x8765_4321);
    let sealed =
        hex(&field(&linux, "IPv4 / ESP - Transport - AES-GCM - NULL -- ESN", "esp_payload_after_seq_hex"));
    let linux = (b"16bytekey+4bytenonce".to_vec(), 0x222, 1, sealed, 1);
    for (key, spi, low, sealed, high) in [mcgrew, linux] {
        for tried in [0, high - 1, high + 1, high] {
            let mut sa = sa(Suite::Aes128Gcm, &key, Spi(spi), SequenceNumbers::Bits64);
            let mut packet = vec![0; 8];
            Header { spi: sa.spi, seq: SeqLow(low) }.emit(&mut packet).unwrap();
            packet.extend(&sealed);
            let inside = Inside::untouched(0, packet.len(), Protocol::ESP);
            let opened = sa.open_in_epoch(&mut packet, inside, tried).map(|opened| opened.esn);
            let expected = (tried == high).then_some(Esn(u64::from(high) << 32 | u64::from(low)));
            assert_eq!(opened.ok(), expected, "{spi:#x} {tried:#x}");
        }
    }
}

#[test]
fn the_packets_of_draft_mcgrew_gcm_test_open() {
    let Some(file) = file("vectors/esp-aes-gcm-mcgrew-draft.json") else { return };
    for (case, suite, spi, esn, sequence) in [
        (
            "AES-128-GCM, ESN AAD (12 octets)",
            Suite::Aes128Gcm,
            0x4321,
            0x8765_4321_0000_0000,
            SequenceNumbers::Bits64,
        ),
        (
            "AES-256-GCM, 32-bit sequence AAD (8 octets)",
            Suite::Aes256Gcm,
            0x4a2c_bfe3,
            2,
            SequenceNumbers::Bits32,
        ),
    ] {
        let value = |name| hex(&field(&file, case, name));
        let (nonce, plain) = (value("nonce"), value("plaintext"));
        let (salt, iv) = nonce.split_at(4);
        let sa = sa(suite, &[&value("key"), salt].concat(), Spi(spi), sequence);
        let (payload, next) = opens(sa, Esn(esn), &[iv, &value("ctext_tag")].concat());
        // Both end in padding 1, 2, its length, and ICMP for next header.
        assert_eq!((next, [&payload[..], &[1, 2, 2, 1]].concat()), (Protocol::ICMP, plain), "{case}");
    }
}

#[test]
fn the_packets_of_linux_open() {
    let Some(file) = file("vectors/esp-linux-kernel-packets.json") else { return };
    let plain = "IPv4 / ESP - Transport - AES-GCM - NULL";
    let extended = "IPv4 / ESP - Transport - AES-GCM - NULL -- ESN";
    for (case, esn, sequence) in
        [(plain, 1, SequenceNumbers::Bits32), (extended, (1 << 32) + 1, SequenceNumbers::Bits64)]
    {
        let sa = sa(Suite::Aes128Gcm, b"16bytekey+4bytenonce", Spi(0x222), sequence);
        let (payload, next) = opens(sa, Esn(esn), &hex(&field(&file, case, "esp_payload_after_seq_hex")));
        let packet = Packet::parse(&payload).unwrap();
        assert_eq!(
            (next, packet.protocol(), packet.bytes().len()),
            (Protocol::IPIP, Protocol::ICMP, 84),
            "{case}"
        );
    }
}

#[test]
fn the_packets_of_linux_with_ciphers_alone_decrypt() {
    let Some(file) = file("vectors/esp-linux-kernel-packets.json") else { return };
    for (case, cipher, key) in [
        ("DES", Cipher::DesCbc, "8bytekey"),
        ("3DES", Cipher::TripleDesCbc, "threedifferent8byteskeys"),
        ("AES-CBC", Cipher::Aes128Cbc, "sixteenbytes key"),
    ] {
        let name = format!("IPv4 / ESP - Transport - {case} - NULL");
        let mut packet = hex("00000222 00000001");
        packet.extend(hex(&field(&file, &name, "esp_payload_after_seq_hex")));
        let keys = Separate::new(&KeyMaterial::new(cipher, key.as_bytes()).unwrap(), None, 0);
        // No integrity algorithm: the text comes without a proof, and an association would not deliver it.
        let (text, proof) = keys.open(Esn(1), SequenceNumbers::Bits32, &mut packet).unwrap();
        let (payload, next) = parse_trailer(text).unwrap();
        let inner = Packet::parse(payload).unwrap();
        assert_eq!(
            (next, inner.protocol(), proof.is_none()),
            (Protocol::IPIP, Protocol::ICMP, true),
            "{case}"
        );
    }
}
