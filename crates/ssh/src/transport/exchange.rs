//! The key exchange `curve25519-sha256` (RFC 8731, RFC 5656 section 4), and keys from it (RFC 4253 section 7.2).

use aws_lc_rs::aead::NONCE_LEN;
use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::digest::{SHA256, digest};
use zeroize::{Zeroize, Zeroizing};

use super::negotiation::Agreed;
use super::packet::PacketKey;
use crate::error::SshError;
use crate::fields::PutFields;
use crate::host_key::HostKey;

/// Messages of the exchange.
pub(crate) const ECDH_INIT: u8 = 30;
const ECDH_REPLY: u8 = 31;

/// What both ends have said before.
pub(crate) struct Said<'a> {
    /// Their first lines.
    pub(crate) client_version: &'a [u8],
    pub(crate) server_version: &'a [u8],
    /// Their packets of the negotiation.
    pub(crate) client_offer: &'a [u8],
    pub(crate) server_offer: &'a [u8],
}

/// What comes of it.
pub(crate) struct Exchanged {
    /// The answer to the client.
    pub(crate) reply: Vec<u8>,
    /// The first of a connection is its name.
    pub(crate) hash: Vec<u8>,
    /// K, as the hash takes it.
    pub(super) secret: Zeroizing<Vec<u8>>,
}

/// Answers the client's public key with a key made of `random`.
pub(crate) fn exchange(
    said: &Said<'_>,
    client_public: &[u8],
    host: &HostKey,
    random: &[u8; 32],
) -> Result<Exchanged, SshError> {
    let failed = SshError::Protocol("the key exchange fails");
    let private = PrivateKey::from_private_key(&X25519, random).map_err(|_| failed.clone())?;
    let public = private.compute_public_key().map_err(|_| failed.clone())?;
    let theirs = UnparsedPublicKey::new(&X25519, client_public);
    // A shared secret of zeros is refused there (RFC 8731 section 3).
    let secret = agree(&private, theirs, failed, |shared| {
        let mut secret = Zeroizing::new(Vec::with_capacity(shared.len() + 5));
        secret.put_integer(shared);
        Ok(secret)
    })?;
    let host_public = host.public();
    let hash = hash(said, [&host_public, client_public, public.as_ref()], &secret);
    let mut reply = vec![ECDH_REPLY];
    for part in [&host_public[..], public.as_ref(), &host.sign(&hash)] {
        reply.put_string(part);
    }
    Ok(Exchanged { reply, hash, secret })
}

/// The hash of all that was said, with the keys of the host, the client and the server.
pub(super) fn hash(said: &Said<'_>, keys: [&[u8]; 3], secret: &[u8]) -> Vec<u8> {
    let mut hashed = Vec::new();
    let Said { client_version, server_version, client_offer, server_offer } = said;
    for part in [client_version, server_version, client_offer, server_offer] {
        hashed.put_string(part);
    }
    for part in keys {
        hashed.put_string(part);
    }
    hashed.extend_from_slice(secret);
    let hash = digest(&SHA256, &hashed).as_ref().to_vec();
    hashed.zeroize();
    hash
}

impl Exchanged {
    /// The keys of the client's direction and of the server's.
    pub(crate) fn keys(&self, agreed: &Agreed, session: &[u8]) -> Result<[PacketKey; 2], SshError> {
        // Letters of initial vectors and keys (RFC 4253 section 7.2).
        let [client, server] = [(0, *b"AC"), (1, *b"BD")].map(|(at, [iv, key])| {
            let (iv, key) = (self.derived(iv, session), self.derived(key, session));
            let iv: &[u8; NONCE_LEN] = iv.first_chunk()?;
            PacketKey::new(agreed.ciphers[at], &*key, iv)
        });
        client
            .zip(server)
            .map(|(client, server)| [client, server])
            .ok_or(SshError::Protocol("no keys come of it"))
    }

    fn derived(&self, letter: u8, session: &[u8]) -> Zeroizing<[u8; 32]> {
        let input = Zeroizing::new([&self.secret[..], &self.hash, &[letter], session].concat());
        let mut key = Zeroizing::new([0; 32]);
        key.copy_from_slice(digest(&SHA256, &input).as_ref());
        key
    }
}
