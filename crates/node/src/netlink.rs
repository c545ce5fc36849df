//! Asking the kernel's routing tables (rtnetlink(7)), one request at a time.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Larger than any answer the kernel puts into one datagram (32 KiB, `NLMSG_GOODSIZE` aside).
const ANSWER_BYTES: usize = 64 << 10;

/// A connection to the kernel's routing tables, in the network namespace it was opened in.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Connects.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        // So that a dump has only what was asked for; kernels before 4.20 send all there is.
        let _ = socket.set_netlink_get_strict_chk(true);
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Asks for a change, with `flags` beyond "request" and "acknowledge".
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.exchange(message, NLM_F_ACK | flags, |_| ())
    }

    /// Asks for everything of a kind.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn dump(&mut self, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        let mut all = Vec::new();
        self.exchange(message, NLM_F_DUMP, |message| all.push(message))?;
        Ok(all)
    }

    /// Asks for one thing.
    ///
    /// # Errors
    /// What the kernel answered; `NotFound` when it answered nothing.
    pub fn get(&mut self, message: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
        let mut found = None;
        self.exchange(message, NLM_F_ACK, |message| found = Some(message))?;
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        mut each: impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        self.send(message, flags)?;
        let mut buffer = Vec::with_capacity(ANSWER_BYTES);
        loop {
            buffer.clear();
            self.socket.recv(&mut buffer, 0)?;
            let mut rest = buffer.as_slice();
            while !rest.is_empty() {
                let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(broken)?;
                let len = usize::try_from(answer.header.length).unwrap_or(usize::MAX);
                // The end of an acknowledged exchange, or of a dump; answers without a request are ignored.
                if answer.header.sequence_number == self.sequence {
                    match answer.payload {
                        NetlinkPayload::InnerMessage(message) => each(message),
                        NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                        NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(()),
                        _ => {}
                    }
                }
                // Messages are padded to four bytes (netlink(7)).
                rest = rest.get(len.next_multiple_of(4).max(4)..).unwrap_or_default();
            }
        }
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(|_| ())
    }
}

fn broken(error: netlink_packet_core::DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
