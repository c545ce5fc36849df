//! Packets as tshark sees them, and what it should see of a case.

use std::fs;
use std::path::Path;

use strait_crypto::{Cipher, Integrity, Suite};
use strait_testbed::outside;

use crate::agreement::{Agreement, Direction, Layer};
use crate::case::{Case, Esp, Mode, Version};

/// What tshark says about a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dissected {
    /// Its protocols, outermost first, separated by colons.
    pub(crate) protocols: String,
    /// Whether ESP's ICV is right, where tshark checks it.
    pub(crate) icv: Option<bool>,
}

/// Dissects IP packets with the keys of everything that was agreed on. `capture` is written for that.
pub(crate) fn dissect(agreements: &[Agreement], packets: &[Vec<u8>], capture: &Path) -> Vec<Dissected> {
    fs::write(capture, pcap(packets)).unwrap();
    let checks = ["enable_encryption_decode", "enable_authentication_check"];
    let mut options: Vec<String> = checks.iter().map(|name| format!("-oesp.{name}:TRUE")).collect();
    for agreement in agreements {
        for direction in [Direction::ToGuest, Direction::FromGuest] {
            options.extend(key(agreement, direction).map(|key| format!("-ouat:esp_sa:{key}")));
        }
    }
    let frames = outside::dissect(capture, &options, &["frame.protocols", "esp.icv_good"]).unwrap();
    let dissected = |frame: Vec<String>| {
        let [protocols, icv] = <[String; 2]>::try_from(frame).unwrap();
        let icv = (!icv.is_empty()).then(|| matches!(&*icv, "1" | "True"));
        Dissected { protocols, icv }
    };
    frames.into_iter().map(dissected).collect()
}

/// What tshark should say about an echo in a case; nothing where it cannot look into it.
pub(crate) fn expected(case: Case, inner: Version) -> Option<Dissected> {
    let name = |version| match version {
        Version::V4 => "ip",
        Version::V6 => "ipv6",
    };
    if case.esp.is_some_and(|esp| algorithms(esp).is_none())
        || case.esn
        || matches!(case.mode, Mode::Aggfrag(_))
    {
        return None;
    }
    let mut protocols = vec!["raw", name(case.outer)];
    protocols.extend(case.udp.then_some(["udp", "udpencap"]).into_iter().flatten());
    protocols.extend(case.ah.map(|_| "ah"));
    protocols.extend(case.esp.map(|_| "esp"));
    protocols.extend(case.ipcomp.then_some(["ipcomp", "data"]).into_iter().flatten());
    protocols.extend((case.mode == Mode::Tunnel).then_some(name(inner)));
    protocols.extend(match inner {
        Version::V4 => ["icmp", "data"],
        Version::V6 => ["icmpv6", "data"],
    });
    let has_icv = !matches!(case.esp, None | Some(Esp::Separate(_, None)));
    Some(Dissected { protocols: protocols.join(":"), icv: has_icv.then_some(true) })
}

/// A capture of IP packets (the pcap format of draft-ietf-opsawg-pcap, section 4 and 5, with LINKTYPE_RAW).
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    // Magic, version 2.4, two reserved words, the longest packet, the kind of link.
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 0xffff, 101] {
        file.extend(u32::to_le_bytes(word));
    }
    for packet in packets {
        let length = u32::try_from(packet.len()).unwrap();
        for word in [0, 0, length, length] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend(packet);
    }
    file
}

/// One direction as a line of tshark's table `esp_sa`.
fn key(agreement: &Agreement, direction: Direction) -> Option<String> {
    let esp = agreement.case.esp?;
    let (cipher, integrity) = algorithms(esp)?;
    let version = match agreement.case.outer {
        Version::V4 => "IPv4",
        Version::V6 => "IPv6",
    };
    let (source, destination) = agreement.outer(direction);
    let spi = format!("{:#010x}", agreement.spi(direction, Layer::Esp));
    let hexadecimal = |key: String| if key.is_empty() { key } else { format!("0x{key}") };
    let cipher_key = hexadecimal(agreement.cipher_key(direction, esp));
    let integrity_key = match esp {
        Esp::Separate(_, Some(it)) => hexadecimal(agreement.integrity_key(direction, Layer::Esp, it)),
        Esp::Separate(_, None) | Esp::Combined(_) => String::new(),
    };
    let fields = [
        version,
        &source.to_string(),
        &destination.to_string(),
        &spi,
        cipher,
        &cipher_key,
        integrity,
        &integrity_key,
    ];
    Some(fields.map(|field| format!("\"{field}\"")).join(","))
}

/// Tshark's names of cipher and integrity algorithm, where it knows both.
fn algorithms(esp: Esp) -> Option<(&'static str, &'static str)> {
    match esp {
        Esp::Combined(Suite::Aes128Gcm | Suite::Aes256Gcm) => {
            Some(("AES-GCM with 16 octet ICV [RFC4106]", "NULL"))
        }
        Esp::Combined(Suite::Aes128Gcm12) => Some(("AES-GCM with 12 octet ICV [RFC4106]", "NULL")),
        Esp::Combined(Suite::ChaCha20Poly1305) => None,
        Esp::Separate(cipher, integrity) => {
            Some((cipher_name(cipher)?, integrity.map_or("NULL", integrity_name)))
        }
    }
}

fn cipher_name(cipher: Cipher) -> Option<&'static str> {
    match cipher {
        Cipher::Null => Some("NULL"),
        Cipher::Aes128Cbc | Cipher::Aes192Cbc | Cipher::Aes256Cbc => Some("AES-CBC [RFC3602]"),
        Cipher::DesCbc => Some("DES-CBC [RFC2405]"),
        Cipher::TripleDesCbc => Some("TripleDES-CBC [RFC2451]"),
        _ => None,
    }
}

fn integrity_name(integrity: Integrity) -> &'static str {
    match integrity {
        Integrity::HmacSha256_128 => "HMAC-SHA-256-128 [RFC4868]",
        Integrity::HmacSha384_192 => "HMAC-SHA-384-192 [RFC4868]",
        Integrity::HmacSha512_256 => "HMAC-SHA-512-256 [RFC4868]",
        Integrity::HmacSha1_96 => "HMAC-SHA-1-96 [RFC2404]",
        Integrity::HmacMd5_96 => "HMAC-MD5-96 [RFC2403]",
    }
}
