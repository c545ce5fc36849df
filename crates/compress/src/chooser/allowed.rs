//! What a rule lets a unit be compressed with.

use core::fmt;
use core::str::FromStr;

use crate::{BadMethod, Codec, Method};

/// What a rule says: leave the choice, or make it. Spelled `auto`, `none`, or as a [`Method`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Allowed {
    /// Nothing at all.
    Nothing,
    /// This, wherever it shrinks something, whatever that costs.
    Only(Method),
    /// Whatever takes the least time.
    #[default]
    Any,
}

impl Allowed {
    /// Whether anything may be compressed.
    #[must_use]
    pub fn something(self) -> bool {
        self != Allowed::Nothing
    }

    /// The same towards a peer that knows only one method, if it does: what else a rule names stands for that.
    #[must_use]
    pub fn towards(self, only: Option<Method>) -> Allowed {
        match (self, only) {
            (Allowed::Only(_), Some(only)) => Allowed::Only(only),
            _ => self,
        }
    }
}

impl From<Method> for Allowed {
    fn from(method: Method) -> Allowed {
        if method.codec == Codec::None { Allowed::Nothing } else { Allowed::Only(method) }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Nothing => Method::NONE.fmt(f),
            Allowed::Only(method) => method.fmt(f),
            Allowed::Any => f.pad("auto"),
        }
    }
}

/// Neither a method nor `auto`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; or auto, for whatever takes the least time")]
pub struct BadAllowed(#[from] pub BadMethod);

impl FromStr for Allowed {
    type Err = BadAllowed;

    fn from_str(given: &str) -> Result<Allowed, BadAllowed> {
        if given == "auto" { Ok(Allowed::Any) } else { Ok(given.parse::<Method>()?.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for (name, allowed) in [
            ("auto", Allowed::Any),
            ("none", Allowed::Nothing),
            ("zstd-3", Allowed::Only(Method::ZSTD)),
            ("lz4", Allowed::Only(Method::LZ4)),
        ] {
            assert_eq!(name.parse(), Ok(allowed));
            assert_eq!(allowed.to_string(), name);
        }
        let message = "fast".parse::<Allowed>().unwrap_err().to_string();
        assert!(message.contains("auto"), "{message}");
    }
}
