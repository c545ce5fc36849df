//! The keys and algorithms of `[peer.manual.esp]` and `[peer.manual.ah]`.

use std::cell::RefCell;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use strait_crypto::{Cipher, Integrity, KeyMaterial, KeyedAlgorithm, Suite, UnknownName};
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

/// Whether broken algorithms may protect a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LegacyAlgorithms {
    Refused,
    Allowed,
    /// They are allowed, but this build has none, as was said already.
    NotBuilt,
}

/// What the keys of a protocol are read with.
pub(super) struct KeyReading<'a> {
    pub(super) section: &'a Section<'a>,
    pub(super) beside: &'a Beside<'a>,
    pub(super) legacy: LegacyAlgorithms,
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
        let Placed { value: cipher, span } = self.algorithm::<Cipher>("cipher", "a cipher in quotes")?;
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
        let wanted = "an integrity algorithm in quotes";
        let Placed { value: integrity, span } = self.algorithm::<Integrity>("integrity", wanted)?;
        self.sound(integrity.is_legacy(), integrity.name(), span);
        self.keys(names, integrity)
    }

    /// The algorithm of `key`. A name that is unknown may be that of one which this build does not have.
    fn algorithm<A>(&self, key: &str, wanted: &'static str) -> Option<Placed<A>>
    where
        A: KeyedAlgorithm + FromStr<Err = UnknownName<A>>,
        ManualProblem: From<UnknownName<A>>,
    {
        let written = self.section.value(key).and_then(|value| value.get_ref().as_str());
        if self.legacy == LegacyAlgorithms::NotBuilt && written.is_some_and(|name| name.parse::<A>().is_err())
        {
            return None;
        }
        self.section.parsed(key, wanted, |name| name.parse::<A>().map_err(ManualProblem::from))
    }

    fn sound(&self, is_legacy: bool, algorithm: &'static str, span: Range<usize>) {
        if is_legacy && self.legacy == LegacyAlgorithms::Refused {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::beside::Nothing;
    use crate::config::manual::protocols::ESP;
    use crate::config::reader::Findings;
    use std::path::Path;
    use toml::de::DeTable;

    #[test]
    fn unknown_names_are_no_mistakes_of_their_own_in_a_build_without_historic_algorithms() {
        let text = "cipher = \"4des-cbc\"\nintegrity = \"hmac-sha-0-96\"";
        let table = DeTable::parse(text).unwrap();
        for (legacy, mistakes) in
            [(LegacyAlgorithms::Refused, 2), (LegacyAlgorithms::Allowed, 2), (LegacyAlgorithms::NotBuilt, 0)]
        {
            let (findings, sealing) = (Findings::new(text), RefCell::default());
            let section = Section::new(&findings, "[peer.manual.esp]", table.get_ref(), table.span(), ESP);
            let beside = Beside::new(Path::new("x.toml"), &Nothing);
            let reading = KeyReading { section: &section, beside: &beside, legacy, sealing: &sealing };
            assert!(reading.protection(false).is_none());
            let said: Vec<String> = findings.finish().iter().map(|found| found.problem.to_string()).collect();
            assert_eq!(said.len(), mistakes, "{said:?}");
            assert!(said.iter().all(|said| said.starts_with("unknown ")), "{said:?}");
        }
    }
}
