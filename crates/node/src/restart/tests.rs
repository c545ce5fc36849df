use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;

use super::found::file_among;
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
    write_beside(&kept, &File::open(&file).unwrap(), 0o600, &mut &b"old"[..]).unwrap();
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "old");
    assert_eq!(kept.symlink_metadata().unwrap().mode() & 0o7777, 0o600);
    assert!(kept.symlink_metadata().unwrap().is_file());
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "other", "a link is not followed");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3, "nothing is left aside");
    std::fs::remove_dir_all(&folder).unwrap();
}
