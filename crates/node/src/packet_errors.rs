//! The errors of the system calls on the packet path: what each means for this packet, for the next, and for the way it took.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use strait_clock::Time;

/// A system call on the packet path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketCall {
    /// A packet of the host's from the tunnel device.
    ReadTun,
    /// One packet for the host, to the tunnel device.
    WriteTun,
    /// The same of several that were joined.
    WriteTunJoined,
    /// One datagram by UDP, or packets by a raw socket.
    Send,
    /// A train of datagrams by UDP.
    SendTrain,
    /// Datagrams from the UDP socket, or packets from a packet socket.
    Receive,
}

/// The meaning of an error of such a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorMeaning {
    /// Nothing is there, or there is no room, at this moment.
    Wait,
    /// This packet is lost, if it was one; the next may pass.
    Passing,
    /// The packet is larger than the interface takes.
    TooBig,
    /// The kernel does not take several at once: the same may pass one by one.
    OneByOne,
    /// The call will not work again.
    Lasting,
}

/// The meanings of an error: one for each [`PacketCall`], in their order.
type Meanings = [ErrorMeaning; 6];

/// The meanings of all errors that are not in the table.
const OTHERS: Meanings = {
    use ErrorMeaning::{Lasting, Passing};
    [Lasting, Passing, Passing, Passing, Passing, Lasting]
};

/// Each error that means something else, or that a network brings about.
const TABLE: &[(i32, Meanings)] = {
    use ErrorMeaning::{Lasting, OneByOne, Passing, TooBig, Wait};
    &[
        //                     ReadTun, WriteTun, WriteTunJoined, Send, SendTrain, Receive
        (libc::EAGAIN, [Wait, Wait, Wait, Wait, Wait, Wait]),
        (libc::EINTR, [Wait, Wait, Wait, Wait, Wait, Wait]),
        // Reading: joined packets of which the header cannot tell (Linux `tun_put_user`), which are gone then. Writing: the kernel does
        // not take what the header says (`virtio_net_hdr_to_skb`). A train: not built in, nothing on the way out computes the
        // checksums, or a segment larger than the interface takes (before 5.19); as of one datagram, a route that drops all, or a
        // source that is gone. Sending one by one tells which.
        (libc::EINVAL, [Passing, Passing, OneByOne, Passing, OneByOne, Lasting]),
        (libc::EOPNOTSUPP, [Lasting, Passing, OneByOne, Passing, OneByOne, Lasting]),
        // The interface is down, which brings nothing until it is up again. A train: the kernel transforms what leaves there (xfrm), or
        // nothing computes the checksums (before 6.11).
        (libc::EIO, [Wait, Passing, Passing, Passing, OneByOne, Lasting]),
        // Memory for a large packet may be short where there is enough for small ones.
        (libc::ENOBUFS, [Passing, Passing, OneByOne, Passing, OneByOne, Passing]),
        (libc::ENOMEM, [Passing, Passing, OneByOne, Passing, OneByOne, Passing]),
        (libc::EMSGSIZE, [Lasting, Passing, OneByOne, TooBig, TooBig, Passing]),
        // A packet filter that rejects, and a route that prohibits.
        (libc::EPERM, [Lasting, Passing, Passing, Passing, Passing, Lasting]),
        (libc::EACCES, [Lasting, Passing, Passing, Passing, Passing, Lasting]),
        // No route, no interface; where it is received, ICMP errors of what was sent before (ip(7)).
        (libc::ENETUNREACH, [Lasting, Passing, Passing, Passing, Passing, Passing]),
        (libc::EHOSTUNREACH, [Lasting, Passing, Passing, Passing, Passing, Passing]),
        (libc::EHOSTDOWN, [Lasting, Passing, Passing, Passing, Passing, Passing]),
        (libc::ENETDOWN, [Lasting, Passing, Passing, Passing, Passing, Passing]),
        (libc::ECONNREFUSED, [Lasting, Passing, Passing, Passing, Passing, Passing]),
        (libc::ENOPROTOOPT, [Lasting, Passing, Passing, Passing, Passing, Passing]),
        (libc::EPROTO, [Lasting, Passing, Passing, Passing, Passing, Passing]),
        (libc::EADDRNOTAVAIL, [Lasting, Passing, Passing, Passing, Passing, Lasting]),
        // The device was removed, or the descriptor is no such thing.
        (libc::EBADFD, [Lasting; 6]),
        (libc::EBADF, [Lasting; 6]),
        (libc::ENOTSOCK, [Lasting; 6]),
    ]
};

/// Returns the meaning of `error` of such a call.
pub(crate) fn meaning(call: PacketCall, error: &io::Error) -> ErrorMeaning {
    let Some(errno) = error.raw_os_error() else {
        // Of this program's own: "would block" says that nothing was sent; what was waited for in vain is lost.
        let wait = error.kind() == io::ErrorKind::WouldBlock;
        return if wait { ErrorMeaning::Wait } else { ErrorMeaning::Passing };
    };
    let row = TABLE.iter().find(|(row, _)| *row == errno).map_or(&OTHERS, |(_, meanings)| meanings);
    row.get(call as usize).copied().unwrap_or(ErrorMeaning::Passing)
}

