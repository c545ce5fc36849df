use super::super::identity::Fingerprint;
use super::*;
use proptest::prelude::*;
use strait_crypto::{Cipher, Integrity, KeyMaterial, Suite};
use strait_ipsec::{EspKeys, EspSpec, IvMode, Payloads, PeerId, SaSpec};
use strait_wire::Spi;

fn identity(byte: u8) -> Identity {
    Identity { spi: Spi(0x0400_0002), fingerprint: Fingerprint([byte; 16]) }
}

fn bits64(identity: Identity) -> SequenceCounter {
    SequenceCounter::new(identity, SequenceNumbers::Bits64)
}

/// A disk with one file, which loses what was not written whole.
struct Disk(Vec<u8>);

impl Disk {
    fn take(&mut self, write: &Write) {
        self.take_torn(write, RECORD_LEN);
    }

    /// Only the first bytes of it arrive.
    fn take_torn(&mut self, write: &Write, len: usize) {
        let at = usize::try_from(write.at).unwrap();
        self.0[at..at + len].copy_from_slice(&write.bytes[..len]);
    }
}

/// A counter whose first numbers are on disk.
fn begun(identity: Identity) -> (SequenceCounter, Disk) {
    let mut counter = bits64(identity);
    let mut disk = Disk(vec![0; FILE_LEN]);
    let write = counter.due(0).unwrap();
    disk.take(&write);
    counter.written(write);
    (counter, disk)
}

fn resume(disk: &Disk) -> Result<SequenceCounter, CounterError> {
    SequenceCounter::resume(&disk.0, identity(7), SequenceNumbers::Bits64)
}

#[test]
fn nothing_is_reserved_before_it_is_written() {
    let counter = bits64(identity(7));
    assert_eq!((counter.reserve().first(), counter.reserve().limit()), (1, 0));
    let (counter, disk) = begun(identity(7));
    assert_eq!((counter.reserve().first(), counter.reserve().limit()), (1, SLACK));
    let again = resume(&disk).unwrap();
    assert_eq!((again.reserve().first(), again.reserve().limit()), (SLACK + 1, SLACK));
}

#[test]
fn the_slack_is_kept_at_half_or_more() {
    let (mut counter, mut disk) = begun(identity(7));
    assert_eq!(counter.due(SLACK / 2), None);
    let write = counter.due(SLACK / 2 + 1).unwrap();
    assert_eq!(write.at, BLOCK as u64, "the two places take turns");
    disk.take(&write);
    counter.written(write);
    assert_eq!(counter.reserve().limit(), SLACK + SLACK / 2 + 1);
    assert_eq!(counter.due(SLACK / 2 + 1), None);
    assert_eq!(resume(&disk).unwrap().reserve().first(), SLACK + SLACK / 2 + 2);
}

#[test]
fn an_orderly_end_costs_no_number() {
    let (counter, mut disk) = begun(identity(7));
    disk.take(&counter.close(counter.used(41)));
    let again = resume(&disk).unwrap();
    assert_eq!(again.reserve().first(), 42);
    assert_eq!(again.used(0), 41);
}

#[test]
fn a_torn_write_leaves_the_other_record() {
    for len in 0..RECORD_LEN {
        let (counter, mut disk) = begun(identity(7));
        let write = counter.due(SLACK).unwrap();
        disk.take_torn(&write, len);
        let first = resume(&disk).unwrap().reserve().first();
        assert!(first == SLACK + 1 || first == 2 * SLACK + 1, "{len} bytes: {first}");
    }
}

#[test]
fn lost_record_costs_numbers_and_repeats_none() {
    let (mut counter, mut disk) = begun(identity(7));
    let write = counter.due(SLACK).unwrap();
    disk.take(&write);
    let at = usize::try_from(write.at).unwrap();
    counter.written(write);
    let limit = counter.reserve().limit();
    for damaged in 0..RECORD_LEN {
        let mut disk = Disk(disk.0.clone());
        disk.0[at + damaged] ^= 0x10;
        assert!(resume(&disk).unwrap().reserve().first() > limit, "byte {damaged}");
    }
    disk.0[at..at + RECORD_LEN].fill(0);
    assert_eq!(resume(&disk).unwrap().reserve().first(), SLACK + 1, "as after a first start");
}

#[test]
fn unusable_file_is_refused_with_its_reason() {
    let (_, disk) = begun(identity(7));
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = disk.0.clone();
        change(&mut bytes);
        SequenceCounter::resume(&bytes, identity(7), SequenceNumbers::Bits64).unwrap_err()
    };
    assert_eq!(with(&|bytes| bytes.truncate(FILE_LEN - 1)), CounterError::NotACounter);
    assert_eq!(with(&|bytes| bytes.clear()), CounterError::NotACounter);
    assert_eq!(with(&|bytes| bytes.fill(0)), CounterError::NotACounter);
    assert_eq!(with(&|bytes| bytes[..7].copy_from_slice(b"another")), CounterError::NotACounter);
    assert_eq!(with(&|bytes| bytes[7] = 2), CounterError::OtherVersion);
    assert_eq!(with(&|bytes| bytes[40] ^= 1), CounterError::Damaged);
    let other = SequenceCounter::resume(&disk.0, identity(8), SequenceNumbers::Bits64).unwrap_err();
    assert_eq!(other, CounterError::OtherKeys { found: Spi(0x0400_0002) });
}

