//! TLS to etcd, which wants certificates of its clients.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use strait_keying::directory::Answer;
use strait_testbed::outside::EtcdTls;

use crate::place::{self, Directory, answer, certificate, find, folder, until};

/// Who signs certificates for TLS, with the file of its own one.
struct Ca {
    issuer: Issuer<'static, KeyPair>,
    file: PathBuf,
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

fn params(name: &str, addresses: &[&str]) -> CertificateParams {
    let addresses: Vec<String> = addresses.iter().map(|&address| address.to_owned()).collect();
    let mut params = CertificateParams::new(addresses).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Ca {
    fn new(dir: &Path, name: &str) -> Ca {
        let key = KeyPair::generate().unwrap();
        let mut params = params(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let file = dir.join(format!("{name}.pem"));
        fs::write(&file, pem("CERTIFICATE", params.self_signed(&key).unwrap().der())).unwrap();
        Ca { issuer: Issuer::new(params, key), file }
    }

    /// The files of a certificate and its key.
    fn sign(&self, name: &str, addresses: &[&str], uses: &[ExtendedKeyUsagePurpose]) -> [PathBuf; 2] {
        let key = KeyPair::generate().unwrap();
        let mut params = params(name, addresses);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = uses.to_vec();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let files = ["pem", "key"].map(|end| self.file.with_file_name(format!("{name}.{end}")));
        fs::write(&files[0], pem("CERTIFICATE", signed.der())).unwrap();
        fs::write(&files[1], pem("PRIVATE KEY", &key.serialize_der())).unwrap();
        files
    }

    fn client(&self, name: &str) -> [PathBuf; 2] {
        self.sign(name, &[], &[ExtendedKeyUsagePurpose::ClientAuth])
    }
}

#[test]
fn etcd_is_used_with_the_right_certificates_and_what_is_wrong_with_others_is_said() {
    let dir = folder();
    let (ca, other) = (Ca::new(dir.path(), "ca"), Ca::new(dir.path(), "other-ca"));
    // Its gateway is a client of its own.
    let uses = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let [own, key] = ca.sign("etcd", &["127.0.0.1"], &uses);
    let tls = EtcdTls { certificate: own, key, ca: ca.file.clone() };
    let Some(etcd) = place::etcd(dir.path(), Some(tls)) else { return };
    let (good, foreign) = (ca.client("good"), other.client("foreign"));
    let section = |ca: &Path, client: Option<&[PathBuf; 2]>| {
        let client = client.map_or(String::new(), |[certificate, key]| {
            format!("certificate = \"{}\"\nkey = \"{}\"\n", certificate.display(), key.display())
        });
        format!("[etcd]\nurls = [\"{}\"]\nca = \"{}\"\n{client}", etcd.url(), ca.display())
    };

    let directory = Directory::start(dir.path(), "good-client", &section(&ca.file, Some(&good)));
    let one = certificate(1, 1);
    until("etcd takes it", || directory.put(&one).ok());
    // Another one hears of it by its watch.
    let reader = Directory::start(dir.path(), "reader", &section(&ca.file, Some(&good)));
    until("it is told", || (reader.ask(&find(1)) == answer(&one)).then_some(()));

    for (name, ca, client, words) in [
        ("foreign-client", &ca, Some(&foreign), "does not take this client's certificate"),
        ("no-client", &ca, None, "wants a certificate of its clients"),
        ("wrong-ca", &other, Some(&good), "is not signed by `ca`"),
    ] {
        let directory = Directory::start(dir.path(), name, &section(&ca.file, client));
        let refused = directory.put(&certificate(2, 2)).unwrap_err();
        assert!(refused.contains(words), "{name}: {refused}");
        until("it is logged", || directory.said().contains(words).then_some(()));
        assert_eq!(directory.ask(&find(1)), Answer::NotFound, "{name}");
    }
}

#[test]
fn files_for_tls_that_cannot_be_used_are_named() {
    let dir = folder();
    let ca = Ca::new(dir.path(), "ca");
    let [certificate, key] = ca.client("client");
    let bad = dir.path().join("bad.pem");
    fs::write(&bad, "no PEM").unwrap();
    let there = |name: &str| dir.path().join(name);
    for (ca, certificate, key, named) in [
        (there("missing.pem"), certificate.clone(), key.clone(), "missing.pem"),
        (bad.clone(), certificate.clone(), key.clone(), "bad.pem"),
        (ca.file.clone(), bad.clone(), key, "bad.pem"),
        (ca.file.clone(), certificate, there("missing.key"), "missing.key"),
    ] {
        let more = format!(
            "[etcd]\nurls = [\"https://127.0.0.1:1\"]\nca = \"{}\"\ncertificate = \"{}\"\nkey = \"{}\"\n",
            ca.display(),
            certificate.display(),
            key.display()
        );
        let said = Directory::refused(dir.path(), "d", &more);
        assert!(said.contains("for TLS to etcd") && said.contains(named), "{named}: {said}");
    }
}
