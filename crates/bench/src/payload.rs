//! Payloads of small packets: what a station asks devices for again and again, and random bytes.

use strait_clock::Random;
use strait_testbed::sample;

/// Devices that are polled in turn, each a flow.
pub(crate) const DEVICES: usize = 8;
/// Bytes of a payload, give or take one where registers are of two.
pub(crate) const LEN: usize = 64;
/// Bytes of a Modbus/TCP answer before its registers: MBAP header, function, count of bytes (Modbus Application Protocol
/// V1.1b3, section 6.3; Messaging on TCP/IP V1.0b, section 3.1.3).
const MODBUS_FRONT: usize = 9;
/// "Read holding registers".
const READ_REGISTERS: u8 = 3;

/// What is in the payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadKind {
    /// Answers of Modbus/TCP devices: registers.
    Modbus,
    /// Answers of SNMP agents: uptime, and the counter of an interface.
    Snmp,
    /// Bytes that were never there before.
    Random,
}

impl PayloadKind {
    pub(crate) const ALL: [PayloadKind; 3] = [PayloadKind::Modbus, PayloadKind::Snmp, PayloadKind::Random];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            PayloadKind::Modbus => "Modbus",
            PayloadKind::Snmp => "SNMP",
            PayloadKind::Random => "random",
        }
    }
}

/// Devices, and what they answer.
#[derive(Debug)]
pub(crate) struct SensorStation {
    kind: PayloadKind,
    devices: [Device; DEVICES],
    random: Random,
    /// Numbers what is asked.
    asked: u32,
}

#[derive(Debug, Default)]
struct Device {
    registers: Vec<u16>,
    uptime: u32,
    octets: u32,
}

impl SensorStation {
    /// Always the same devices.
    pub(crate) fn new(kind: PayloadKind) -> SensorStation {
        let mut random = Random::new(sample::DEFAULT_SEED);
        let devices = core::array::from_fn(|at| Device::new(at, &mut random));
        SensorStation { kind, devices, random, asked: 0 }
    }

    /// What the next device in turn answers, and which one that is.
    pub(crate) fn answer(&mut self) -> (usize, Vec<u8>) {
        let at = self.asked as usize % DEVICES;
        self.asked += 1;
        let Some(device) = self.devices.get_mut(at) else { return (at, Vec::new()) };
        let payload = match self.kind {
            PayloadKind::Modbus => device.modbus(at, self.asked, &mut self.random),
            PayloadKind::Snmp => device.snmp(self.asked, &mut self.random),
            PayloadKind::Random => {
                let words = std::iter::repeat_with(|| self.random.next_u64().to_le_bytes());
                words.take(LEN / 8).flatten().collect()
            }
        };
        (at, payload)
    }
}

impl Device {
    fn new(at: usize, random: &mut Random) -> Device {
        // Registers are of two bytes and the rest is odd: every other device has one more.
        let registers = (LEN - MODBUS_FRONT) / 2 + at % 2;
        Device {
            registers: (0..registers).map(|_| low16(random.below(4_000))).collect(),
            // Two days up, and octets for days, so that both take four bytes.
            uptime: 17_280_000 + low32(random.below(10_000_000)),
            octets: 100_000_000 + low32(random.below(100_000_000)),
        }
    }

    /// Set points that stay, measured values that waver, counters that grow, and states that seldom change.
    fn modbus(&mut self, at: usize, asked: u32, random: &mut Random) -> Vec<u8> {
        for (place, register) in self.registers.iter_mut().enumerate() {
            match place % 5 {
                2 => *register = register.wrapping_add(low16(random.below(7))).wrapping_sub(3),
                3 => *register = register.wrapping_add(low16(random.below(20))),
                4 if random.below(64) == 0 => *register ^= 1 << random.below(16),
                _ => {}
            }
        }
        let data = self.registers.len() * 2;
        let [transaction_high, transaction_low] = low16(asked.into()).to_be_bytes();
        // Length counts from the unit on.
        let (length, unit) = (low8(data + 3), low8(at + 1));
        let mut adu =
            vec![transaction_high, transaction_low, 0, 0, 0, length, unit, READ_REGISTERS, low8(data)];
        adu.extend(self.registers.iter().flat_map(|register| register.to_be_bytes()));
        adu
    }

