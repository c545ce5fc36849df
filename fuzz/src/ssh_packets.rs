//! What a client of SSH says before there are keys, and anything instead: bytes in pieces.

use strait_ssh::{HostKey, Randomness, SshServer};

/// The length of the pieces, then the bytes.
pub fn check(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let mut server = server();
    let mut refused = false;
    for piece in bytes.chunks(usize::from(*cut) + 1) {
        let taken = server.received(piece);
        assert!(!refused || taken.is_err(), "what was refused stays refused");
        refused = taken.is_err();
    }
    // No one has shown that they have the keys.
    assert_eq!(server.next_event(), None);
    // Two offers, an answer, new keys and the words of an end at most, of each exchange that was begun.
    assert!(server.out().len() <= 4096 + bytes.len() * 8);
}

fn server() -> SshServer {
    let key = HostKey::from_seed(&[1; 32]).unwrap_or_else(|| unreachable!("any seed makes a key"));
    SshServer::new(key, Randomness::new(&[2; 32])).unwrap_or_else(|_| unreachable!("it begins"))
}
