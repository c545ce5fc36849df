//! Which algorithms: the packets `SSH_MSG_KEXINIT` of both ends (RFC 4253 section 7.1).

use super::packet::Cipher;
use crate::error::SshError;
use crate::fields::{Fields, PutFields};
use crate::host_key::ED25519;

/// The message.
pub(crate) const KEXINIT: u8 = 20;
/// Key exchange (RFC 8731), under the name that it had before, too.
const EXCHANGES: [&[u8]; 2] = [b"curve25519-sha256", b"curve25519-sha256@libssh.org"];
/// Both ends leave out what could be put into a handshake unseen (OpenSSH's PROTOCOL, section 1.10): what the client says, and what
/// the server answers.
const STRICT_CLIENT: &[u8] = b"kex-strict-c-v00@openssh.com";
const STRICT_SERVER: &[u8] = b"kex-strict-s-v00@openssh.com";
/// AES-GCM needs none; a name has to stand there that a client may have.
const MACS: [&[u8]; 2] = [b"hmac-sha2-256-etm@openssh.com", b"hmac-sha2-256"];
const NONE: &[u8] = b"none";

/// What both ends agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// The client's direction, and the server's.
    pub(crate) ciphers: [Cipher; 2],
    /// No message but those of the key exchange may come before its end.
    pub(crate) strict: bool,
    /// The next packet was a guess, and a wrong one.
    pub(crate) guess_ignored: bool,
}

/// The server's packet.
pub(crate) fn offer(cookie: &[u8; 16]) -> Vec<u8> {
    let mut packet = vec![KEXINIT];
    packet.extend_from_slice(cookie);
    let ciphers = Cipher::ALL.map(Cipher::name);
    packet.put_string(&[EXCHANGES[0], EXCHANGES[1], STRICT_SERVER].join(&b','));
    packet.put_string(ED25519);
    for list in [&ciphers[..], &ciphers, &MACS, &MACS, &[NONE], &[NONE], &[], &[]] {
        packet.put_string(&list.join(&b','));
    }
    packet.put_boolean(false);
    packet.put_number(0);
    packet
}

/// The first of the client's that the server has.
fn common<'a>(client: &[&'a [u8]], server: &[&[u8]], what: &'static str) -> Result<&'a [u8], SshError> {
    client.iter().copied().find(|name| server.contains(name)).ok_or(SshError::NoCommon(what))
}

/// What follows from the client's packet.
pub(crate) fn agree(packet: &[u8]) -> Result<Agreed, SshError> {
    let mut fields = Fields::new(packet);
    if fields.byte()? != KEXINIT {
        return Err(SshError::Protocol("no key exchange begins"));
    }
    fields.bytes(16)?;
    let (exchanges, host_keys) = (fields.names()?, fields.names()?);
    let exchange = common(&exchanges, &EXCHANGES, "key exchange (curve25519-sha256)")?;
    let host_key = common(&host_keys, &[ED25519], "kind of host key (ssh-ed25519)")?;
    let mut ciphers = [Cipher::Aes128Gcm; 2];
    for cipher in &mut ciphers {
        let name =
            common(&fields.names()?, &Cipher::ALL.map(Cipher::name), "cipher (aes128-gcm@openssh.com)")?;
        *cipher = Cipher::ALL.into_iter().find(|it| it.name() == name).unwrap_or(*cipher);
    }
    // Codes for integrity: AES-GCM has its own (RFC 5647 section 5.1, as OpenSSH reads it).
    fields.names()?;
    fields.names()?;
    for _ in 0..2 {
        common(&fields.names()?, &[NONE], "way without compression")?;
    }
    fields.names()?;
    fields.names()?;
    let guessed = fields.boolean()?;
    fields.number()?;
    let right = exchanges.first() == Some(&exchange) && host_keys.first() == Some(&host_key);
    let strict = exchanges.contains(&STRICT_CLIENT);
    Ok(Agreed { ciphers, strict, guess_ignored: guessed && !right })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(lists: [&str; 10], guessed: bool) -> Vec<u8> {
        let mut packet = [&[KEXINIT][..], &[0; 16]].concat();
        for list in lists {
            packet.put_string(list.as_bytes());
        }
        packet.put_boolean(guessed);
        packet.put_number(0);
        packet
    }

    /// What OpenSSH 9.2 sends, in short.
    const OPENSSH: [&str; 10] = [
        "sntrup761x25519-sha512@openssh.com,curve25519-sha256,kex-strict-c-v00@openssh.com",
        "ecdsa-sha2-nistp256,ssh-ed25519",
        "chacha20-poly1305@openssh.com,aes256-gcm@openssh.com,aes128-gcm@openssh.com",
        "aes128-gcm@openssh.com",
        "umac-64@openssh.com",
        "umac-64@openssh.com",
        "none,zlib@openssh.com",
        "none",
        "",
        "",
    ];

    #[test]
    fn the_first_of_the_client_s_that_the_server_has_is_taken() {
        let agreed = agree(&client(OPENSSH, true)).unwrap();
        let expected =
            Agreed { ciphers: [Cipher::Aes256Gcm, Cipher::Aes128Gcm], strict: true, guess_ignored: true };
        assert_eq!(agreed, expected);
        let first = ["curve25519-sha256", "ssh-ed25519"];
        let packet =
            client([first[0], first[1], OPENSSH[2], OPENSSH[3], "", "", "none", "none", "", ""], true);
        assert!(!agree(&packet).unwrap().guess_ignored && !agree(&packet).unwrap().strict);
    }

    #[test]
    fn a_list_without_a_common_name_is_named() {
        for (at, what) in
            [(0, "key exchange"), (1, "host key"), (2, "cipher"), (3, "cipher"), (6, "compression")]
        {
            let mut lists = OPENSSH;
            lists[at] = "other";
            let error = agree(&client(lists, false)).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }

    #[test]
    fn no_part_of_a_packet_is_enough() {
        let packet = client(OPENSSH, false);
        for end in 0..packet.len() {
            assert!(agree(&packet[..end]).is_err(), "{end}");
        }
        // The server's own offer is one that a client could make.
        assert!(agree(&offer(&[0; 16])).is_ok());
    }
}
