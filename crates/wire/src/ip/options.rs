//! One option after another, in IPv4 headers (RFC 791 section 3.1) and in IPv6's options headers (RFC 8200 section 4.2).

use core::ops::Range;

use crate::Malformed;

/// End of options list (RFC 791).
pub(crate) const V4_END: u8 = 0;
/// No operation (RFC 791).
const V4_NOP: u8 = 1;
/// One byte of padding (RFC 8200 section 4.2).
const V6_PAD1: u8 = 0;

/// One option, by its place, so that the options can be changed from one to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundOption {
    /// The whole octet: copied flag, class and number in IPv4, what to do when unknown and number in IPv6.
    pub(crate) kind: u8,
    /// All of it, type and length included.
    pub(crate) at: Range<usize>,
}

/// The IPv4 option that begins at `at`; `None` at the end of the list.
pub(crate) fn next_v4(options: &[u8], at: usize) -> Result<Option<FoundOption>, Malformed> {
    match options.get(at..) {
        None | Some([] | [V4_END, ..]) => Ok(None),
        Some([V4_NOP, ..]) => found(options, V4_NOP, at, 1),
        Some([kind, len, ..]) if *len >= 2 => found(options, *kind, at, usize::from(*len)),
        Some(cut) => Err(Malformed::new("ipv4 option", cut)),
    }
}

/// The IPv6 option that begins at `at`, where `options` is a header's without next header and length; `None` at
/// the end.
pub(crate) fn next_v6(options: &[u8], at: usize) -> Result<Option<FoundOption>, Malformed> {
    match options.get(at..) {
        None | Some([]) => Ok(None),
        Some([V6_PAD1, ..]) => found(options, V6_PAD1, at, 1),
        Some([kind, len, ..]) => found(options, *kind, at, 2 + usize::from(*len)),
        Some(cut) => Err(Malformed::new("ipv6 option", cut)),
    }
}

fn found(options: &[u8], kind: u8, at: usize, len: usize) -> Result<Option<FoundOption>, Malformed> {
    let end = at + len;
    if end > options.len() {
        return Err(Malformed::new("option past the end of its header", options));
    }
    Ok(Some(FoundOption { kind, at: at..end }))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    type Next = fn(&[u8], usize) -> Result<Option<FoundOption>, Malformed>;

    fn all(next: Next, options: &[u8]) -> Result<Vec<(u8, usize)>, &'static str> {
        let (mut at, mut all) = (0, Vec::new());
        while let Some(option) = next(options, at).map_err(|malformed| malformed.what)? {
            assert_eq!(option.at.start, at);
            at = option.at.end;
            all.push((option.kind, option.at.len()));
        }
        Ok(all)
    }

    #[test]
    fn v4() {
        let past = "option past the end of its header";
        for (options, expected) in [
            (&[][..], Ok(vec![])),
            (&[0, 7, 7, 7], Ok(vec![])),
            (&[1, 1, 0, 9], Ok(vec![(1, 1), (1, 1)])),
            (&[148, 4, 0, 0, 1, 7, 3, 4], Ok(vec![(148, 4), (1, 1), (7, 3)])),
            (&[7, 2], Ok(vec![(7, 2)])),
            (&[7, 0, 0, 0], Err("ipv4 option")),
            (&[7, 1, 0, 0], Err("ipv4 option")),
            (&[1, 1, 1, 7], Err("ipv4 option")),
            (&[7, 5, 4, 0], Err(past)),
            (&[1, 7, 255, 4], Err(past)),
        ] {
            assert_eq!(all(next_v4, options), expected, "{options:?}");
        }
    }

    #[test]
    fn v6() {
        let past = "option past the end of its header";
        for (options, expected) in [
            (&[][..], Ok(vec![])),
            (&[0, 0], Ok(vec![(0, 1), (0, 1)])),
            (&[1, 4, 0, 0, 0, 0], Ok(vec![(1, 6)])),
            (&[5, 2, 0, 0, 1, 0], Ok(vec![(5, 4), (1, 2)])),
            (&[5, 2, 0, 0, 0, 1], Err("ipv6 option")),
            (&[5, 5, 0, 0, 1, 0], Err(past)),
            (&[1, 255], Err(past)),
        ] {
            assert_eq!(all(next_v6, options), expected, "{options:?}");
        }
    }

    proptest! {
        #[test]
        fn options_lie_within_and_go_on(options in vec(0u8..6, 0..60)) {
            for next in [next_v4 as Next, next_v6] {
                if let Ok(all) = all(next, &options) {
                    prop_assert!(all.iter().map(|(_, len)| len).sum::<usize>() <= options.len());
                }
            }
        }
    }
}
