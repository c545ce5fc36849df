//! The file that counts a manual key's sequence numbers: whatever becomes of its bytes, no number is used twice.

use strait_crypto::{KeyMaterial, Suite};
use strait_ipsec::{Carrier, Fragments, PeerId};
use strait_ipsec::{EspKeys, EspSpec, IvMode, Mode, Payloads, SaSpec, SequenceNumbers};
use strait_keying::manual::{CounterError, FILE_LEN, Identity, SequenceCounter, Write};
use strait_wire::Spi;

/// Most operations of one input.
const OPERATIONS: usize = 64;
/// Where the second record stands.
const SECOND: usize = FILE_LEN / 2;

/// The disk, and what was sent.
struct World {
    file: Vec<u8>,
    counter: SequenceCounter,
    length: SequenceNumbers,
    /// Packets that the present counter has numbered.
    packets: u64,
    /// The last number used.
    used: u64,
    /// Whether bytes of the first and of the second record were changed since it was written.
    changed: [bool; 2],
}

/// A byte of settings, then operations of four bytes: what, and how much of it.
pub fn check(data: &[u8]) {
    let Some((settings, operations)) = data.split_first() else { return };
    // As it is. A fuzzer that sees what bytes are compared with can make a record that is right.
    if settings & 2 != 0 {
        let mut file = operations.to_vec();
        file.resize(if settings & 4 != 0 { FILE_LEN } else { operations.len() }, 0);
        let resumed = |spi| SequenceCounter::resume(&file, identity(spi), SequenceNumbers::Bits64);
        match resumed(1) {
            Ok(counter) => {
                assert!(counter.reserve().first() > 0);
                assert_eq!(resumed(2).err(), Some(CounterError::OtherKeys { found: Spi(1) }));
            }
            Err(CounterError::UsedUp) => assert!(resumed(2).is_err()),
            Err(_) => {}
        }
        return;
    }
    let length = if settings & 1 == 0 { SequenceNumbers::Bits32 } else { SequenceNumbers::Bits64 };
    let counter = SequenceCounter::new(identity(1), length);
    let (file, changed) = (vec![0; FILE_LEN], [false; 2]);
    let mut world = World { file, counter, length, packets: 0, used: 0, changed };
    for &[what, a, b, c] in operations.as_chunks().0.iter().take(OPERATIONS) {
        let amount = u64::from(u32::from_be_bytes([0, a, b, c]));
        match what & 7 {
            0 | 1 => world.send(amount),
            2 => world.send(amount << 8),
            3 => world.keep(FILE_LEN),
            // Torn: only some of the bytes reach the disk, and the node ends.
            4 => {
                world.keep(usize::from(c & 63));
                world.restart();
            }
            5 => world.spoil(usize::from(b), c),
            6 => world.close(),
            _ => world.restart(),
        }
    }
    world.restart();
}

impl World {
    fn send(&mut self, count: u64) {
        let reserve = self.counter.reserve();
        let next = reserve.first() + self.packets;
        let count = count.min((reserve.limit() + 1).saturating_sub(next));
        if count > 0 {
            assert!(next > self.used, "number {next} again");
            self.packets += count;
            self.used = next + count - 1;
        }
    }

    /// What the daemon does once a second; `most` bytes reach the disk.
    fn keep(&mut self, most: usize) {
        if let Some(write) = self.counter.due(self.packets) {
            self.write(write, most);
        }
    }

    fn write(&mut self, write: Write, most: usize) {
        let at = usize::try_from(write.at).expect("an offset in the file");
        let len = most.min(write.bytes.len());
        self.file[at..at + len].copy_from_slice(&write.bytes[..len]);
        self.changed[usize::from(at >= SECOND)] = len < write.bytes.len();
        if len == write.bytes.len() {
            self.counter.written(write);
        }
    }

    fn close(&mut self) {
        if self.used >= self.counter.reserve().first() {
            let write = self.counter.close(self.used);
            self.write(write, FILE_LEN);
        }
        self.restart();
    }

    /// One byte of the newer record is another; the disk is good enough to keep the other.
    fn spoil(&mut self, at: usize, mask: u8) {
        if !self.changed.contains(&true) {
            let second = usize::from(at & 64 != 0);
            self.file[second * SECOND + (at & 63)] ^= mask;
            self.changed[second] = mask != 0;
        }
    }

    fn restart(&mut self) {
        match SequenceCounter::resume(&self.file, identity(1), self.length) {
            Ok(counter) => {
                assert!(counter.reserve().first() > self.used, "numbers up to {} were used", self.used);
                assert_eq!(
                    SequenceCounter::resume(&self.file, identity(2), self.length).err(),
                    Some(CounterError::OtherKeys { found: Spi(1) })
                );
                (self.counter, self.packets) = (counter, 0);
            }
            // Nothing was ever written, or nothing can be read: nothing is sent until a person has looked.
            Err(_) => {
                (self.file, self.changed) = (vec![0; FILE_LEN], [false; 2]);
                (self.counter, self.packets) = (SequenceCounter::new(identity(1), self.length), 0);
                self.used = 0;
            }
        }
    }
}

fn identity(spi: u32) -> Identity {
    let key = KeyMaterial::new(Suite::Aes128Gcm, &[7; 20]).expect("20 bytes");
    Identity::of(&SaSpec {
        peer: PeerId(1),
        ah: None,
        esp: Some(EspSpec { spi: Spi(spi), keys: EspKeys::Aead { key, iv: IvMode::Explicit } }),
        sequence: SequenceNumbers::Bits64,
        mode: Mode::Tunnel,
        carrier: Carrier::Udp,
        fragments: Fragments::Outer,
        payloads: Payloads::STANDARD,
    })
}
