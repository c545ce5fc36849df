//! How fields stand in a record, which is JSON.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serializer};

use crate::transfer_id::{hex, unhex};

/// As its `Display`, read by its `FromStr`.
pub(super) mod as_text {
    use super::{Deserialize, Deserializer, Serializer};
    use serde::de::Error;

    pub(crate) fn serialize<T: core::fmt::Display, S: Serializer>(
        value: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: core::str::FromStr<Err: core::fmt::Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// The same of what may be missing.
pub(super) mod as_text_or_none {
    use super::{Deserialize, Deserializer, Serializer};
    use serde::de::Error;

    pub(crate) fn serialize<T: core::fmt::Display, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.collect_str(value),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: core::str::FromStr<Err: core::fmt::Display>,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// Bytes, which need not be text, in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathBytes(pub Vec<u8>);

impl PathBytes {
    /// The bytes of a path.
    #[must_use]
    pub fn of(path: &Path) -> PathBytes {
        PathBytes(path.as_os_str().as_bytes().to_vec())
    }

    /// The path.
    #[must_use]
    pub fn to_path(&self) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(&self.0))
    }
}

impl serde::Serialize for PathBytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for PathBytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PathBytes, D::Error> {
        let text = String::deserialize(from)?;
        unhex(&text).map(PathBytes).ok_or_else(|| serde::de::Error::custom("not hexadecimal"))
    }
}
