//! OpenVPN between two hosts: point to point over UDP, with TLS between certificates that know each other's fingerprint.

use std::fmt::Write;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use strait_testbed::TwoHosts;

use super::process::{INTERFACE, PeerProcess, write_private};
use super::programs::PeerProgram;
use crate::error::Error;

/// The port of both (IANA).
const PORT: u16 = 1194;
/// Inner MTU: the outer packet has 20 + 8 (IP, UDP) + 4 (opcode, peer) + 4 (number) + 16 (tag) bytes more, and one for compression.
pub(super) const MTU: u32 = 1440;

/// Whether packets are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenVpnCompression {
    None,
    Lz4,
}

/// A node's certificate.
struct OpenVpnIdentity {
    certificate: String,
    key: String,
    /// SHA-256 of the certificate, as OpenVPN writes it.
    fingerprint: String,
}

/// Starts one on each host with its files in the folder `dir`.
pub(super) fn start(
    program: &PeerProgram,
    hosts: &TwoHosts,
    dir: &Path,
    (tunnel, compression): (&'static str, OpenVpnCompression),
) -> Result<Vec<PeerProcess>, Error> {
    let identities = [OpenVpnIdentity::new(tunnel)?, OpenVpnIdentity::new(tunnel)?];
    let outside = [hosts.address_of_a().0, hosts.address_of_b().0];
    let one = |me: usize| {
        let host = if me == 0 { &hosts.a } else { &hosts.b };
        let file = |name: &str| dir.join(format!("{name}-{me}"));
        let other = 1 - me;
        write_private(&file("key"), &identities[me].key)?;
        write_private(&file("certificate"), &identities[me].certificate)?;
        let text = configuration(me, outside[other], (&file("certificate"), &file("key")), compression)
            + &format!("peer-fingerprint {}\n", identities[other].fingerprint);
        write_private(&file("configuration"), &text)?;
        let mut command = program.command(host);
        command.arg("--config").arg(file("configuration"));
        PeerProcess::start(tunnel, command, file("log"))
    };
    Ok(vec![one(0)?, one(1)?])
}

impl OpenVpnIdentity {
    fn new(tunnel: &'static str) -> Result<OpenVpnIdentity, Error> {
        let made = rcgen::generate_simple_self_signed(["node".to_owned()]).map_err(|error| {
            Error::doing(format!("make a certificate for {tunnel}"))(io::Error::other(error))
        })?;
        let mut fingerprint = String::new();
        for byte in digest(&SHA256, made.cert.der()).as_ref() {
            let separator = if fingerprint.is_empty() { "" } else { ":" };
            let _ = write!(fingerprint, "{separator}{byte:02X}");
        }
        Ok(OpenVpnIdentity {
            certificate: pem("CERTIFICATE", made.cert.der()),
            key: pem("PRIVATE KEY", &made.signing_key.serialize_der()),
            fingerprint,
        })
    }
}

/// Text as in RFC 7468, with lines of 64 characters.
fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        out += line;
        out.push('\n');
        rest = after;
    }
    out + &format!("-----END {label}-----\n")
}

/// All but whom it trusts. The first host is the client.
fn configuration(
    me: usize,
    peer: IpAddr,
    (certificate, key): (&Path, &Path),
    compression: OpenVpnCompression,
) -> String {
    let role = if me == 0 { "tls-client" } else { "tls-server\ndh none" };
    let compression = match compression {
        OpenVpnCompression::None => "allow-compression no",
        OpenVpnCompression::Lz4 => "allow-compression yes\ncompress lz4-v2",
    };
    format!(
        "mode p2p\ndev {INTERFACE}\ndev-type tun\nproto udp4\nport {PORT}\nremote {peer} {PORT}\n{role}\ncert {}\nkey {}\n\
         data-ciphers AES-256-GCM\ncipher AES-256-GCM\ntun-mtu {MTU}\nmssfix 0\nsndbuf 524288\nrcvbuf 524288\n\
         txqueuelen 1000\nfast-io\ndisable-dco\nverb 1\n{compression}\n",
        certificate.display(),
        key.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_has_short_lines() {
        let text = pem("CERTIFICATE", &[0; 50]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[1].len(), lines[2].len()), (4, 64, 4));
        assert_eq!((lines[0], lines[3]), ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"));
    }

    #[test]
    fn a_fingerprint_is_32_bytes_in_hexadecimal() {
        let identity = OpenVpnIdentity::new("OpenVPN").unwrap();
        let bytes: Vec<&str> = identity.fingerprint.split(':').collect();
        assert_eq!(bytes.len(), 32);
        assert!(bytes.iter().all(|byte| byte.len() == 2 && u8::from_str_radix(byte, 16).is_ok()));
        assert!(identity.key.contains("PRIVATE KEY") && identity.certificate.contains("BEGIN CERTIFICATE"));
    }

    #[test]
    fn both_ends_differ_by_their_role_and_compress_only_when_asked() {
        let files = (Path::new("/c"), Path::new("/k"));
        let peer = "198.18.0.2".parse().unwrap();
        let client = configuration(0, peer, files, OpenVpnCompression::None);
        let server = configuration(1, peer, files, OpenVpnCompression::Lz4);
        assert!(
            client.contains("\ntls-client\n") && client.contains("\nremote 198.18.0.2 1194\n"),
            "{client}"
        );
        assert!(client.contains("\nallow-compression no\n") && !client.contains("\ncompress"), "{client}");
        assert!(server.contains("\ntls-server\ndh none\n"), "{server}");
        assert!(server.ends_with("\nallow-compression yes\ncompress lz4-v2\n"), "{server}");
        // No outer packet of more than 1,500 bytes.
        const { assert!(MTU + 20 + 8 + 4 + 4 + 16 < 1500) };
    }
}
