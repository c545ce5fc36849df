//! Asking the kernel's packet filter (nf_tables) for tables, chains and rules, without the program `nft`.
//!
//! Numbers and layouts are those of Linux `include/uapi/linux/netfilter/nf_tables.h` and `nfnetlink.h`. Numbers in
//! attributes are big-endian; what rules compare is as packets and registers have it.

mod expressions;

use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST};
use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};

pub(crate) use expressions::{NftAddress, NftExpressions, NftHeader, NftMeta};

/// `NFNL_SUBSYS_NFTABLES`.
const SUBSYSTEM: u16 = 10;
/// `NFNL_MSG_BATCH_BEGIN` and `NFNL_MSG_BATCH_END`.
const BATCH: [u16; 2] = [0x10, 0x11];
/// `NFPROTO_INET`: IPv4 and IPv6.
const INET: u8 = 1;
/// Length of `nlmsghdr` and of `nfgenmsg`.
const HEADER: usize = 16;
const FAMILY: usize = 4;
/// Larger than all acknowledgements of a change together.
const ANSWER_BYTES: usize = 64 << 10;
/// `NLMSG_ERROR`, which also acknowledges (with 0).
const ERROR: u16 = 2;

/// `NFTA_TABLE_NAME` and `NFTA_TABLE_FLAGS`.
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;

/// What names a table.
pub(crate) fn table_name(name: &str) -> NftAttributes {
    NftAttributes::new().text(TABLE_NAME, name)
}

/// An empty table in place of the one of that name, if there is one.
pub(crate) fn fresh_table(name: &str, flags: u32) -> Vec<(NftVerb, NftAttributes)> {
    let table = || table_name(name).number(TABLE_FLAGS, flags);
    // Made first so that there is one to remove.
    vec![(NftVerb::NewTable, table()), (NftVerb::DelTable, table_name(name)), (NftVerb::NewTable, table())]
}

/// A chain of the table at a hook of the kernel's (`NF_INET_PRE_ROUTING` and so on).
pub(crate) fn chain(table: &str, chain: &str, hook: u32, priority: i32) -> (NftVerb, NftAttributes) {
    let hook = NftAttributes::new().number(1, hook).bytes(2, &priority.to_be_bytes());
    let chain = NftAttributes::new().text(1, table).text(3, chain).nested(4, &hook).text(7, "filter");
    (NftVerb::NewChain, chain)
}

/// A rule at the end of a chain.
pub(crate) fn rule(table: &str, chain: &str, expressions: &NftAttributes) -> (NftVerb, NftAttributes) {
    (NftVerb::NewRule, NftAttributes::new().text(1, table).text(2, chain).nested(4, expressions))
}

/// What is asked of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum NftVerb {
    NewTable = 0,
    GetTable = 1,
    DelTable = 2,
    NewChain = 3,
    NewRule = 6,
    GetGeneration = 16,
}

/// Attributes as netlink writes them: length, number, value, padded to four bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct NftAttributes(Vec<u8>);

/// Says that an attribute holds others (`NLA_F_NESTED`).
const NESTED: u16 = 0x8000;

impl NftAttributes {
    pub(crate) fn new() -> NftAttributes {
        NftAttributes::default()
    }

    /// With one more attribute.
    pub(crate) fn bytes(mut self, number: u16, value: &[u8]) -> NftAttributes {
        let len = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
        self.0.extend(len.to_ne_bytes());
        self.0.extend(number.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub(crate) fn number(self, number: u16, value: u32) -> NftAttributes {
        self.bytes(number, &value.to_be_bytes())
    }

    /// A text with the zero at its end.
    pub(crate) fn text(self, number: u16, value: &str) -> NftAttributes {
        self.bytes(number, &[value.as_bytes(), &[0]].concat())
    }

    pub(crate) fn nested(self, number: u16, value: &NftAttributes) -> NftAttributes {
        self.bytes(number | NESTED, &value.0)
    }
}

/// A connection to the packet filter of the network namespace it was opened in. Tables that it owns end with it.
#[derive(Debug)]
pub(crate) struct Nftables {
    socket: Socket,
    sequence: u32,
}

impl Nftables {
    /// Whether there is a table of this name.
    pub(crate) fn has_table(&mut self, name: &str) -> bool {
        self.look(NftVerb::GetTable, &table_name(name)).is_ok()
    }

    /// Connects.
    ///
    /// # Errors
    /// When the kernel has no nfnetlink, or the process no file descriptor left.
    pub(crate) fn open() -> io::Result<Nftables> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Nftables { socket, sequence: 0 })
    }

