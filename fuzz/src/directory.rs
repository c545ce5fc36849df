//! What a directory of keys says and is told: certificates, revocation lists, messages; with a signature that is right and with one that is not.

use strait_keying::PrivateKey;
use strait_keying::directory::{Answer, Certificate, HEAD_LEN, Question, RevocationList};

/// The first byte says what the rest is: a text, a certificate, a list, a question or an answer.
pub fn check(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let authority = PrivateKey::generate(&[9; 32]);
    let public = authority.public();
    let signed = |label: &[u8]| [data, &authority.sign(&[label, data].concat())].concat();
    match kind % 5 {
        0 => {
            if let Ok(text) = core::str::from_utf8(data) {
                let _ = Certificate::from_text(text, &public)
                    .map_err(|error| assert!(!error.to_string().is_empty()));
            }
        }
        1 => {
            assert!(Certificate::from_bytes(data, &public).is_err(), "a signature was guessed");
            let bytes = signed(Certificate::LABEL);
            if let Ok(certificate) = Certificate::from_bytes(&bytes, &public) {
                assert_eq!(certificate.as_bytes(), bytes);
                assert_eq!(Certificate::from_text(&certificate.to_text(), &public), Ok(certificate));
            }
        }
        2 => {
            assert!(RevocationList::from_bytes(data, &public).is_err(), "a signature was guessed");
            let bytes = signed(RevocationList::LABEL);
            if let Ok(list) = RevocationList::from_bytes(&bytes, &public) {
                assert!(list.serials().iter().all(|serial| list.has(*serial)));
                let serials = list.serials().iter().copied();
                assert_eq!(
                    RevocationList::issue(&authority, list.number(), list.issued(), serials),
                    Ok(list)
                );
            }
        }
        3 => {
            if let Ok(question) = Question::from_body(data) {
                assert!(data.len() <= Question::most(data[0]));
                assert_eq!(question.to_bytes()[HEAD_LEN..], *data);
            }
        }
        _ => {
            if let Ok(answer) = Answer::from_body(data) {
                assert!(data.len() <= Answer::most(data[0]));
                assert_eq!(answer.to_bytes()[HEAD_LEN..], *data);
            }
        }
    }
}
