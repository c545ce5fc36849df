use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use super::found::{file_among, service_among};
use super::kept::{before, read, write_beside};
use super::*;

#[test]
fn the_configuration_is_found_among_the_words_of_up() {
    for (words, file) in [
        ("up a.toml --foreground --log text", Some("a.toml")),
        ("up --log json --foreground a.toml", Some("a.toml")),
        ("up --log=json -f a.toml", Some("a.toml")),
        ("up --foreground", None),
        ("broker a.toml", None),
        ("a.toml", None),
    ] {
        let words: Vec<_> = words.split(' ').map(OsString::from).collect();
        let found = file_among(&words).map(|at| words[at].to_str().unwrap());
        assert_eq!(found, file, "{words:?}");
    }
}

#[test]
fn what_is_kept_to_go_back_to_takes_the_place_of_nothing_else() {
    let folder = std::env::temp_dir().join(format!("strait-restart-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let (file, other) = (folder.join("a.toml"), folder.join("other"));
    std::fs::write(&file, "new").unwrap();
    std::fs::write(&other, "other").unwrap();
    assert_eq!(original(&before(&file)), file);
    assert_eq!(original(&before(&folder.join("b.toml"))), folder.join("b.toml.before"), "there is no b.toml");
    assert_eq!(original(&file), file);
    let kept = before(&file);
    std::os::unix::fs::symlink(&other, &kept).unwrap();
    write_beside(&kept, &file.metadata().unwrap(), b"old").unwrap();
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "old");
    assert_eq!(kept.symlink_metadata().unwrap().mode() & 0o7777, 0o600);
    assert!(kept.symlink_metadata().unwrap().is_file());
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "other", "a link is not followed");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3, "nothing is left aside");
    assert_eq!(*read(&kept).unwrap(), b"old");
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(read(&pipe).is_err() && read(Path::new("/dev/zero")).is_err(), "neither has an end");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_service_of_systemd_is_known_by_the_control_groups_of_a_process() {
    let unit = "strait@site-a.service";
    let slice = "/system.slice/system-strait.slice/strait@site-a.service";
    let of_user = "/user.slice/user-7.slice/user@7.service/app.slice";
    for (groups, found) in [
        (format!("0::{slice}\n"), Some(unit)),
        (format!("0::{slice}/a-part\n"), Some(unit)),
        (format!("3:pids:/\n1:name=systemd:{slice}\n0::/\n"), Some(unit)),
        (format!("0::/system.slice/docker-7.scope{slice}\n"), Some(unit)),
        (format!("0::{of_user}/strait.service\n"), Some("strait.service")),
        (format!("0::{of_user}/terminal-3.scope\n"), None),
        ("0::/user.slice/user-0.slice/session-3.scope\n".to_owned(), None),
        ("0::/\n".to_owned(), None),
        (String::new(), None),
    ] {
        assert_eq!(service_among(&groups), found, "{groups}");
    }
}
