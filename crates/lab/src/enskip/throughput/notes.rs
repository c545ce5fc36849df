//! What is to be known of the table.

use super::{EnskipFile, Throughput};
use crate::enskip::packet::{HEADER, PACKET_MAX, PACKETS_A_KEY, PAYLOAD};
use crate::enskip::printed::{DES, NONE, P90, RC4, TABLE};

/// The place of IDEA among algorithms.
const IDEA: usize = 3;
/// Algorithms that the paper measured on the P90 without and with MD5.
const P90_PAIRS: [usize; 3] = [DES, IDEA, RC4];

impl Throughput {
    /// What is modelled, what was left open, and where the paper's sentences and its table differ.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            files(&self.source),
            format!(
                "packets: {PAYLOAD} bytes of the file, 40 of IP and TCP before them, in ESP, and in AH where there is MD5; before these a \
                 SKIP header of {HEADER} bytes: version, NSIDs, hour, four algorithms, the wrapped packet key, and two key IDs of NSID 8, as \
                 the paper's hosts had. The longest has {PACKET_MAX} bytes and fills an Ethernet frame with its outer IP header. A packet \
                 key serves for {PACKETS_A_KEY} packets, 0.9 MB; the paper does not say for how many. Both ends keep one, as ENskip's \
                 primary cache does: a packet whose header is like the last one's costs a comparison, another an unwrapping and new key \
                 schedules"
            ),
            "algorithms: DES and the others in CBC mode; 2DES is taken to be triple DES with two keys; RC4 begins each packet with a key of \
             its own, the hash of the packet key and a number, as a stream must not be used twice; MD5 is HMAC-MD5 with 96 bits \
             (RFC 2403), where 1997 had keyed MD5 with 128 (RFC 1828), a hash over as many bytes and one block less. 3DES is the Kij \
             algorithm, as in the paper"
                .to_owned(),
            "in memory: one thread makes each packet and opens it at once, as one processor does on the loopback interface. Over the \
             loopback interface and over the link (a pair of veth devices between two hosts, without offloads): packets go in a TCP \
             connection, which stands for that of ftp inside; both ends stay on one processor, and what counts is the processor time of \
             both, so that other work on this machine does not. Columns with wall have the clock on the wall instead. The loopback \
             interface moves up to 64 KB at once, the link 1,500 bytes, so the kernel costs more there"
                .to_owned(),
            "without ENskip, memory has nothing to do but to copy"
                .to_owned(),
            "the paper lists 2DES among its algorithms and has no figure of it; Safer stands for SAFER SK-128".to_owned(),
            "RC4 twice as fast as the next: in the paper's own table 290 over 190 (1.5) on Ethernet and 220 over 120 (1.8) on the \
             486DX2-66; 580 over 190 and 720 over 260 on the others. Ethernet and loopback the same: Ethernet has 1.0 to 1.7 times the \
             rates of the slower of its machines by itself, DES 180 and 120; with two machines each does half of the work"
                .to_owned(),
            p90(),
        ];
        notes.extend(self.left_out());
        notes
    }

    /// What could not be measured here.
    fn left_out(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Err(why) = &self.link {
            notes.push(format!("the link is left out: {why}"));
        }
        match &self.tunnel {
            Err(why) => notes.push(format!("tunnels are left out: {why}")),
            Ok(tunnel) => {
                notes.push(
                    "tunnel: the same file of random bytes by TCP through a tunnel of two daemons with manual keys, ESP in UDP over such a \
                     link, by the clock on the wall; `none` is the link without a tunnel. A tunnel has no RC4, whose key stream it would \
                     repeat, and no cipher without authentication. Its ESP has a sequence number and no SKIP header"
                        .to_owned(),
                );
                if !tunnel.legacy {
                    notes.push(
                        "this strait has no algorithms of the paper's time, so the tunnel's column has those of today only: build it with \
                         --features danger-legacy for the others"
                            .to_owned(),
                    );
                }
            }
        }
        notes
    }
}

fn files(source: &EnskipFile) -> String {
    format!(
        "files: 1.5 MB (1,572,864 bytes, what the paper's dd made; less for a quick look) of random bytes and of {}, again and again; \
         kbytes have 1,024 bytes, as ftp prints them",
        source.name
    )
}

/// What the P90's cell can mean: MD5's time on that machine follows from the pairs with and without it.
fn p90() -> String {
    let rate = |algorithm: usize, md5: usize| TABLE[P90][algorithm][md5].unwrap_or(f64::NAN);
    let pairs = P90_PAIRS.map(|algorithm| 1.0 / rate(algorithm, 1) - 1.0 / rate(algorithm, 0));
    let md5 = pairs.iter().sum::<f64>() / pairs.len() as f64;
    let cell = rate(NONE, 1);
    format!(
        "the P90's row may be shifted by a cell: it has 0 without ENskip and {cell:.0} with MD5 alone. By its pairs with and without MD5, MD5 \
         takes {:.2} ms a kbyte; if {cell:.0} is MD5 alone, there are some {:.0} without ENskip, less than the 486DX4-100's 2900, and if it \
         is the rate without ENskip, some {:.0} with MD5 alone. Both are possible; it is kept where it is printed, and no statement rests \
         on it",
        md5 * 1e3,
        1.0 / (1.0 / cell - md5),
        1.0 / (1.0 / cell + md5),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p90_by_hand() {
        // 0.3205, 0.3676 and 0.3060 ms a kbyte.
        let said = p90();
        assert!(said.contains("takes 0.33 ms a kbyte"), "{said}");
        assert!(said.contains("some 2284 without") && said.contains("some 909 with MD5"), "{said}");
    }
}