#[test]
fn a_record_that_is_damaged_in_one_run_and_again_in_the_next_repeats_no_number() {
    let (_, mut disk) = begun(identity(7));
    for _ in 0..3 {
        // The newer record is damaged at the end of each run; the other one stays.
        let mut counter = resume(&disk).unwrap();
        while counter.reserve().limit() < counter.reserve().first() {
            let write = counter.due(0).unwrap();
            disk.take(&write);
            counter.written(write);
        }
        let used = counter.reserve().limit();
        let newest = if counter.written.unwrap().1 == RecordSlot::First { 0 } else { BLOCK };
        disk.0[newest + 40] ^= 1;
        let first = resume(&disk).unwrap().reserve().first();
        assert!(first > used, "{first} after {used}");
    }
}

#[test]
fn the_last_number_is_the_last() {
    let last = u64::from(u32::MAX);
    let near = SequenceCounter {
        last,
        reserve: Reserve::new(last - 9, last - 10),
        ..SequenceCounter::new(identity(7), SequenceNumbers::Bits32)
    };
    let mut disk = Disk(vec![0; FILE_LEN]);
    let mut counter = near;
    let write = counter.due(0).unwrap();
    disk.take(&write);
    counter.written(write);
    assert_eq!(counter.reserve().limit(), last);
    assert_eq!(counter.due(10), None, "there is nothing more to reserve");
    let end = SequenceCounter::resume(&disk.0, identity(7), SequenceNumbers::Bits32).unwrap_err();
    assert_eq!(end, CounterError::UsedUp);
}

fn spec(spi: u32, keys: EspKeys) -> SaSpec {
    let key = KeyMaterial::new(Suite::Aes128Gcm, &[0; 20]).unwrap();
    let session = SaSpec::session(PeerId(1), Spi(spi), key, IvMode::Explicit, Payloads::STANDARD);
    SaSpec { esp: Some(EspSpec { spi: Spi(spi), keys }), ..session }
}

#[test]
fn fingerprint_depends_on_every_part_of_the_keys() {
    let aead = |suite: Suite, byte| EspKeys::Aead {
        key: KeyMaterial::new(suite, &vec![byte; suite.key_material_len()]).unwrap(),
        iv: IvMode::Explicit,
    };
    let cbc = |cipher: Cipher, byte, mac: Option<Integrity>, seed| EspKeys::Separate {
        cipher: KeyMaterial::new(cipher, &vec![byte; cipher.key_len()]).unwrap(),
        integrity: mac.map(|mac| KeyMaterial::new(mac, &vec![3; mac.key_len()]).unwrap()),
        seed,
    };
    let all = [
        spec(1, aead(Suite::Aes128Gcm, 1)),
        spec(2, aead(Suite::Aes128Gcm, 1)),
        spec(1, aead(Suite::Aes128Gcm, 2)),
        spec(1, aead(Suite::Aes256Gcm, 1)),
        spec(1, aead(Suite::ChaCha20Poly1305, 1)),
        spec(1, cbc(Cipher::Aes128Cbc, 1, None, 5)),
        spec(1, cbc(Cipher::Aes128Cbc, 1, Some(Integrity::HmacSha256_128), 5)),
        spec(1, cbc(Cipher::Aes128Cbc, 2, Some(Integrity::HmacSha256_128), 5)),
        spec(1, cbc(Cipher::Null, 1, Some(Integrity::HmacSha256_128), 5)),
    ];
    for (at, one) in all.iter().enumerate() {
        for (other_at, other) in all.iter().enumerate() {
            assert_eq!(Identity::of(one) == Identity::of(other), at == other_at, "{at} and {other_at}");
        }
    }
    let seeded = |seed| Identity::of(&spec(1, cbc(Cipher::Aes128Cbc, 1, None, seed)));
    assert_eq!(seeded(5), seeded(6), "the seed is new at every start and no key");
}

/// What happens to a node.
#[derive(Clone, Debug)]
enum CounterStep {
    /// So many packets leave, as far as they may.
    Send(u64),
    /// The counter is looked at.
    Look,
    /// The power fails while a write is under way, of which this much arrives.
    Fail(usize),
    /// It ends in order and starts again.
    Restart,
}

fn step() -> impl Strategy<Value = CounterStep> {
    prop_oneof![
        4 => (0..SLACK).prop_map(CounterStep::Send),
        4 => Just(CounterStep::Look),
        1 => (0..=RECORD_LEN).prop_map(CounterStep::Fail),
        1 => Just(CounterStep::Restart),
    ]
}

proptest! {
    #[test]
    fn no_number_is_ever_used_twice(steps in proptest::collection::vec(step(), 1..60)) {
        let (mut counter, mut disk) = begun(identity(7));
        // The last number used on any run so far, and the packets of this run.
        let (mut used, mut packets) = (0, 0);
        for step in steps {
            match step {
                CounterStep::Send(wanted) => {
                    packets += wanted.min(counter.reserve().limit() - counter.used(packets));
                    used = used.max(counter.used(packets));
                }
                CounterStep::Look => {
                    if let Some(write) = counter.due(packets) {
                        disk.take(&write);
                        counter.written(write);
                    }
                }
                CounterStep::Fail(len) => {
                    if let Some(write) = counter.due(packets) {
                        disk.take_torn(&write, len);
                    }
                    (counter, packets) = (resume(&disk).unwrap(), 0);
                    prop_assert!(counter.reserve().first() > used);
                }
                CounterStep::Restart => {
                    let last = counter.used(packets);
                    disk.take(&counter.close(last));
                    (counter, packets) = (resume(&disk).unwrap(), 0);
                    prop_assert_eq!(counter.reserve().first(), last + 1);
                }
            }
        }
    }

    #[test]
    fn never_panics_on_any_input(bytes in proptest::collection::vec(any::<u8>(), FILE_LEN), plant: bool) {
        let mut bytes = bytes;
        if plant {
            bytes[..8].copy_from_slice(b"straitN\x01");
        }
        let _ = SequenceCounter::resume(&bytes, identity(7), SequenceNumbers::Bits64);
    }
}
