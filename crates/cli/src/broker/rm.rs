//! `rm`: transfers are removed from a broker.

use std::collections::{BTreeMap, BTreeSet};

use strait_transfer::broker::message::{Letter, LetterBox, LetterKind, ObjectName};

use super::letters::letters;
use super::link::{BrokerLink, failed};
use crate::failure::{Code, CommandResult, Failure};
use crate::flags::{FilePriority, RmFlags};
use crate::output::tell;

/// Removes letters.
pub(crate) fn rm(flags: &RmFlags) -> CommandResult {
    let mut brokers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for transfer in &flags.transfers {
        let (broker, id) = named(transfer)?;
        brokers.entry(broker).or_default().push(id);
    }
    let which = if flags.sent { LetterBox::Sent } else { LetterBox::Inbox };
    for (broker, ids) in brokers {
        let fail = |error| failed(broker, &error);
        let mut link = BrokerLink::open(flags.tunnel.as_deref(), broker, FilePriority::Now, None)?;
        let letters = link.awaiting(|client| letters(client, which)).map_err(fail)?;
        // All are found before any is removed.
        let found: BTreeSet<_> =
            ids.iter().map(|id| find(&letters, id, broker, flags.sent)).collect::<Result<_, _>>()?;
        for (object, kind) in found {
            link.awaiting(|client| client.remove(object, kind)).map_err(fail)?;
            tell(format_args!("removed {}", object.id));
        }
        link.stream.hang_up();
    }
    Ok(())
}

/// The broker and the first digits of the id.
fn named(transfer: &str) -> Result<(&str, String), Failure> {
    let parts = transfer.split_once(':').filter(|(broker, id)| {
        !broker.is_empty()
            && (1..=32).contains(&id.len())
            && id.bytes().all(|digit| digit.is_ascii_hexdigit())
    });
    let (broker, id) = parts.ok_or_else(|| {
        Failure::new(format!("`{}` names no transfer at a broker", transfer.escape_debug()))
            .remedy("write BROKER:ID; `strait ls BROKER:` lists the ids")
            .code(Code::Environment)
    })?;
    Ok((broker, id.to_ascii_lowercase()))
}

/// The only object whose id begins so. A receipt has the id of its transfer, and is meant only where there is no such transfer.
fn find(letters: &[Letter], id: &str, broker: &str, sent: bool) -> Result<(ObjectName, LetterKind), Failure> {
    for kind in [LetterKind::Transfer, LetterKind::Receipt] {
        let begins = |letter: &&Letter| letter.kind == kind && letter.object.id.to_string().starts_with(id);
        let found: BTreeSet<ObjectName> = letters.iter().filter(begins).map(|letter| letter.object).collect();
        match found.len() {
            0 => {}
            1 => return Ok((found.into_iter().next().unwrap_or(letters[0].object), kind)),
            _ => {
                return Err(Failure::new(format!("several transfers at {broker} begin with {id}"))
                    .remedy("write more of its digits"));
            }
        }
    }
    let whose = if sent { "from" } else { "to" };
    Err(Failure::new(format!("no transfer {whose} this node at {broker} begins with {id}"))
        .remedy(format!("`strait ls {broker}:{}` lists them", if sent { " --sent" } else { "" })))
}

#[cfg(test)]
mod tests {
    use strait_keying::PrivateKey;
    use strait_transfer::TransferId;

    use super::*;

    fn letter(id: u8, sender: u8, kind: LetterKind) -> Letter {
        let key = |number: u8| PrivateKey::generate(&[number; 32]).public();
        let object = ObjectName { sender: key(sender), id: TransferId::from_bytes([id; 16]) };
        Letter { object, receiver: key(9), kind, made: 0, expires: 0, manifest: 0, contents: 0 }
    }

    #[test]
    fn the_first_digits_are_enough_if_no_other_transfer_has_them() {
        let letters = [
            letter(0x10, 1, LetterKind::Transfer),
            letter(0x10, 1, LetterKind::Transfer),
            letter(0x10, 1, LetterKind::Receipt),
            letter(0x11, 1, LetterKind::Transfer),
            letter(0x20, 1, LetterKind::Transfer),
            letter(0x20, 2, LetterKind::Transfer),
            letter(0x30, 2, LetterKind::Receipt),
        ];
        let found =
            |id: &str| find(&letters, id, "store", false).map(|(object, kind)| (object.id, kind)).ok();
        let id = |id: u8| TransferId::from_bytes([id; 16]);
        assert_eq!(found("10"), Some((id(0x10), LetterKind::Transfer)));
        assert_eq!(found("3"), Some((id(0x30), LetterKind::Receipt)));
        for ambiguous in ["1", "20", "40"] {
            assert_eq!(found(ambiguous), None, "{ambiguous}");
        }
    }

    #[test]
    fn a_transfer_is_named_with_its_broker() {
        assert_eq!(named("store:0A").ok(), Some(("store", "0a".to_owned())));
        for wrong in ["store", ":0a", "store:", "store:x", "store:000000000000000000000000000000000"] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
