//! The table of messages, walked with the real code from the client's side.

use std::mem::discriminant;

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree as shared};
use zeroize::Zeroizing;

use super::exchange::hash;
use super::packet::Cipher;
use super::*;

/// The columns of the table, as far as a connection may be.
const STATES: [&str; 8] =
    ["offered", "agreed", "answered", "keyed", "asked", "admitted", "agreed again", "answered again"];
const LINE: &[u8] = b"SSH-2.0-test";

/// The client of one connection, with its server.
struct Pair {
    transport: Transport,
    strict: bool,
    sealer: Sealer,
    opener: Opener,
    server_offer: Vec<u8>,
    session: Option<Vec<u8>>,
    /// The client's key, from the server's answer to its own new keys.
    next_key: Option<PacketKey>,
}

impl Pair {
    /// A connection as far as `state`.
    fn at(state: &str, strict: bool) -> Pair {
        let host = HostKey::from_seed(&[1; 32]).unwrap();
        let mut pair = Pair {
            transport: Transport::new(host, Randomness::new(&[2; 32])).unwrap(),
            strict,
            sealer: Sealer::default(),
            opener: Opener::default(),
            server_offer: Vec::new(),
            session: None,
            next_key: None,
        };
        pair.transport.received(&[LINE, b"\r\n"].concat());
        assert_eq!(pair.transport.next(), Ok(None));
        pair.opener.received(&std::mem::take(pair.transport.out()));
        pair.opener.line(LINE_MAX).unwrap().unwrap();
        pair.server_offer = pair.opener.next().unwrap().unwrap();
        // The way there, and where each state is on it.
        let next =
            [KEXINIT, ECDH_INIT, NEWKEYS, SERVICE_REQUEST, USERAUTH_REQUEST, KEXINIT, ECDH_INIT, NEWKEYS];
        for (name, kind) in STATES.into_iter().zip(next) {
            if name == state {
                return pair;
            }
            pair.say(kind).unwrap();
            pair.hear();
        }
        panic!("there is no state {state}");
    }

    /// A message of that number, as a client has it.
    fn message(&self, kind: u8) -> Vec<u8> {
        let mut message = vec![kind];
        match kind {
            KEXINIT => message = self.offer(),
            ECDH_INIT => message.put_string(private().compute_public_key().unwrap().as_ref()),
            SERVICE_REQUEST => message.put_string(b"ssh-userauth"),
            USERAUTH_REQUEST => {
                for part in [&b"alice"[..], b"ssh-connection", b"none"] {
                    message.put_string(part);
                }
            }
            _ => {}
        }
        message
    }

    /// The server's own offer is one that a client can make, but for the mark of a strict one.
    fn offer(&self) -> Vec<u8> {
        let offer = offer(&[3; 16]);
        let mark: &[u8] =
            if self.strict { b"kex-strict-c-v00@openssh.com" } else { b"kex-nothing--v00@openssh.com" };
        let at = offer.windows(mark.len()).position(|it| it == b"kex-strict-s-v00@openssh.com").unwrap();
        [&offer[..at], mark, &offer[at + mark.len()..]].concat()
    }

    fn say(&mut self, kind: u8) -> Result<Option<Message>, SshError> {
        let mut bytes = Vec::new();
        self.sealer.seal(&self.message(kind), &mut bytes).unwrap();
        if let (NEWKEYS, Some(key)) = (kind, self.next_key.take()) {
            self.sealer.set_key(key);
        }
        self.transport.received(&bytes);
        self.transport.next()
    }

    /// The kinds of messages that the server has sent.
    fn hear(&mut self) -> Vec<u8> {
        self.opener.received(&std::mem::take(self.transport.out()));
        let mut kinds = Vec::new();
        let mut server_key = None;
        while let Some(payload) = self.opener.next().unwrap() {
            match payload[0] {
                KEXINIT => self.server_offer.clone_from(&payload),
                31 => server_key = Some(self.answered(&payload)),
                NEWKEYS => self.opener.set_key(server_key.take().unwrap()),
                _ => {}
            }
            kinds.push(payload[0]);
        }
        kinds
    }

    /// Keeps the client's key, and returns the server's.
    fn answered(&mut self, reply: &[u8]) -> PacketKey {
        let mut fields = Fields::new(&reply[1..]);
        let (host, server) = (fields.string().unwrap(), fields.string().unwrap());
        let (private, offer) = (private(), self.offer());
        let public = private.compute_public_key().unwrap();
        let secret = shared(&private, UnparsedPublicKey::new(&X25519, server), (), |shared| {
            let mut secret = Zeroizing::new(Vec::new());
            secret.put_integer(shared);
            Ok(secret)
        });
        let secret = secret.unwrap();
        let said = Said {
            client_version: LINE,
            server_version: VERSION,
            client_offer: &offer,
            server_offer: &self.server_offer,
        };
        let hash = hash(&said, [host, public.as_ref(), server], &secret);
        let session = self.session.get_or_insert_with(|| hash.clone()).clone();
        let done = Exchanged { reply: Vec::new(), hash, secret };
        let [client, server] = done.keys(&agree(&offer).unwrap(), &session).unwrap();
        self.next_key = Some(client);
        server
    }