    /// SNMPv2c's answer (RFC 3416 section 3) with sysUpTime.0 and ifInOctets.3 (RFC 1213).
    fn snmp(&mut self, asked: u32, random: &mut Random) -> Vec<u8> {
        // Polled every ten seconds, more or less, on a network that is used more or less.
        self.uptime += 1_000 + low32(random.below(5));
        self.octets += low32(random.below(1 << 15));
        let uptime = bound(&[1, 3, 6, 1, 2, 1, 1, 3, 0], (0x43, self.uptime));
        let octets = bound(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 10, 3], (0x41, self.octets));
        let variables = tagged(0x30, &[uptime, octets].concat());
        let request = tagged(0x02, &(0x1a00_0000 + asked).to_be_bytes());
        let no_error = [2, 1, 0, 2, 1, 0];
        let pdu = tagged(0xa2, &[&request[..], &no_error, &variables].concat());
        tagged(0x30, &[&[2, 1, 1, 4, 3][..], b"mon", &pdu].concat())
    }
}

/// A variable by its object identifier, whose first two numbers share a byte, and its value with its type.
fn bound(object: &[u8], (kind, value): (u8, u32)) -> Vec<u8> {
    let [first, second, rest @ ..] = object else { return Vec::new() };
    let name = [&[first * 40 + second], rest].concat();
    tagged(0x30, &[tagged(0x06, &name), tagged(kind, &value.to_be_bytes())].concat())
}

/// BER of at most 127 bytes (X.690 section 8.1).
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, low8(content.len())], content].concat()
}

fn low8(value: usize) -> u8 {
    u8::try_from(value & 0xff).unwrap_or(0)
}

fn low16(value: u64) -> u16 {
    u16::try_from(value & 0xffff).unwrap_or(0)
}

fn low32(value: u64) -> u32 {
    u32::try_from(value & 0xffff_ffff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_64_bytes_long() {
        for kind in PayloadKind::ALL {
            let mut station = SensorStation::new(kind);
            let lens: Vec<usize> = (0..10 * DEVICES).map(|_| station.answer().1.len()).collect();
            assert_eq!(lens.iter().sum::<usize>(), lens.len() * LEN, "{kind:?}");
            assert!(
                lens.iter().all(|len| len.abs_diff(LEN) <= usize::from(kind == PayloadKind::Modbus)),
                "{lens:?}"
            );
        }
    }

    #[test]
    fn lengths_inside_add_up() {
        let mut modbus = SensorStation::new(PayloadKind::Modbus);
        let mut snmp = SensorStation::new(PayloadKind::Snmp);
        for _ in 0..10_000 {
            let (at, adu) = modbus.answer();
            assert_eq!(usize::from(adu[5]), adu.len() - 6);
            assert_eq!((usize::from(adu[8]), usize::from(adu[6])), (adu.len() - MODBUS_FRONT, at + 1));
            let (_, message) = snmp.answer();
            assert_eq!((message[0], usize::from(message[1])), (0x30, message.len() - 2));
            // Values that are positive and have no byte too much.
            let [.., 0x41, 4, first, _, _, _] = message[..] else { panic!("{message:02x?}") };
            assert!((1..0x80).contains(&first), "{message:02x?}");
        }
    }

    #[test]
    fn devices_say_something_new_each_time_and_much_of_it_is_old() {
        let mut station = SensorStation::new(PayloadKind::Modbus);
        let first = station.answer().1;
        let again = std::iter::repeat_with(|| station.answer()).nth(DEVICES - 1).unwrap().1;
        assert_ne!(first, again);
        let same = first.iter().zip(&again).filter(|(one, other)| one == other).count();
        assert!(same * 2 > first.len(), "{same} of {}", first.len());
    }
}
