//! Compression of the headers of UDP and ESP over IPv4 (RFC 2507 for what is not TCP, over PPP as RFC 3544 has it): of most packets a
//! number stands for all that does not change.
//!
//! ```text
//! full header         the packet, with generation and context in the place of IP's length
//! compressed          context | generation | identification (2) | checksum of UDP (2), if it has one | what follows the headers
//! ```
//!
//! Routers have it (Cisco's `ip header-compression iphc-format`); Linux's and the BSDs' PPP have RFC 1144 alone. Of the RFC, contexts
//! have one octet, and TCP goes as it is.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::ip;

use super::get;
use crate::packet::put16;

/// Contexts that both ends remember (RFC 3544 section 2.1: `NON_TCP_SPACE` 15, the number of the last).
const CONTEXTS: usize = 16;
/// Compressed headers between two full ones at most, and the time after one in which there are any (RFC 2507 section 14, `F_MAX_PERIOD` and
/// `F_MAX_TIME`): what is lost without a word is wrong no longer than that.
const PERIOD_MAX: u32 = 256;
const TIME_MAX: Duration = Duration::from_secs(5);
/// Generations, which tell apart what a context had one after the other (six bits).
const GENERATIONS: u8 = 64;
const UDP: u8 = 17;
const ESP: u8 = 50;
/// Places of IPv4's length, identification and checksum, and of UDP's behind it.
const LENGTH: usize = 2;
const IDENT: usize = 4;
const SUM: usize = 10;
const UDP_LENGTH: usize = 24;
const UDP_SUM: usize = 26;

/// The form in which a packet is sent, with PPP's number of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IphcPacket {
    /// An IP packet as it is (0x0021).
    Plain(Vec<u8>),
    /// One that says in which context to remember its headers (0x0061).
    Full(Vec<u8>),
    /// The rest of one whose context has its headers (0x0065).
    Compressed(Vec<u8>),
}

/// Headers of a packet that are remembered: up to 28 bytes, without what each packet has of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct IphcHeaders(Vec<u8>);

impl IphcHeaders {
    /// Those of an IP packet, if its kind has contexts.
    fn of(packet: &[u8]) -> Option<IphcHeaders> {
        let len = match (packet.first(), packet.get(9)) {
            (Some(0x45), Some(&UDP)) => 28,
            // ESP's SPI; what follows differs from packet to packet.
            (Some(0x45), Some(&ESP)) => 24,
            _ => return None,
        };
        let mut headers = packet.get(..len)?.to_vec();
        // A fragment has no more than IP's header in common with the next.
        let whole = headers[6] & 0x3f == 0 && headers[7] == 0;
        let udp_len = (len == 28).then(|| usize::from(get(packet, UDP_LENGTH)) + 20);
        let right = usize::from(get(packet, LENGTH)) == packet.len()
            && udp_len.is_none_or(|len| len == packet.len())
            && ip::v4_header_checksum(&packet[..ip::V4_HEADER_LEN]) == get(packet, SUM);
        for field in [LENGTH, IDENT, SUM] {
            headers[field..field + 2].fill(0);
        }
        if len == 28 {
            let has_sum = u16::from(get(packet, UDP_SUM) != 0);
            put16(&mut headers, UDP_LENGTH, 0);
            put16(&mut headers, UDP_SUM, has_sum);
        }
        (whole && right).then_some(IphcHeaders(headers))
    }

    /// The name of a flow: addresses, protocol, and ports or an SPI (`DEF` fields).
    fn flow(&self) -> (u8, &[u8]) {
        (self.0[9], &self.0[12..24])
    }

    fn is_udp(&self) -> bool {
        self.0.len() == 28
    }

    /// True if each packet of the context has a checksum of UDP.
    fn has_sum(&self) -> bool {
        self.is_udp() && get(&self.0, UDP_SUM) != 0
    }
}

/// A flow that has a context.
#[derive(Clone, Debug)]
struct IphcFlow {
    headers: IphcHeaders,
    generation: u8,
    /// Compressed headers before the next full one, and since the last; when that was.
    period: u32,
    since: u32,
    full_at: Time,
}

/// The end that leaves out what did not change.
#[derive(Clone, Debug, Default)]
pub struct IphcCompressor {
    flows: Vec<IphcFlow>,
    /// The context that is given to the next flow, once there is no other.
    next: usize,
}

