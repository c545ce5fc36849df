//! A transaction: one packet, and what is done to it.

use strait_crypto::{Cipher, Integrity, Suite};
use strait_model::{AhModel, BitRate, Bytes, EspModel, Hash, ModelPacket, NetworkModel, Security};

use super::printed::{EFFICIENCY, SIZES, TABLE1};
use super::subject::Subject;

/// Networks that came later than the paper's: name and Mbit/s.
pub(super) const LATER: [(&str, f64); 2] = [("10 Gbit/s", 1e4), ("100 Gbit/s", 1e5)];
/// Payloads, as [`SIZES`] has them.
pub(super) const PAYLOADS: [Bytes; 3] =
    [Bytes(SIZES[0].1 as u64), Bytes(SIZES[1].1 as u64), Bytes(SIZES[2].1 as u64)];

/// An algorithm's rates at the sender and at the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TransactionRates {
    forth: BitRate,
    back: BitRate,
}

impl TransactionRates {
    /// From Mbit/s, if these are rates.
    pub(super) fn megabits(forth: f64, back: f64) -> Option<TransactionRates> {
        Some(TransactionRates { forth: BitRate::megabits(forth)?, back: BitRate::megabits(back)? })
    }

    const fn hash(self) -> Hash {
        Hash { compute: self.forth, verify: self.back }
    }
}

/// Table 1's rates for one of [`SIZES`], changed by so many Mbit/s.
pub(super) fn printed(size: usize, change: f64) -> [TransactionRates; 4] {
    TABLE1.map(|(name, rates)| {
        let rate = rates[size] + change;
        TransactionRates::megabits(rate, rate).unwrap_or_else(|| unreachable!("{name}'s rate is one"))
    })
}

/// The lengths that the paper leaves open, or says do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Headers {
    /// The transport protocol's header.
    pub(super) transport: Bytes,
    /// AH's ICV for MD5 and for SHA-1.
    pub(super) icv: [Bytes; 2],
}

impl Headers {
    /// TCP without options (section 4.1), and all that the hashes give (section 3.4): more of the printed cells come
    /// out with these than with ICVs that are [`Headers::TRUNCATED`].
    pub(super) const PAPER: Headers =
        Headers { transport: ModelPacket::TCP_HEADER, icv: [Bytes(16), Bytes(20)] };
    /// ICVs cut to 96 bits, as RFC 2403 section 2 and RFC 2404 section 2 have it.
    pub(super) const TRUNCATED: Headers = Headers { icv: [Bytes(12), Bytes(12)], ..Headers::PAPER };
    /// UDP instead of TCP (RFC 768).
    pub(super) const UDP: Headers = Headers { transport: Bytes(8), ..Headers::PAPER };
    /// TCP with as many options as fit (RFC 9293 section 3.1).
    pub(super) const OPTIONS: Headers = Headers { transport: Bytes(60), ..Headers::PAPER };
}

/// Bytes of IV and of block of the paper's ciphers: 64 bits (section 3.3).
const BLOCK: Bytes = Bytes(8);
/// Which cipher in ESP and which hash in AH, by their places in [`TABLE1`].
pub(super) type Parts = (Option<usize>, Option<usize>);

const MD5: Option<usize> = Some(0);
const SHA1: Option<usize> = Some(1);
const RC5: Option<usize> = Some(2);
const TRIPLE_DES: Option<usize> = Some(3);

/// The columns of Table 2.
pub(super) const TABLE2_PARTS: [Parts; 8] = [
    (None, MD5),
    (None, SHA1),
    (RC5, None),
    (RC5, MD5),
    (RC5, SHA1),
    (TRIPLE_DES, None),
    (TRIPLE_DES, MD5),
    (TRIPLE_DES, SHA1),
];

/// The columns of Table 7, first by encryption, then by authentication.
pub(super) const TABLE7_PARTS: [Parts; 9] = [
    (TRIPLE_DES, MD5),
    (TRIPLE_DES, SHA1),
    (TRIPLE_DES, None),
    (RC5, MD5),
    (RC5, SHA1),
    (RC5, None),
    (None, MD5),
    (None, SHA1),
    (None, None),
];

/// Encryption in ESP alone, authentication in AH (section 3.5).
pub(super) fn papers((cipher, hash): Parts, rates: &[TransactionRates], headers: Headers) -> Security {
    let esp = |cipher: usize| EspModel {
        iv: BLOCK,
        block: BLOCK,
        icv: Bytes(0),
        encrypt: rates[cipher].forth,
        decrypt: rates[cipher].back,
        hash: None,
    };
    let ah = |hash: usize| AhModel { icv: headers.icv[hash], hash: rates[hash].hash() };
    Security { esp: cipher.map(esp), ah: hash.map(ah) }
}

/// What [`TODAYS`] combinations are made of.
pub(super) const TODAY: [Subject; 5] = [
    Subject::Suite(Suite::Aes128Gcm),
    Subject::Suite(Suite::Aes256Gcm),
    Subject::Suite(Suite::ChaCha20Poly1305),
    Subject::Cipher(Cipher::Aes128Cbc),
    Subject::Integrity(Integrity::HmacSha256_128),
];
/// Combinations of today, all in ESP.
pub(super) const TODAYS: [&str; 4] =
    ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "aes-128-cbc hmac-sha-256-128"];

/// One of [`TODAYS`], from rates of its three suites, of AES-CBC and of HMAC-SHA-256.
pub(super) fn todays(column: usize, rates: &[TransactionRates]) -> Security {
    let rate = rates[column];
    // RFC 4106 sections 3 and 6, RFC 7634 section 2: an IV of 8 bytes, an ICV of 16, no block to pad to.
    let suite = EspModel {
        iv: Bytes(8),
        block: Bytes(1),
        icv: Bytes(16),
        encrypt: rate.forth,
        decrypt: rate.back,
        hash: None,
    };
    let is_suite = column + 1 < TODAYS.len();
    // RFC 3602 section 3: IV and block of 16 bytes; RFC 4868 section 2.3: an ICV of 16.
    let cbc = EspModel { iv: Bytes(16), block: Bytes(16), hash: Some(rates[column + 1].hash()), ..suite };
    Security { esp: Some(if is_suite { suite } else { cbc }), ah: None }
}

/// A link of so many Mbit/s, as section 4.1 has links.
pub(super) fn network(megabits: f64) -> NetworkModel {
    let network =
        BitRate::megabits(megabits).and_then(|rate| NetworkModel::new(rate, EFFICIENCY, NetworkModel::MTU));
    network.unwrap_or_else(|| unreachable!("{megabits} Mbit/s is a rate"))
}

/// What 63 KiB leave of the longest packet with every header that the paper names, and what 64 KiB would: bytes.
pub(super) fn left_of_the_longest_packet(rates: &[TransactionRates]) -> [i64; 2] {
    /// What an IPv6 header can say of what follows it (RFC 8200 section 3).
    const LONGEST: i64 = 65_535;
    /// RFC 3173 section 3.1.
    const IPCOMP_HEADER: Bytes = Bytes(4);
    [63, 64].map(|kibibytes| {
        let packet = ModelPacket {
            transport: ModelPacket::TCP_HEADER + IPCOMP_HEADER,
            payload: Bytes(kibibytes << 10),
        };
        let body = papers((TRIPLE_DES, SHA1), rates, Headers::PAPER).body(packet);
        LONGEST - i64::try_from(body.0).unwrap_or(i64::MAX)
    })
}
