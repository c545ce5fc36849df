use super::*;
use std::os::unix::fs::PermissionsExt;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("strait-marks-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path.join("state"))
    }

    fn file(&self) -> PathBuf {
        MarkFile::path(&self.0, &key(7))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.parent().unwrap());
    }
}

fn key(number: u8) -> PublicKey {
    PublicKey::from_bytes([number; 32])
}

fn on_disk(path: &Path) -> MarkTable {
    MarkTable::read(&fs::read(path).unwrap(), key(7)).unwrap()
}

#[test]
fn what_is_written_is_there_after_a_crash_and_in_one_file() {
    let folder = Folder::new("crash");
    let mut file = MarkFile::open(&folder.file(), key(7)).unwrap();
    file.write().unwrap();
    assert_eq!(folder.file().metadata().unwrap().mode() & 0o777, 0o600);
    for mark in 1..600 {
        file.raise(key(7), mark).unwrap();
        file.raise(key(1), mark / 2).unwrap();
        file.write().unwrap();
    }
    assert_eq!((on_disk(&folder.file()).sender(), on_disk(&folder.file()).of(&key(1))), (599, 299));
    file.raise(key(1), 1000).unwrap();
    assert_eq!(on_disk(&folder.file()).of(&key(1)), 299, "not written yet");
    drop(file);
    let again = MarkFile::open(&folder.file(), key(7)).unwrap();
    assert_eq!((again.table.sender(), again.table.of(&key(1))), (599, 299));
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "no draft is left");
}

#[test]
fn one_node_has_one_daemon_also_after_a_new_file_took_the_place_of_the_old_one() {
    let folder = Folder::new("lock");
    let mut file = MarkFile::open(&folder.file(), key(7)).unwrap();
    for mark in 1..300 {
        let busy = MarkFile::open(&folder.file(), key(7));
        assert!(matches!(busy, Err(MarksError::Busy { .. })), "{busy:?}");
        file.raise(key(7), mark).unwrap();
        file.write().unwrap();
    }
    drop(file);
    MarkFile::open(&folder.file(), key(7)).unwrap();
}

#[test]
fn a_disk_that_takes_nothing_is_told_of_and_loses_nothing() {
    let folder = Folder::new("full");
    let mut file = MarkFile::open(&folder.file(), key(7)).unwrap();
    file.raise(key(1), 5).unwrap();
    let good = file.write_to(OpenOptions::new().write(true).open("/dev/full").unwrap());
    let error = file.write().unwrap_err();
    assert!(matches!(error, MarksError::Io { step: "write", .. }), "{error}");
    drop(good);
    file.raise(key(2), 6).unwrap();
    file.write().unwrap();
    let table = on_disk(&folder.file());
    assert_eq!((table.of(&key(1)), table.of(&key(2))), (5, 6), "in a new file");
}

#[test]
fn what_cannot_be_trusted_is_refused_with_what_to_do() {
    let folder = Folder::new("refused");
    let path = folder.file();
    drop(MarkFile::open(&path, key(7)).unwrap());
    let said = || MarkFile::open(&path, key(7)).unwrap_err().to_string();
    let other = MarkFile::open(&path, key(8)).unwrap_err().to_string();
    assert!(other.contains("another node"), "{other}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(said().contains("chmod 600"), "{}", said());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(said().contains("damaged") && said().contains("two epochs"), "{}", said());
    assert_eq!(fs::read(&path).unwrap().len(), whole.len() - 1, "it stays as it is");
    fs::write(&path, "a letter").unwrap();
    assert!(said().contains("not a file of marks"), "{}", said());
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(MarkFile::open(&link, key(7)), Err(MarksError::Io { .. })), "a link is not followed");
}