/// Returns true if a datagram that was to leave with an address of the host's may have been refused because there is no such address. Of an
/// IPv4 address Linux says then that the network is unreachable (`ip_route_output_key_hash_rcu`), which has other reasons too.
#[must_use]
pub fn has_no_source(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EADDRNOTAVAIL | libc::ENETUNREACH))
}

/// So long without a refusal, and the next one is news: longer than the pause between two attempts to reach a peer (75 s).
const NEWS_AFTER: Duration = Duration::from_secs(600);

/// The rule by which refusals are in the log: the first of them, and again when they begin anew.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog {
    /// The time of the last refusal in nanoseconds; 0 before the first.
    last: AtomicU64,
}

impl RefusalLog {
    /// Returns true if the refusal at `now` is to be in the log.
    pub(crate) fn is_news(&self, now: Time) -> bool {
        let last = self.last.swap(now.as_nanos().max(1), Ordering::Relaxed);
        last == 0 || now.since(Time::from_nanos(last)) >= NEWS_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::ErrorMeaning::{Lasting, OneByOne, Passing, TooBig, Wait};
    use super::PacketCall::{ReadTun, Receive, Send, SendTrain, WriteTun, WriteTunJoined};
    use super::*;

    const CALLS: [PacketCall; 6] = [ReadTun, WriteTun, WriteTunJoined, Send, SendTrain, Receive];

    fn of(call: PacketCall, errno: i32) -> ErrorMeaning {
        meaning(call, &io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn every_row_of_the_table_is_found_and_means_what_the_calls_can_bear() {
        for (at, (errno, meanings)) in TABLE.iter().enumerate() {
            assert!(TABLE[..at].iter().all(|(other, _)| other != errno), "two rows of {errno}");
            let error = io::Error::from_raw_os_error(*errno);
            for (call, expected) in CALLS.into_iter().zip(*meanings) {
                assert_eq!(meaning(call, &error), expected, "{call:?}: {error}");
                let joined = matches!(call, WriteTunJoined | SendTrain);
                assert!(expected != OneByOne || joined, "{call:?} of one packet: {error}");
                assert!(expected != TooBig || matches!(call, Send | SendTrain), "{call:?}: {error}");
                // Of what is written, nothing ends the node but a descriptor that is none.
                let is_write = !matches!(call, ReadTun | Receive);
                assert!(expected != Lasting || !is_write || *meanings == [Lasting; 6], "{call:?}: {error}");
            }
            // What is refused together goes one by one only where one may pass.
            let [_, write, joined, send, train, _] = *meanings;
            assert!(joined != OneByOne || write == Passing, "{error}");
            assert!(train != OneByOne || send == Passing, "{error}");
        }
    }

    #[test]
    fn what_is_in_no_row_ends_no_sending() {
        let unlisted = libc::EXDEV;
        assert!(TABLE.iter().all(|(errno, _)| *errno != unlisted));
        let meanings = CALLS.map(|call| of(call, unlisted));
        assert_eq!(meanings, [Lasting, Passing, Passing, Passing, Passing, Lasting]);
        assert_eq!(meaning(Send, &io::ErrorKind::WouldBlock.into()), Wait);
        assert_eq!(meaning(Send, &io::ErrorKind::TimedOut.into()), Passing);
        assert_eq!(meaning(Receive, &io::ErrorKind::InvalidData.into()), Passing);
    }

    #[test]
    fn the_packet_path_asks_the_table_and_compares_no_errors_itself() {
        /// The text between two marks.
        fn part<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
            let (_, rest) = text.split_once(from).unwrap();
            rest.split_once(to).unwrap().0
        }
        let (udp, direct) = (include_str!("udp.rs"), include_str!("direct.rs"));
        for text in [
            include_str!("inward.rs"),
            part(include_str!("outward.rs"), "//!", "#[cfg(test)]"),
            part(include_str!("tun/joined.rs"), "//!", "#[cfg(test)]"),
            part(udp, "pub fn send_train", "mod tests;"),
            part(direct, "impl DirectSockets", "fn open("),
        ] {
            for word in ["raw_os_error", "ErrorKind::WouldBlock", ".kind()", "libc::E"] {
                assert!(!text.contains(word), "{word} in {}", text.lines().next().unwrap_or_default());
            }
        }
    }

    #[test]
    fn refusals_without_end_are_news_once() {
        let log = RefusalLog::default();
        let mut now = Time::ZERO;
        let mut news = |pause: Duration| {
            now += pause;
            log.is_news(now)
        };
        assert!(news(Duration::ZERO));
        assert_eq!((0..600).filter(|_| news(Duration::from_secs(1))).count(), 0);
        assert!(news(NEWS_AFTER) && !news(Duration::ZERO));
    }
}
