//! Daily keys: what a node publishes, with a signature that is right and with one that is not, and the file with its secrets.

use strait_keying::PrivateKey;
use strait_keying::sessionless::{DAILY_FILE_LEN, DAYS_MAX, DailyKeys, DailySlotWrite, Day, OwnDailyKeys};

const DAY: u64 = 86_400;
/// Days until the year 4707; a clock beyond that is broken.
const DAYS: u32 = 1_000_000;

/// The first byte says what the rest is: what is published, without the signature, or a day and the file at its noon.
pub fn check(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let identity = PrivateKey::generate(&[9; 32]);
    if kind % 2 == 0 {
        published(&identity, data);
    } else if let Some((day, file)) = data.split_first_chunk::<4>() {
        kept(&identity, u32::from_be_bytes(*day) % DAYS, file);
    }
}

fn published(identity: &PrivateKey, data: &[u8]) {
    assert!(DailyKeys::from_bytes(data).is_err(), "a signature was guessed");
    let mut bytes = data.to_vec();
    if let Some(node) = bytes.get_mut(1..33) {
        node.copy_from_slice(identity.public().as_bytes());
    }
    let signature = identity.sign(&[DailyKeys::LABEL, &bytes].concat());
    bytes.extend_from_slice(&signature);
    let Ok(keys) = DailyKeys::from_bytes(&bytes) else { return };
    let (first, end) = keys.days();
    let each: Vec<[u8; 32]> = (first.0..end.0).map(|day| *keys.on(Day(day)).unwrap()).collect();
    assert!(each.len() <= DAYS_MAX && keys.on(end).is_none());
    assert_eq!(DailyKeys::sign(identity, keys.number(), first, &each), keys);
    assert_eq!(keys.as_bytes(), bytes);
}

fn kept(identity: &PrivateKey, day: u32, file: &[u8]) {
    let node = identity.public();
    let noon = u64::from(day) * DAY + DAY / 2;
    let mut own = OwnDailyKeys::read(node, file);
    let mut file = file.to_vec();
    file.resize(DAILY_FILE_LEN, 0);
    write(&mut file, &own.roll(noon, &[7; 32]));
    let (first, last) = own.days().expect("there are always some");
    assert!(first.0 == day && (last.0 - first.0) as usize <= DAYS_MAX - 2);
    assert!(own.roll(noon, &[8; 32]).is_empty(), "nothing has changed");
    let published = own.sign(identity, noon * 1_000_000);
    // What a restart finds is the same.
    let mut again = OwnDailyKeys::read(node, &file);
    assert!(again.roll(noon, &[9; 32]).is_empty());
    assert_eq!(again.sign(identity, noon * 1_000_000), published);
}

fn write(file: &mut [u8], writes: &[DailySlotWrite]) {
    for write in writes {
        let at = write.at as usize;
        file[at..at + write.bytes.len()].copy_from_slice(write.bytes.as_slice());
    }
}