    /// The fate of a message of that number.
    fn outcome(&mut self, kind: u8) -> &'static str {
        let before = self.seen();
        match self.say(kind) {
            Err(_) => return "ends",
            Ok(Some(_)) => return "taken",
            Ok(None) => {}
        }
        let changed = self.seen() != before;
        match self.hear()[..] {
            [] if !changed => "ignored",
            [UNIMPLEMENTED] if !changed => "unknown",
            _ => "taken",
        }
    }

    fn seen(&self) -> impl PartialEq + use<> {
        (discriminant(&self.transport.exchange), self.transport.stage)
    }
}

fn private() -> PrivateKey {
    PrivateKey::from_private_key(&X25519, &[9; 32]).unwrap()
}

/// The table in the head of the module: the first and last message of each row, and its cells.
fn table() -> Vec<(u8, u8, Vec<&'static str>)> {
    let rows = include_str!("../transport.rs").lines().filter_map(|line| line.strip_prefix("//! | "));
    let rows = rows.map(|row| row.trim_end_matches(" |").split(" | ").collect::<Vec<_>>());
    let mut rows = rows.filter(|row| row.len() == 1 + STATES.len());
    assert_eq!(rows.next().unwrap()[1..], STATES);
    rows.map(|row| {
        let (first, last) = row[0].split_once('-').unwrap_or((row[0], row[0]));
        (first.parse().unwrap(), last.parse().unwrap(), row[1..].to_vec())
    })
    .collect()
}

#[test]
fn every_message_in_every_state_comes_to_what_the_table_says() {
    let table = table();
    for kind in 0..=u8::MAX {
        let rows: Vec<_> = table.iter().filter(|(first, last, _)| (*first..=*last).contains(&kind)).collect();
        let [(_, _, cells)] = rows[..] else { panic!("{kind} has {} rows", rows.len()) };
        for (state, cell) in STATES.into_iter().zip(cells) {
            for strict in [true, false] {
                let mut pair = Pair::at(state, strict);
                let mut outcome = pair.outcome(kind);
                // Only what the client says next shows that it is a strict one.
                if outcome == "ignored" && state == "offered" && pair.say(KEXINIT).is_err() {
                    outcome = "ends";
                }
                let expected = match (*cell, strict) {
                    ("lax", true) => "ends",
                    ("lax", false) => "ignored",
                    (cell, _) => cell,
                };
                assert_eq!(outcome, expected, "message {kind}, {state}, strict: {strict}");
            }
        }
    }
}

/// In the clear where there are keys, and under a key that is not in use: the one that both ends have next, or any.
#[test]
fn no_message_is_taken_that_is_not_protected_as_the_state_has_it() {
    for state in STATES {
        for kind in 0..=u8::MAX {
            let mut pair = Pair::at(state, true);
            let before = pair.seen();
            let mut wrong = Sealer::default();
            if pair.transport.stage == Stage::Clear {
                let any = || PacketKey::new(Cipher::Aes128Gcm, &[7; 32], &[7; 12]).unwrap();
                wrong.set_key(pair.next_key.take().unwrap_or_else(any));
            }
            let mut bytes = Vec::new();
            wrong.seal(&pair.message(kind), &mut bytes).unwrap();
            // Whatever it is taken for is complete.
            bytes.extend_from_slice(&[0; 64]);
            pair.transport.received(&bytes);
            let taken = pair.transport.next();
            assert!(!matches!(taken, Ok(Some(_))), "message {kind}, {state}");
            assert!(pair.seen() == before && pair.transport.out().is_empty(), "message {kind}, {state}");
        }
    }
}

#[test]
fn a_wrong_guess_is_left_out_once_and_excuses_nothing_else() {
    let guessing = |strict| {
        let mut pair = Pair::at("agreed", strict);
        let Exchange::Agreed { guess, .. } = &mut pair.transport.exchange else { panic!() };
        *guess = true;
        pair
    };
    let mut pair = guessing(true);
    assert_eq!(pair.outcome(METHOD_LAST), "ignored");
    assert_eq!(pair.outcome(ECDH_INIT), "taken");
    for kind in (0..=u8::MAX).filter(|kind| !is_of_method(*kind)) {
        assert_eq!(guessing(true).outcome(kind), "ends", "message {kind}");
    }
}

#[test]
fn a_client_that_withholds_its_new_keys_does_not_have_messages_pile_up() {
    let mut pair = Pair::at("answered again", true);
    for _ in 0..HELD_MAX {
        pair.transport.send(vec![CONNECTION_FIRST]).unwrap();
    }
    assert!(pair.transport.send(vec![CONNECTION_FIRST]).is_err());
    // What was held goes out with the new keys.
    pair.say(NEWKEYS).unwrap();
    assert_eq!(pair.hear().len(), HELD_MAX);
}
