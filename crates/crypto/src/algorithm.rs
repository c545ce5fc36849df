//! What every kind of algorithm has: a name to be called by and a length of secret to be given.

use core::fmt;

/// A kind of algorithm that [`KeyMaterial`](crate::KeyMaterial) can be for: [`Suite`](crate::Suite),
/// [`Cipher`](crate::Cipher) or [`Integrity`](crate::Integrity). No other crate adds one.
pub trait KeyedAlgorithm: Copy + Eq + fmt::Debug + fmt::Display + sealed::Sealed + 'static {
    /// What one of these is called in messages, such as `cipher`.
    const KIND: &'static str;
    /// What its secret consists of, in messages.
    const SECRET: &'static str;
    /// Every algorithm of this kind, in the order in which they are listed.
    const EVERY: &'static [Self];

    /// The name in configuration files and reports.
    fn name(self) -> &'static str;

    /// Bytes of keying material, at most 64.
    fn key_material_len(self) -> usize;
}

/// Bytes of the longest keying material: the key of HMAC-SHA-512 (RFC 4868 section 2.1.1).
pub(crate) const LONGEST: usize = 64;

/// A name that no algorithm of kind `A` has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {} `{given}`: write one of {}", A::KIND, names::<A>())]
pub struct UnknownName<A: KeyedAlgorithm> {
    /// The name as it was written.
    pub given: String,
    kind: core::marker::PhantomData<A>,
}

/// The algorithm of kind `A` that is called `name`.
pub(crate) fn named<A: KeyedAlgorithm>(name: &str) -> Result<A, UnknownName<A>> {
    let known = A::EVERY.iter().copied().find(|algorithm| algorithm.name() == name);
    known.ok_or_else(|| UnknownName { given: name.to_owned(), kind: core::marker::PhantomData })
}

/// Shows an algorithm by its name, and reads it from that.
macro_rules! written_by_name {
    ($algorithm:ty) => {
        impl core::fmt::Display for $algorithm {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }

        impl core::str::FromStr for $algorithm {
            type Err = $crate::algorithm::UnknownName<$algorithm>;

            fn from_str(name: &str) -> Result<$algorithm, Self::Err> {
                $crate::algorithm::named(name)
            }
        }
    };
}
pub(crate) use written_by_name;

/// Every name of kind `A` as a sentence lists them: `a, b or c`.
fn names<A: KeyedAlgorithm>() -> String {
    let names: Vec<&str> = A::EVERY.iter().map(|algorithm| algorithm.name()).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

mod sealed {
    /// Keeps [`Algorithm`](super::KeyedAlgorithm) to this crate, whose lengths are known to fit.
    pub trait Sealed {}
    impl Sealed for crate::Suite {}
    impl Sealed for crate::Cipher {}
    impl Sealed for crate::Integrity {}
}