impl IphcCompressor {
    /// The form in which to send this IP packet at `now`.
    pub fn compress(&mut self, packet: &[u8], now: Time) -> IphcPacket {
        let Some(headers) = IphcHeaders::of(packet) else { return IphcPacket::Plain(packet.to_vec()) };
        let place = self.flows.iter().position(|flow| flow.headers.flow() == headers.flow());
        let Some(place) = place else { return self.begin(headers, packet, now) };
        let flow = &mut self.flows[place];
        if flow.headers != headers {
            (flow.headers, flow.generation) = (headers, (flow.generation + 1) % GENERATIONS);
            flow.period = 0;
        } else if flow.since < flow.period && now.since(flow.full_at) <= TIME_MAX {
            flow.since += 1;
            return compressed(place, flow, packet);
        }
        // Slow start (section 3.3.1): each period is twice as long as the one before.
        flow.period = (flow.period * 2).clamp(1, PERIOD_MAX);
        (flow.since, flow.full_at) = (0, now);
        full(place, flow, packet)
    }

    fn begin(&mut self, headers: IphcHeaders, packet: &[u8], now: Time) -> IphcPacket {
        let mut flow = IphcFlow { headers, generation: 0, period: 1, since: 0, full_at: now };
        let place = self.next;
        self.next = (self.next + 1) % CONTEXTS;
        match self.flows.get_mut(place) {
            Some(before) => {
                flow.generation = (before.generation + 1) % GENERATIONS;
                *before = flow.clone();
            }
            None => self.flows.push(flow.clone()),
        }
        full(place, &flow, packet)
    }
}

fn full(place: usize, flow: &IphcFlow, packet: &[u8]) -> IphcPacket {
    let mut sent = packet.to_vec();
    sent[LENGTH..LENGTH + 2].copy_from_slice(&[flow.generation, place as u8]);
    if flow.headers.is_udp() {
        put16(&mut sent, UDP_LENGTH, 0);
    }
    IphcPacket::Full(sent)
}

fn compressed(place: usize, flow: &IphcFlow, packet: &[u8]) -> IphcPacket {
    let mut sent = vec![place as u8, flow.generation];
    sent.extend_from_slice(&packet[IDENT..IDENT + 2]);
    if flow.headers.has_sum() {
        sent.extend_from_slice(&packet[UDP_SUM..UDP_SUM + 2]);
    }
    sent.extend_from_slice(&packet[flow.headers.0.len()..]);
    IphcPacket::Compressed(sent)
}

/// The end that puts it back.
#[derive(Clone, Debug, Default)]
pub struct IphcExpander {
    contexts: Vec<Option<(u8, IphcHeaders)>>,
}

impl IphcExpander {
    /// The IP packet that was sent; nothing for what no context explains.
    pub fn expand(&mut self, sent: &IphcPacket) -> Option<Vec<u8>> {
        match sent {
            IphcPacket::Plain(packet) => Some(packet.clone()),
            IphcPacket::Full(packet) => self.remember(packet),
            IphcPacket::Compressed(rest) => self.restore(rest),
        }
    }

    fn remember(&mut self, sent: &[u8]) -> Option<Vec<u8>> {
        let [_, _, generation, context, ..] = *sent else { return None };
        let mut packet = sent.to_vec();
        lengths(&mut packet)?;
        let headers = IphcHeaders::of(&packet)?;
        let place = usize::from(context);
        if place >= CONTEXTS || generation >= GENERATIONS {
            return None;
        }
        self.contexts.resize(self.contexts.len().max(place + 1), None);
        self.contexts[place] = Some((generation, headers));
        Some(packet)
    }

    fn restore(&self, sent: &[u8]) -> Option<Vec<u8>> {
        let [context, generation, ident @ ..] = sent else { return None };
        let (known, headers) = self.contexts.get(usize::from(*context))?.as_ref()?;
        let (ident, rest) = ident.split_first_chunk::<2>().filter(|_| known == generation)?;
        let (sum, content) = if headers.has_sum() {
            rest.split_first_chunk::<2>().map(|(sum, content)| (Some(sum), content))?
        } else {
            (None, rest)
        };
        let mut packet = [&headers.0, content].concat();
        packet[IDENT..IDENT + 2].copy_from_slice(ident);
        if let Some(sum) = sum {
            packet[UDP_SUM..UDP_SUM + 2].copy_from_slice(sum);
        }
        lengths(&mut packet)?;
        let sum = ip::v4_header_checksum(&packet[..ip::V4_HEADER_LEN]);
        put16(&mut packet, SUM, sum);
        Some(packet)
    }
}

/// Writes the lengths that the frame tells.
fn lengths(packet: &mut [u8]) -> Option<()> {
    let len = u16::try_from(packet.len()).ok()?;
    let udp = packet.get(9) == Some(&UDP);
    if packet.len() < if udp { 28 } else { 20 } {
        return None;
    }
    put16(packet, LENGTH, len);
    if udp {
        put16(packet, UDP_LENGTH, len - 20);
    }
    Some(())
}

#[cfg(test)]
mod tests;