    /// Makes all of `changes` or none.
    ///
    /// # Errors
    /// What the kernel said to the first that it refused.
    pub(crate) fn change(&mut self, changes: &[(NftVerb, NftAttributes)]) -> io::Result<()> {
        let [begin, end] = BATCH;
        let mut bytes = self.message(begin, NLM_F_REQUEST, 0, u16::to_be(SUBSYSTEM), &[]);
        for (verb, attributes) in changes {
            let how = match verb {
                NftVerb::DelTable => 0,
                // Or each rule would come before those that are there.
                NftVerb::NewRule => NLM_F_CREATE | NLM_F_APPEND,
                _ => NLM_F_CREATE,
            };
            let flags = NLM_F_REQUEST | NLM_F_ACK | how;
            bytes.extend(self.message(kind(*verb), flags, INET, 0, &attributes.0));
        }
        bytes.extend(self.message(end, NLM_F_REQUEST, 0, u16::to_be(SUBSYSTEM), &[]));
        self.socket.send(&bytes, 0)?;
        self.answers()
    }

    /// Whether what is asked for is there.
    ///
    /// # Errors
    /// What the kernel said; `NotFound` when it is not there.
    pub(crate) fn look(&mut self, verb: NftVerb, attributes: &NftAttributes) -> io::Result<()> {
        let bytes = self.message(kind(verb), NLM_F_REQUEST | NLM_F_ACK, INET, 0, &attributes.0);
        self.socket.send(&bytes, 0)?;
        self.answers()
    }

    fn message(&mut self, kind: u16, flags: u16, family: u8, resource: u16, attributes: &[u8]) -> Vec<u8> {
        self.sequence = self.sequence.wrapping_add(1);
        let len = u32::try_from(HEADER + FAMILY + attributes.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(HEADER + FAMILY + attributes.len());
        bytes.extend(len.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(self.sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend([family, 0]);
        bytes.extend(resource.to_ne_bytes());
        bytes.extend(attributes);
        bytes
    }

    /// Reads what the kernel answered, which it has when the request is sent; the first refusal.
    fn answers(&self) -> io::Result<()> {
        let (mut result, mut buffer) = (Ok(()), Vec::with_capacity(ANSWER_BYTES));
        loop {
            buffer.clear();
            match self.socket.recv(&mut buffer, libc::MSG_DONTWAIT) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return result,
                Err(error) => return Err(error),
            }
            let mut rest = buffer.as_slice();
            while let Some((len, kind)) = header(rest) {
                if kind == ERROR && result.is_ok() {
                    result = refusal(rest);
                }
                rest = rest.get(len.next_multiple_of(4).max(HEADER)..).unwrap_or_default();
            }
        }
    }
}

const fn kind(verb: NftVerb) -> u16 {
    SUBSYSTEM << 8 | verb as u16
}

/// Length and type of the first message.
fn header(bytes: &[u8]) -> Option<(usize, u16)> {
    let len = u32::from_ne_bytes(*bytes.first_chunk()?);
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    bytes.get(..HEADER)?;
    Some((usize::try_from(len).ok()?, kind))
}

/// The error in an answer: a negative number behind the header, 0 for none.
fn refusal(bytes: &[u8]) -> io::Result<()> {
    match bytes.get(HEADER..).and_then(<[u8]>::first_chunk).map(|code| i32::from_ne_bytes(*code)) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}
