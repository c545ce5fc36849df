//! Messages of a client of SSH that is let in.

use std::collections::{BTreeMap, BTreeSet};

use strait_ssh::connection::{Connection, Outgoing};
use strait_ssh::{ChannelNumber, OpenRefusal, OutputStream, SshError, SshEvent};

/// Messages to the client, which go nowhere.
struct Sent;

impl Outgoing for Sent {
    fn send(&mut self, message: Vec<u8>) -> Result<(), SshError> {
        assert!(!message.is_empty());
        Ok(())
    }

    fn is_open(&self) -> bool {
        true
    }

    fn waiting(&self) -> usize {
        0
    }
}

/// Messages behind their lengths, of two bytes; what each asks for is done in one of several ways.
pub fn check(mut data: &[u8]) {
    let (mut connection, mut sent) = (Connection::default(), Sent);
    // Bytes of each channel that were not taken: the windows bound them.
    let mut held: BTreeMap<ChannelNumber, usize> = BTreeMap::new();
    let mut open = BTreeSet::new();
    while let Some((length, rest)) = data.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
        let (message, rest) = rest.split_at(length);
        data = rest;
        if connection.take(message, &mut sent).is_err() {
            return;
        }
        while let Some(event) = connection.next_event() {
            let way = message.len() % 4;
            match event {
                SshEvent::OpenTcp { channel, .. } if way == 0 => {
                    connection.refuse(channel, OpenRefusal::ConnectFailed, "no", &mut sent).unwrap();
                }
                SshEvent::OpenTcp { channel, .. } | SshEvent::OpenSession(channel) => {
                    connection.confirm(channel, &mut sent).unwrap();
                    open.insert(channel);
                }
                SshEvent::Agent(_) if way == 0 => open.extend(connection.open_agent(&mut sent).unwrap()),
                SshEvent::Data(channel, bytes) => {
                    let held = held.entry(channel).or_default();
                    *held += bytes.len();
                    assert!(*held <= 256 * 1024, "more than a window waits");
                    if way > 0 {
                        connection.taken(channel, std::mem::take(held), &mut sent).unwrap();
                    }
                    let room = connection.room(channel, &mut sent);
                    let said = connection.data(channel, OutputStream::Out, &bytes, &mut sent).unwrap();
                    assert!(said <= room.min(bytes.len()));
                }
                SshEvent::Eof(channel) if way == 0 => {
                    connection.eof(channel, &mut sent).unwrap();
                    connection.tell(channel, b"exit-status", |_| (), &mut sent).unwrap();
                    connection.close(channel, &mut sent).unwrap();
                }
                SshEvent::OpenFailed(channel) => {
                    open.remove(&channel);
                }
                SshEvent::Closed(channel) => {
                    open.remove(&channel);
                    connection.close(channel, &mut sent).unwrap();
                    assert_eq!(connection.room(channel, &mut sent), 0);
                }
                _ => {}
            }
        }
        assert!(open.len() <= 64, "more channels than there may be");
    }
}
