//! TLS 1.3 between two Ed25519 keys: raw public keys (RFC 7250) both ways and nothing else.
//!
//! No certificates, no resumption, no early data, and a key exchange that also resists quantum
//! computers if the peer can (X25519MLKEM768, draft-ietf-tls-ecdhe-mlkem).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use quinn_proto::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::aws_lc_rs::{default_provider, kx_group, sign::any_eddsa_type};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, SignatureScheme,
};

use crate::{PrivateKey, PublicKey, SetupError};

/// The application protocol of the control channel, in its first version.
pub(crate) const HANDSHAKE: &[u8] = b"strait/1";
/// That of streams, in its first version.
pub(crate) const STREAMS: &[u8] = b"strait-streams/1";
/// The name that TLS requires; it is neither sent nor checked, as peers are known by key.
pub(crate) const SERVER_NAME: &str = "strait";

/// Calls after which aws-lc's generator, which each thread has its own of, takes from the system's again (`kCtrDrbgReseedInterval` in its
/// `crypto/fipsmodule/rand/internal.h`). Where the processor has a generator, each call takes from that.
const RESEEDS_AFTER: u32 = 4096;

/// Has the keys that this thread makes for TLS depend on what the system's generator gives now, and not only on what it gave before.
pub(crate) fn draw_anew() {
    for _ in 0..RESEEDS_AFTER {
        // What is drawn is of no use, and what fails here fails handshakes too.
        let _ = aws_lc_rs::rand::fill(&mut [0]);
    }
}

/// The public keys that may shake hands with this node.
#[derive(Debug, Default)]
pub(crate) struct AllowList {
    keys: RwLock<BTreeSet<PublicKey>>,
    /// Whether any other key may, too: what its node may do is decided later.
    any: AtomicBool,
    /// The last key turned away, for a log.
    stranger: Mutex<Option<PublicKey>>,
}

impl AllowList {
    pub(crate) fn allow(&self, key: PublicKey) {
        self.keys.write().unwrap_or_else(PoisonError::into_inner).insert(key);
    }

    pub(crate) fn refuse(&self, key: PublicKey) {
        self.keys.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }

    /// Whether keys that are not listed may shake hands, too.
    pub(crate) fn allow_any(&self, any: bool) {
        self.any.store(any, Ordering::Relaxed);
    }

    /// The last key turned away since this was asked.
    pub(crate) fn take_stranger(&self) -> Option<PublicKey> {
        self.stranger.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn admits(&self, key: PublicKey) -> bool {
        let listed = self.keys.read().unwrap_or_else(PoisonError::into_inner).contains(&key);
        let known = listed || self.any.load(Ordering::Relaxed);
        if !known {
            *self.stranger.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        }
        known
    }
}

/// What every handshake of a node needs.
#[derive(Debug)]
pub(crate) struct Tls {
    provider: Arc<CryptoProvider>,
    identity: Arc<CertifiedKey>,
}

impl Tls {
    pub(crate) fn new(key: &PrivateKey) -> Result<Tls, SetupError> {
        let pkcs8 = key.to_pkcs8();
        let signer = any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8.as_slice()))?;
        let spki = CertificateDer::from(key.public().to_spki().to_vec());
        Ok(Tls {
            provider: Arc::new(CryptoProvider {
                kx_groups: vec![kx_group::X25519MLKEM768, kx_group::X25519],
                ..default_provider()
            }),
            identity: Arc::new(CertifiedKey::new(vec![spki], signer)),
        })
    }

    /// For connections of `protocol` that peers begin: any key on `allowed`, looked up when the handshake comes to it.
    pub(crate) fn server(
        &self,
        allowed: Arc<AllowList>,
        protocol: &[u8],
    ) -> Result<Arc<QuicServerConfig>, SetupError> {
        let verifier = Arc::new(Expect { provider: Arc::clone(&self.provider), whom: Whom::Any(allowed) });
        let resolver = Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::clone(&self.identity)));
        let mut config =
            rustls::ServerConfig::builder_with_details(Arc::clone(&self.provider), Arc::new(NoClock))
                .with_protocol_versions(&[&rustls::version::TLS13])?
                .with_client_cert_verifier(verifier)
                .with_cert_resolver(resolver);
        config.alpn_protocols = vec![protocol.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
        QuicServerConfig::try_from(config).map(Arc::new).map_err(no_initial_suite)
    }

    /// For a connection of `protocol` with the node that has `key`.
    pub(crate) fn client(
        &self,
        key: PublicKey,
        protocol: &[u8],
    ) -> Result<Arc<QuicClientConfig>, SetupError> {
        let verifier = Arc::new(Expect { provider: Arc::clone(&self.provider), whom: Whom::One(key) });
        let resolver = Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::clone(&self.identity)));
        let mut config =
            rustls::ClientConfig::builder_with_details(Arc::clone(&self.provider), Arc::new(NoClock))
                .with_protocol_versions(&[&rustls::version::TLS13])?
                .dangerous()
                .with_custom_certificate_verifier(verifier)
                .with_client_cert_resolver(resolver);
        config.alpn_protocols = vec![protocol.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_early_data = false;
        config.enable_sni = false;
        QuicClientConfig::try_from(config).map(Arc::new).map_err(no_initial_suite)
    }
}

fn no_initial_suite(_: NoInitialCipherSuite) -> SetupError {
    SetupError::NoInitialSuite
}

/// Raw keys do not expire and there are no tickets, so TLS never learns what time it is.
#[derive(Debug)]
struct NoClock;

impl TimeProvider for NoClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(core::time::Duration::ZERO))
    }
}

#[derive(Debug)]
enum Whom {
    /// Exactly this key.
    One(PublicKey),
    /// Any key on the list.
    Any(Arc<AllowList>),
}

/// Judges the key at the other end, and the signature that proves it.
#[derive(Debug)]
struct Expect {
    provider: Arc<CryptoProvider>,
    whom: Whom,
}

impl Expect {
    fn judge(&self, spki: &[u8]) -> Result<(), Error> {
        let key =
            PublicKey::from_spki(spki).ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let expected = match &self.whom {
            Whom::One(expected) => *expected == key,
            Whom::Any(allowed) => allowed.admits(key),
        };
        if expected {
            return Ok(());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify(
        &self,
        message: &[u8],
        spki: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let spki = SubjectPublicKeyInfoDer::from(spki.as_ref());
        let schemes = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &spki, signed, schemes)
    }

    /// Version 1.3 is the only one, so a signature of 1.2 cannot come.
    fn tls12() -> Result<HandshakeSignatureValid, Error> {
        Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
    }
}

/// What both verifiers answer alike: raw Ed25519 keys, TLS 1.3.
macro_rules! raw_key_methods {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _cert: &CertificateDer<'_>,
            _signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Expect::tls12()
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.verify(message, cert, signed)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for Expect {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.judge(end_entity).map(|()| ServerCertVerified::assertion())
    }

    raw_key_methods!();
}

impl ClientCertVerifier for Expect {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.judge(end_entity).map(|()| ClientCertVerified::assertion())
    }

    raw_key_methods!();
}
