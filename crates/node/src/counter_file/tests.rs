use super::*;
use std::os::unix::fs::PermissionsExt;
use strait_crypto::{KeyMaterial, Suite};
use strait_ipsec::{IvMode, OutboundSa, Payloads, PeerId, SaSpec};
use strait_keying::manual::SLACK;
use strait_wire::Spi;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("strait-counter-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("gateway.counter")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn spec(byte: u8) -> SaSpec {
    let key = KeyMaterial::new(Suite::Aes128Gcm, &[byte; 20]).unwrap();
    SaSpec::session(PeerId(1), Spi(0x0400_0001), key, IvMode::Explicit, Payloads::STANDARD)
}

fn open(path: &Path, byte: u8) -> Result<CounterFile, CounterFileError> {
    CounterFile::open(path, Identity::of(&spec(byte)), SequenceNumbers::Bits64)
}

#[test]
fn a_start_after_a_crash_goes_on_behind_all_that_was_reserved() {
    let folder = Folder::new("crash");
    let mut file = open(&folder.file(), 1).unwrap();
    assert_eq!((file.reserve().first(), file.reserve().limit()), (1, SLACK));
    assert_eq!(folder.file().metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "no draft is left");
    file.keep(SLACK).unwrap();
    let reserve = file.reserve();
    assert_eq!(reserve.limit(), 2 * SLACK);
    drop(file);
    let again = open(&folder.file(), 1).unwrap();
    assert_eq!((again.reserve().first(), again.reserve().limit()), (2 * SLACK + 1, 3 * SLACK));
}

#[test]
fn an_orderly_end_costs_no_number() {
    let folder = Folder::new("end");
    let file = open(&folder.file(), 1).unwrap();
    let sa = OutboundSa::new(&spec(1)).within(file.reserve());
    let reserve = file.reserve();
    assert_eq!(reserve.ended_at(), None, "it may still be used");
    drop(sa);
    assert_eq!(reserve.ended_at(), Some(0));
    file.close().unwrap();
    assert_eq!(open(&folder.file(), 1).unwrap().reserve().first(), 1);
    // One that is still in use says nothing about where it ends.
    let file = open(&folder.file(), 1).unwrap();
    let sa = OutboundSa::new(&spec(1)).within(file.reserve());
    file.close().unwrap();
    drop(sa);
    assert!(open(&folder.file(), 1).unwrap().reserve().first() > SLACK);
}

#[test]
fn one_file_has_one_user() {
    let folder = Folder::new("lock");
    let file = open(&folder.file(), 1).unwrap();
    let error = open(&folder.file(), 1).unwrap_err();
    assert!(matches!(error, CounterFileError::Busy { .. }), "{error}");
    let again = file.again(Identity::of(&spec(1)), SequenceNumbers::Bits64).unwrap();
    assert_eq!(again.reserve().first(), SLACK + 1);
    drop(file);
    assert!(matches!(open(&folder.file(), 1), Err(CounterFileError::Busy { .. })), "still locked");
    drop(again);
    assert_eq!(open(&folder.file(), 1).unwrap().reserve().first(), 2 * SLACK + 1);
}

#[test]
fn invalid_values_are_refused() {
    let folder = Folder::new("refused");
    let path = folder.file();
    drop(open(&path, 1).unwrap());
    let said = |byte| open(&path, byte).unwrap_err().to_string();
    assert!(said(2).contains("it belongs to other keys (SPI 0x04000001 out)"), "{}", said(2));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(said(1).contains("chmod 600"), "{}", said(1));
    fs::write(&path, "a letter").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(said(1).contains("it is not a counter file"), "{}", said(1));
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(open(&link, 1), Err(CounterFileError::Io { .. })), "a link is not followed");
    assert!(matches!(open(&folder.0, 1), Err(CounterFileError::Io { .. })), "a folder");
    let nowhere = open(&folder.0.join("none/x"), 1).unwrap_err().to_string();
    assert!(nowhere.contains("cannot make the counter file"), "{nowhere}");
}
