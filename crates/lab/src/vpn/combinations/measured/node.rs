//! A node with manual keys in transport mode, as the paper has it: IPComp compresses, ESP encrypts, AH authenticates.

use std::fmt::Write;
use std::net::Ipv6Addr;

use strait_compress::{Codec, Method};

use crate::manual::key;
use crate::vpn::subject::{PAPERS, Subject};
use crate::vpn::transaction::{TABLE7_PARTS, TODAY};

/// The port of datagrams that are compressed, and of those that are not.
pub(super) const COMPRESSED: u16 = 7_000;
pub(super) const PLAIN: u16 = 7_001;
/// First SPIs of ESP and of AH.
const SPIS: [u32; 2] = [0x0400_1000, 0x0400_2000];
/// The codecs of IPComp, by the places of the paper's.
const CODECS: [Method; 2] = [Method::DEFLATE, Method::LZS];

/// Algorithms that protect and compress packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Protected {
    subjects: Vec<Subject>,
    method: Method,
}

/// A peer as one end has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransportPeer {
    /// Its number, the same at both ends.
    pub(super) number: u8,
    /// 0 at one end, 1 at the other.
    pub(super) end: u8,
    pub(super) local: Ipv6Addr,
    pub(super) remote: Ipv6Addr,
}

impl Protected {
    /// A protection and a codec by their places.
    pub(super) fn of(protection: usize, codec: usize) -> Protected {
        let todays = || TODAY.get(protection - TABLE7_PARTS.len()).copied().into_iter().collect();
        let papers = |&(cipher, hash): &(Option<usize>, Option<usize>)| {
            [cipher, hash].into_iter().flatten().map(|row| PAPERS[row]).collect()
        };
        let subjects = TABLE7_PARTS.get(protection).map_or_else(todays, papers);
        Protected { subjects, method: CODECS[codec] }
    }

    /// A node's configuration.
    pub(super) fn configuration(&self, peers: &[TransportPeer]) -> String {
        let mut text = "[node]\nlisten = 4500\nmtu = 65000\n".to_owned();
        for peer in peers {
            self.section(peer, &mut text);
        }
        let _ = write!(
            text,
            "[[compress]]\nfrom = \"::/0\"\nto = \"::/0\"\nprotocol = \"udp\"\nports = [{COMPRESSED}]\ndomain = \"lab\"\n\
             codec = \"{}\"\n",
            self.method
        );
        text
    }

    fn section(&self, peer: &TransportPeer, text: &mut String) {
        let TransportPeer { number, local, remote, .. } = peer;
        let codec = if self.method.codec == Codec::Lzs { "lzs" } else { "deflate" };
        let _ = write!(
            text,
            "[[peer]]\nname = \"{number}\"\nendpoint = \"{remote}\"\nmtu = 1280\n[peer.manual]\nmode = \"transport\"\n\
             carrier = \"ip\"\nlocal = \"{local}\"\nipcomp = \"{codec}\"\n",
        );
        if self.subjects.is_empty() {
            text.push_str("danger_plain = true\n");
        } else {
            let _ = writeln!(text, "counter_file = \"{number}.counter\"");
        }
        if self.subjects.iter().any(|it| it.is_legacy()) {
            text.push_str("danger_legacy = true\n");
        }
        for subject in &self.subjects {
            let (head, spis, len) = match subject {
                Subject::Suite(it) => ("[peer.manual.esp]\nsuite", SPIS[0], it.key_material_len()),
                Subject::Cipher(it) => ("[peer.manual.esp]\ncipher", SPIS[0], it.key_len()),
                Subject::Integrity(it) => ("[peer.manual.ah]\nintegrity", SPIS[1], it.key_len()),
            };
            let _ = writeln!(text, "{head} = \"{}\"\n{}", subject.name(), peer.keys(spis, len));
        }
    }
}

impl TransportPeer {
    /// The same as the other end has it.
    pub(super) const fn other(self) -> TransportPeer {
        TransportPeer { end: 1 - self.end, local: self.remote, remote: self.local, ..self }
    }

    /// SPIs and keys: what is in at one end is out at the other.
    fn keys(&self, spis: u32, len: usize) -> String {
        let mut text = String::new();
        for (way, end) in [("in", self.end), ("out", 1 - self.end)] {
            let spi = spis + 2 * u32::from(self.number) + u32::from(end);
            let key = key(len, 0x40 + 2 * self.number + end);
            let _ = writeln!(text, "spi_{way} = {spi:#010x}\nkey_{way} = \"{key}\"");
        }
        text
    }
}
