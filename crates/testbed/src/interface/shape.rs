//! A thin link: a token bucket with a bounded queue (`tc-tbf(8)`) on the way out of an interface.

use std::io;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};
use strait_scheduler::Rate;

use super::request;

// linux/pkt_sched.h
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// Numbers the queues; numbers from 0x8000 on are the kernel's own (`qdisc_alloc_handle`).
static QUEUES: AtomicU16 = AtomicU16::new(0);

/// The Ethernet header, which the bucket counts.
const ETHERNET_HEADER: u32 = 14;

/// The queue never falls under this many full frames, or a slow link would carry no TCP at all.
const LEAST_FRAMES: u32 = 8;

/// Limits what leaves an interface to `rate`, with at most `queue` of waiting. What waits is dropped: a frame in the queue that is
/// larger than the bucket of the new rate would never leave.
pub(crate) fn set_shape(name: &str, mtu: u32, rate: Rate, queue: Duration) -> io::Result<()> {
    let frame = mtu + ETHERNET_HEADER;
    let per_second = rate.bits() / 8;
    // A bucket of a millisecond, and of two frames at least: the long-run rate is what counts.
    let burst = u32::try_from(per_second / 1000).unwrap_or(u32::MAX).max(2 * frame);
    let limit = u32::try_from(rate.bytes_in(queue)).unwrap_or(u32::MAX).max(LEAST_FRAMES * frame);

    let mut message = root(name)?;
    // The kernel changes a queue of the same number and replaces one of another.
    let number = QUEUES.fetch_add(1, Ordering::Relaxed) % 0x7fff + 1;
    message.header.handle = TcHandle { major: number, minor: 0 };
    message.attributes = vec![
        TcAttribute::Kind("tbf".to_owned()),
        TcAttribute::Options(vec![
            TcOption::Other(DefaultNla::new(TCA_TBF_PARMS, parameters(per_second, limit, frame))),
            TcOption::Other(DefaultNla::new(TCA_TBF_RATE64, per_second.to_ne_bytes().to_vec())),
            TcOption::Other(DefaultNla::new(TCA_TBF_BURST, burst.to_ne_bytes().to_vec())),
        ]),
    ];
    request(RouteNetlinkMessage::NewQueueDiscipline(message), NLM_F_CREATE | NLM_F_REPLACE)
}

/// Takes the limit away again.
pub(crate) fn take_shape(name: &str) -> io::Result<()> {
    request(RouteNetlinkMessage::DelQueueDiscipline(root(name)?), 0)
}

fn root(name: &str) -> io::Result<TcMessage> {
    let index = i32::try_from(super::index(name)?).map_err(io::Error::other)?;
    let mut message = TcMessage::with_index(index);
    message.header.parent = TcHandle::ROOT;
    Ok(message)
}

/// `struct tc_tbf_qopt`: rate, peak rate (none), limit, bucket in ticks (given in bytes elsewhere), largest frame.
/// With the link layer named the kernel computes its own table of times.
fn parameters(per_second: u64, limit: u32, frame: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(36);
    // struct tc_ratespec: cell_log, linklayer, overhead (u16), cell_align (i16), mpu (u16), rate (u32)
    out.extend([0, TC_LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0]);
    out.extend(u32::try_from(per_second).unwrap_or(u32::MAX).to_ne_bytes());
    out.extend([0; 12]);
    out.extend(limit.to_ne_bytes());
    out.extend(0_u32.to_ne_bytes());
    out.extend(frame.to_ne_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_have_the_size_the_kernel_expects() {
        assert_eq!(parameters(187_500, 56_250, 1514).len(), 36);
    }
}
