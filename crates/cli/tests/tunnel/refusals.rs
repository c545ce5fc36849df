//! What is wrong is refused with its cause and its remedy, before anything is made.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use strait_testbed::{Extra, TwoHosts};

use crate::pair::{Pair, allowed, fast, program};

/// Runs `strait up FILE --foreground` at the first site by way of other programs, which may be none.
fn up_by(pair: &Pair, by: &[&str], program: &Path, file: &Path) -> (Option<i32>, String) {
    let words = by.iter().map(|word| (*word).to_owned());
    let own = [program, Path::new("up"), file, Path::new("--foreground")];
    let words: Vec<String> = words.chain(own.map(|word| word.to_str().unwrap().to_owned())).collect();
    let mut command = pair.hosts.a.command(&words[0]);
    command.args(&words[1..]).env("STRAIT_RUNTIME_DIR", file.parent().unwrap().join("other"));
    said(&command.output().unwrap())
}

fn said(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn up(pair: &Pair, file: &Path) -> (Option<i32>, String) {
    up_by(pair, &[], program(), file)
}

fn assert_untouched(pair: &Pair) {
    assert_eq!(pair.hosts.a.interfaces().unwrap().len(), 2, "more than the loopback and the link");
}

/// The usual configuration of the first site, changed.
fn changed(pair: &Pair, change: impl Fn(String) -> String) -> PathBuf {
    let site = &pair.sites[0];
    let text = change(site.configuration(&[&pair.sites[1]], Extra::default()));
    let path = site.folder().join("changed.toml");
    fs::write(&path, text).unwrap();
    path
}

/// A change to a configuration, and what has to be said about it.
type Mistake = (fn(String) -> String, &'static [&'static str]);

#[test]
fn mistakes_in_a_configuration() {
    if !allowed() {
        return;
    }
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let mistakes: [Mistake; 8] = [
        (|text| text.replace("listen =", "lisen ="), &["changed.toml:4:1", "`lisen`", "`listen`"]),
        (|text| text.replace("site-a.key", "nowhere.key"), &["nowhere.key", "strait keygen"]),
        (|text| text.replace("public_key = \"", "public_key = \"AAAA"), &["the public key"]),
        (|text| text.clone() + &text[text.find("[[peer]]").unwrap()..], &["same public key", "line"]),
        (
            |text| {
                text + "[[peer]]\npublic_key = \"11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\"\nallowed_ips = [\"10.77.0.2/32\"]\n"
            },
            &["10.77.0.2/32", "line"],
        ),
        (|text| text + "[link]\nup = \"0bit\"\n", &["up = \"0bit\"", "rate"]),
        (
            |text| {
                text + "[[compress]]\nfrom = \"10.0.0.0/8\"\nto = \"10.0.0.0/8\"\ndomain = \"x\"\ncodec = \"zst-3\"\n"
            },
            &["zst-3", "zstd"],
        ),
        (|text| text.replace("[node]", "[node"), &["changed.toml:1:"]),
    ];
    for (change, words) in mistakes {
        let file = changed(&pair, change);
        let (code, said) = up(&pair, &file);
        assert_eq!(code, Some(1), "{said}");
        for word in words {
            assert!(said.contains(word), "{word} is not in:\n{said}");
        }
    }
    assert_untouched(&pair);
}

#[test]
fn a_private_key_that_others_may_read() {
    if !allowed() {
        return;
    }
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    fs::set_permissions(pair.sites[0].key_file(), fs::Permissions::from_mode(0o644)).unwrap();
    let (code, said) = up(&pair, &changed(&pair, |text| text));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("chmod 600"), "{said}");
}

#[test]
fn a_system_without_tun() {
    if !allowed() {
        return;
    }
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let empty = pair.dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let script = format!("mount --bind {} /dev/net && exec \"$@\"", empty.display());
    let by = ["unshare", "--mount", "sh", "-c", &script, "sh"];
    let (code, said) = up_by(&pair, &by, program(), &changed(&pair, |text| text));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("/dev/net/tun") && said.contains("modprobe tun"), "{said}");
    assert_untouched(&pair);
}

#[test]
fn a_user_without_privileges() {
    if !allowed() {
        return;
    }
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    // Everything that an ordinary user needs but for the privilege: the program, the files, an open device.
    let (folder, copy) = (pair.sites[0].folder(), pair.dir.path().join("strait"));
    fs::copy(program(), &copy).unwrap();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    open(&copy);
    open(pair.dir.path());
    let file = changed(&pair, |text| text);
    for path in [folder, &file, &pair.sites[0].key_file()] {
        std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).unwrap();
    }
    let tun = pair.dir.path().join("tun");
    let script = format!(
        "mknod {0} c 10 200 && chmod 666 {0} && mount --bind {0} /dev/net/tun && \
         exec setpriv --reuid=65534 --regid=65534 --clear-groups -- \"$@\"",
        tun.display()
    );
    let by = ["unshare", "--mount", "sh", "-c", &script, "sh"];
    let (code, said) = up_by(&pair, &by, &copy, &file);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("root") && said.contains("CAP_NET_ADMIN"), "{said}");
    assert_untouched(&pair);
}

#[test]
fn an_interface_that_is_taken() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    pair.start(0, Extra::default());
    // Another port, so that nothing but the interface is in the way.
    let file = changed(&pair, |text| text.replace("51820\n", "51821\n"));
    let (code, said) = up(&pair, &file);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("strait0"), "{said}");
    assert_eq!(pair.peer(0)["name"], "site-b");
}
