//! The keys and algorithms of `[peer.manual.esp]` and `[peer.manual.ah]`.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use strait_crypto::{Cipher, Integrity, KeyMaterial, KeyedAlgorithm, Suite};
use strait_keying::manual::{Fingerprint, read_key};
use zeroize::Zeroizing;

use super::problem::ManualProblem;
use super::section::unused;
use super::{ManualKeys, ManualProtection};
use crate::config::beside::Beside;
use crate::config::problem::Problem;
use crate::config::reader::{Placed, Section};

/// The names of one direction's key, as a text and as a file.
#[derive(Clone, Copy)]
struct KeyName {
    text: &'static str,
    file: &'static str,
    example: &'static str,
}

/// Inbound and outbound.
type KeyNames = [KeyName; 2];

const KEY: KeyNames = [
    KeyName {
        text: "key_in",
        file: "key_in_file",
        example: "key_in_file = \"gateway-in.key\", or key_in = \"0x...\"",
    },
    KeyName {
        text: "key_out",
        file: "key_out_file",
        example: "key_out_file = \"gateway-out.key\", or key_out = \"0x...\"",
    },
];
const INTEGRITY_KEY: KeyNames = [
    KeyName {
        text: "integrity_key_in",
        file: "integrity_key_in_file",
        example: "integrity_key_in_file = \"gateway-in.mac\", or integrity_key_in = \"0x...\"",
    },
    KeyName {
        text: "integrity_key_out",
        file: "integrity_key_out_file",
        example: "integrity_key_out_file = \"gateway-out.mac\", or integrity_key_out = \"0x...\"",
    },
];

/// A key that goes with a counter, as no other counter's key may be.
pub(in crate::config) type Sealing = (Fingerprint, Suite);

/// What the keys of a protocol are read with.
pub(super) struct KeyReading<'a> {
    pub(super) section: &'a Section<'a>,
    pub(super) beside: &'a Beside<'a>,
    /// Whether broken algorithms are allowed.
    pub(super) legacy: bool,
    /// The keys of suites, with their places.
    pub(super) sealing: &'a RefCell<Vec<Placed<Sealing>>>,
}

impl KeyReading<'_> {
    /// What ESP protects with; `vouched` if AH is around it.
    pub(super) fn protection(&self, vouched: bool) -> Option<ManualProtection> {
        let has = |key| self.section.value(key).is_some();
        if has("suite") == has("cipher") || (has("suite") && has("integrity")) {
            self.section.note(self.section.span(), ManualProblem::SuiteOrCipher);
            return None;
        }
        if has("suite") {
            for name in INTEGRITY_KEY {
                self.unused(name, "a `suite` authenticates with the same key");
            }
            let suite = self.section.parsed("suite", "a suite in quotes", str::parse::<Suite>)?.value;
            return self.suite(suite).map(ManualProtection::Aead);
        }
        if !has("integrity") && !vouched {
            self.section.note(self.section.span(), ManualProblem::NoIntegrity);
        }
        let cipher = self.cipher();
        let integrity = if has("integrity") {
            Some(self.integrity(INTEGRITY_KEY)?)
        } else {
            for name in INTEGRITY_KEY {
                self.unused(name, "there is no `integrity`");
            }
            None
        };
        Some(ManualProtection::Separate { cipher: cipher?, integrity })
    }

    fn suite(&self, suite: Suite) -> Option<ManualKeys<Suite>> {
        let keys = KEY.map(|name| self.key(name, suite));
        for Placed { value: key, span } in keys.iter().flatten() {
            let value = (Fingerprint::of(key), suite);
            self.sealing.borrow_mut().push(Placed { value, span: span.clone() });
        }
        both(keys)
    }

    /// What AH vouches with.
    pub(super) fn authentication(&self) -> Option<ManualKeys<Integrity>> {
        self.section.require("integrity", "integrity = \"hmac-sha-256-128\"");
        self.integrity(KEY)
    }

    fn cipher(&self) -> Option<ManualKeys<Cipher>> {
        let parse = |text: &str| text.parse::<Cipher>().map_err(ManualProblem::from);
        let Placed { value: cipher, span } = self.section.parsed("cipher", "a cipher in quotes", parse)?;
        if cipher == Cipher::Null {
            for name in KEY {
                self.unused(name, "the null cipher has no key");
            }
            let none = Arc::new(KeyMaterial::new(cipher, &[]).ok()?);
            return Some(ManualKeys { inbound: Arc::clone(&none), outbound: none });
        }
        if cipher.iv_len() == 0 {
            self.section.note(span, ManualProblem::SameStream { cipher });
        } else {
            self.sound(cipher.is_legacy(), cipher.name(), span);
        }
        self.keys(KEY, cipher)
    }

    fn integrity(&self, names: KeyNames) -> Option<ManualKeys<Integrity>> {
        let parse = |text: &str| text.parse::<Integrity>().map_err(ManualProblem::from);
        let wanted = "an integrity algorithm in quotes";
        let Placed { value: integrity, span } = self.section.parsed("integrity", wanted, parse)?;
        self.sound(integrity.is_legacy(), integrity.name(), span);
        self.keys(names, integrity)
    }

    fn sound(&self, is_legacy: bool, algorithm: &'static str, span: Range<usize>) {
        if is_legacy && !self.legacy {
            self.section.note(span, ManualProblem::Legacy { algorithm });
        }
    }

    fn unused(&self, name: KeyName, why: &'static str) {
        for key in [name.text, name.file] {
            unused(self.section, key, why);
        }
    }

    /// A key for each direction.
    fn keys<A: KeyedAlgorithm>(&self, names: KeyNames, algorithm: A) -> Option<ManualKeys<A>> {
        both(names.map(|name| self.key(name, algorithm)))
    }

    fn key<A: KeyedAlgorithm>(&self, name: KeyName, algorithm: A) -> Option<Placed<Arc<KeyMaterial<A>>>> {
        let KeyName { text: key, file, example } = name;
        match (self.section.value(key), self.section.value(file)) {
            (Some(_), Some(named)) => {
                self.section.note(named.span(), ManualProblem::KeyTwice { key });
                None
            }
            (None, None) => {
                self.section.require(file, example);
                None
            }
            (Some(written), None) => {
                self.beside.holds_key(self.section, written.span());
                self.section
                    .parsed(key, "a key in quotes, as \"0x...\"", |text| material(key, algorithm, text))
            }
            (None, Some(_)) => self.section.parsed(file, "the name of a file in quotes", |name| {
                let text: Zeroizing<String> = self.beside.files.key_text(&self.beside.path(name))?;
                material(file, algorithm, &text)
            }),
        }
    }
}

/// Both directions, if both could be read.
fn both<A: KeyedAlgorithm>(
    [inbound, outbound]: [Option<Placed<Arc<KeyMaterial<A>>>>; 2],
) -> Option<ManualKeys<A>> {
    Some(ManualKeys { inbound: inbound?.value, outbound: outbound?.value })
}

/// The key of exactly the right length that `text` stands for.
fn material<A: KeyedAlgorithm>(
    key: &'static str,
    algorithm: A,
    text: &str,
) -> Result<Arc<KeyMaterial<A>>, Problem> {
    let bytes = read_key(text).map_err(|error| ManualProblem::KeyText { key, error })?;
    let made = KeyMaterial::new(algorithm, &bytes);
    Ok(Arc::new(made.map_err(|wrong| ManualProblem::KeyLength {
        key,
        algorithm: algorithm.name(),
        secret: A::SECRET,
        expected: wrong.expected,
        given: wrong.given,
    })?))
}
