//! How the gateway writes: keys and values in base64, 64-bit numbers as text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::fmt::Write;

use super::EtcdError;

pub(super) fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) fn decoded(value: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(value.as_str()?).ok()
}

/// A number, which is text, or is left out where it is 0.
pub(super) fn number(value: Option<&Value>) -> Option<i64> {
    match value {
        None => Some(0),
        Some(Value::String(text)) => text.parse().ok(),
        Some(other) => other.as_i64(),
    }
}

/// Bytes in hexadecimal.
pub(super) fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of hexadecimal digits.
pub(super) fn of_digits(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().map(|digit| char::from(digit).to_digit(16));
    let digits: Vec<u8> = digits.map(|digit| u8::try_from(digit?).ok()).collect::<Option<_>>()?;
    digits.chunks(2).map(|pair| Some(pair.first()? << 4 | pair.get(1)?)).collect()
}

/// A page of keys and values.
#[derive(Debug)]
pub(super) struct Range {
    /// As of which revision.
    pub(super) revision: i64,
    /// The entries, as JSON.
    pub(super) entries: Vec<Value>,
    /// Whether there are more.
    pub(super) more: bool,
}

impl Range {
    pub(super) fn of(answer: &Value) -> Result<Range, EtcdError> {
        let header = answer.get("header").ok_or(EtcdError::Strange("no header"))?;
        let revision = number(header.get("revision")).ok_or(EtcdError::Strange("no revision"))?;
        let entries = answer.get("kvs").and_then(Value::as_array).cloned().unwrap_or_default();
        let more = answer.get("more").and_then(Value::as_bool).unwrap_or(false);
        Ok(Range { revision, entries, more })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_of_etcd_are_read_and_others_refused() {
        let answer =
            json!({"header": {"revision": "7"}, "kvs": [{"key": "YQ=="}], "more": true, "count": "2"});
        let range = Range::of(&answer).unwrap();
        assert_eq!((range.revision, range.entries.len(), range.more), (7, 1, true));
        let empty = Range::of(&json!({"header": {"revision": "1"}})).unwrap();
        assert!(empty.entries.is_empty() && !empty.more);
        for strange in [json!({}), json!({"header": {"revision": "x"}}), json!(["a"])] {
            assert!(Range::of(&strange).is_err(), "{strange}");
        }
        assert_eq!(decoded(&json!("YQ==")), Some(b"a".to_vec()));
        assert_eq!(of_digits(&digits(&[0, 0x1f, 0xff])), Some(vec![0, 0x1f, 0xff]));
        assert_eq!((of_digits("0g"), of_digits("012")), (None, None));
        assert_eq!((decoded(&json!("?")), decoded(&json!(5))), (None, None));
    }
}
