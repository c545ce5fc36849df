//! `strait send`, `get`, `ls` and `sync` between the daemons of two hosts.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use strait_testbed::{Extra, LinkSpec, TwoHosts, program_with_mounts};
use strait_testdata::skip::{Need, skip};

use crate::pair::{Pair, allowed, fast, program};

/// Bytes that do not compress.
pub(crate) fn noise(length: usize, seed: u32) -> Vec<u8> {
    let mut state = u64::from(seed) * 2 + 1;
    let next = move |_| {
        // SplitMix64 (Steele, Lea, Flood 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u8::try_from((mixed ^ (mixed >> 31)) & 0xff).unwrap()
    };
    (0..length).map(next).collect()
}

/// A folder with one of everything that is sent.
pub(crate) fn tree(at: &Path) {
    fs::create_dir_all(at.join("deep/er")).unwrap();
    fs::write(at.join("empty"), "").unwrap();
    fs::write(at.join("text"), "a line of text that repeats itself\n".repeat(9_000)).unwrap();
    fs::write(at.join("deep/noise"), noise(3_000_000, 1)).unwrap();
    fs::write(at.join("deep/er/run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(at.join("deep/er/run"), Permissions::from_mode(0o750)).unwrap();
    fs::write(at.join(OsStr::from_bytes(b"not \xff UTF-8\n")), "x").unwrap();
    symlink("deep/noise", at.join("link")).unwrap();
    fs::hard_link(at.join("text"), at.join("second")).unwrap();
    let sparse = File::create(at.join("sparse")).unwrap();
    sparse.set_len(9 << 20).unwrap();
    sparse.write_all_at(b"in the middle", 5 << 20).unwrap();
    for number in 0..300 {
        fs::write(at.join(format!("deep/small-{number}")), format!("number {number}")).unwrap();
    }
}

/// Everything that has to be the same at both ends: by path, mode, time and content.
fn snapshot(at: &Path) -> BTreeMap<Vec<u8>, (u32, i64, Vec<u8>)> {
    fn walk(at: &Path, below: &Path, found: &mut BTreeMap<Vec<u8>, (u32, i64, Vec<u8>)>) {
        for entry in fs::read_dir(at.join(below)).unwrap() {
            let name = entry.unwrap().file_name();
            if name.as_bytes().starts_with(b".strait") {
                continue;
            }
            let path = below.join(name);
            let metadata = fs::symlink_metadata(at.join(&path)).unwrap();
            let content = match metadata.file_type() {
                kind if kind.is_symlink() => {
                    fs::read_link(at.join(&path)).unwrap().into_os_string().into_vec()
                }
                kind if kind.is_file() => fs::read(at.join(&path)).unwrap(),
                _ => Vec::new(),
            };
            let time = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
            found.insert(path.as_os_str().as_bytes().to_vec(), (metadata.mode(), time, content));
            if metadata.is_dir() {
                walk(at, &path, found);
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(at, Path::new(""), &mut found);
    found
}

pub(crate) fn same(one: &Path, other: &Path) {
    let (one, other) = (snapshot(one), snapshot(other));
    let names = |all: &BTreeMap<Vec<u8>, _>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other));
    for (path, entry) in &one {
        assert!(*entry == other[path], "{} differs", path.escape_ascii());
    }
}

/// The rights of the first site.
const READ_AND_WRITE: &str = "read = [\"site-a\"]\nwrite = [\"site-a\"]\n";

/// Two sites; the second has a folder `inbox` that the first may read and write, and `secret` that it may not.
pub(crate) struct Offices {
    pub(crate) pair: Pair,
    pub(crate) inbox: PathBuf,
    pub(crate) here: PathBuf,
    node: &'static str,
}

impl Offices {
    pub(crate) fn new(link: LinkSpec, more: &str) -> Offices {
        let mut offices = Offices::without_second(link);
        offices.start_second(more);
        offices
    }

    /// The second has no daemon yet.
    pub(crate) fn without_second(link: LinkSpec) -> Offices {
        Offices::with_nodes(link, "")
    }

    /// As that, with lines in the sections of both nodes.
    fn with_nodes(link: LinkSpec, node: &'static str) -> Offices {
        let mut pair = Pair::idle(TwoHosts::direct(link).unwrap());
        let folder = |name: &str| {
            let folder = pair.dir.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        };
        let (inbox, secret, here) = (folder("inbox"), folder("secret"), folder("here"));
        fs::write(secret.join("f"), "secret").unwrap();
        pair.start(0, Extra { node, ..Extra::default() });
        Offices { pair, inbox, here, node }
    }

    /// Starts the daemon of the second, with `more` in the section of its inbox; files in it are root's.
    pub(crate) fn start_second(&mut self, more: &str) {
        self.start_with(&format!("owner = \"root\"\n{READ_AND_WRITE}{more}"));
    }

    /// The same, but files in the inbox are its owner's.
    fn start_with(&mut self, more: &str) {
        let sections = format!(
            "[[folder]]\nname = \"inbox\"\npath = \"{}\"\n{more}\n\
             [[folder]]\nname = \"secret\"\npath = \"{}\"\n",
            self.inbox.display(),
            self.pair.dir.path().join("secret").display()
        );
        self.pair.start(1, Extra { node: self.node, sections: &sections, ..Extra::default() });
        self.pair.wait_for_session();
    }

    /// Begins to send what waits in the outbox of the first site.
    pub(crate) fn sender(&self) -> Ending {
        let mut command = self.pair.daemon(0).command(&["outbox"]);
        Ending(command.arg(self.config()).arg("--run").spawn().unwrap())
    }

    /// The configuration of the first site.
    pub(crate) fn config(&self) -> PathBuf {
        self.pair.sites[0].folder().join("strait.toml")
    }

    /// States of the transfers in the outbox of the first site.
    pub(crate) fn outbox(&self, all: &[&str]) -> Vec<String> {
        let config = self.config();
        let listed = self.good(&[&["outbox", config.to_str().unwrap(), "--json"], all].concat());
        let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
        listed.iter().map(|one| one["state"].as_str().unwrap().to_owned()).collect()
    }

    /// A command at a site.
    pub(crate) fn run(&self, site: usize, arguments: &[&OsStr]) -> Output {
        let mut command = self.pair.daemon(site).command(&[]);
        command.args(arguments).current_dir(&self.here).output().unwrap()
    }

    /// A command at the first site that has to end well: what it said.
    pub(crate) fn good(&self, arguments: &[&str]) -> String {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        let output = self.run(0, &arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}\n{}", self.pair.logs());
        String::from_utf8(output.stdout).unwrap()
    }

    /// A command that has to fail with this code: what it complained of.
    pub(crate) fn bad(&self, site: usize, code: i32, arguments: &[&str]) -> String {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        let output = self.run(site, &arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}\n{}", self.pair.logs());
        error
    }
}

/// A process that is killed at the end.
pub(crate) struct Ending(pub(crate) Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_folder_is_sent_listed_got_back_and_kept_in_step() {
    if !allowed() {
        return;
    }
    let offices = Offices::new(fast(), "");
    let (source, there) = (offices.here.join("source"), offices.inbox.join("source"));
    tree(&source);
    offices.good(&["send", "source", "site-b"]);
    same(&source, &there);
    assert_eq!(
        fs::metadata(there.join("text")).unwrap().ino(),
        fs::metadata(there.join("second")).unwrap().ino()
    );
    assert!(fs::metadata(there.join("sparse")).unwrap().blocks() * 512 < 1 << 20, "holes stay holes");

    let listed = offices.good(&["ls", "site-b:inbox/source", "--recursive", "--json"]);
    assert_eq!(listed.lines().count(), snapshot(&source).len(), "{listed}");
    assert_eq!(offices.good(&["ls", "site-b:", "--json"]).lines().count(), 1);
    let file = offices.good(&["ls", "site-b:inbox/source/text"]);
    assert!(file.lines().count() == 1 && file.ends_with(" text\n"), "{file}");
    offices.good(&["get", "site-b:inbox/source/text"]);
    assert!(fs::read(offices.here.join("text")).unwrap() == fs::read(source.join("text")).unwrap());
    let missing = offices.bad(0, 1, &["get", "site-b:inbox/none", "."]);
    assert!(missing.contains("`strait ls site-b:` lists its folders"), "{missing}");
    let refused = offices.bad(0, 2, &["sync", "source/text", "site-b"]);
    assert!(refused.contains("source/text is not a folder"), "{refused}");
    assert!(refused.contains("strait send source/text site-b"), "{refused}");

    fs::create_dir(offices.here.join("back")).unwrap();
    offices.good(&["get", "site-b:inbox/source", "back"]);
    same(&source, &offices.here.join("back/source"));

    fs::remove_file(source.join("link")).unwrap();
    fs::write(source.join("deep/er/run"), "#!/bin/sh\ntrue\n").unwrap();
    fs::write(source.join("new"), "new").unwrap();
    let before = snapshot(&there);
    offices.good(&["sync", "source", "site-b:inbox/source", "--delete", "--dry-run"]);
    assert!(snapshot(&there) == before, "a dry run changes nothing");
    offices.good(&["sync", "source", "site-b:inbox/source", "--delete"]);
    same(&source, &there);
}

#[test]
fn a_folder_with_nothing_in_it_removes_nothing_unless_that_is_asked_for() {
    if !allowed() {
        return;
    }
    let offices = Offices::new(fast(), "");
    fs::create_dir(offices.here.join("source")).unwrap();
    let there = offices.inbox.join("source");
    for name in ["deep", "deep/er"] {
        fs::create_dir_all(there.join(name)).unwrap();
        fs::write(there.join(name).join("file"), name).unwrap();
    }
    let before = snapshot(&there);
    let sync = ["sync", "source", "site-b:inbox/source", "--delete"];
    let refused = |more: &[&str]| {
        let said = offices.bad(0, 1, &[&sync, more].concat());
        assert!(said.contains("nothing to send in source/") && said.contains("--allow-empty"), "{said}");
        assert!(snapshot(&there) == before, "{more:?}");
    };
    // As a mount point is without its disk.
    refused(&[]);
    refused(&["--dry-run"]);
    let left_out = ["socket", "object.o"].map(|name| offices.here.join("source").join(name));
    drop(UnixListener::bind(&left_out[0]).unwrap());
    fs::write(&left_out[1], "").unwrap();
    refused(&["--exclude", "*.o"]);
    left_out.iter().for_each(|path| fs::remove_file(path).unwrap());
    offices.good(&[&sync[..], &["--allow-empty"]].concat());
    assert!(fs::read_dir(&there).unwrap().next().is_none());
}

#[test]
fn an_empty_mount_point_of_fstab_removes_nothing_unless_that_is_asked_for() {
    if !allowed() || !(Path::new("/etc/fstab").exists() || skip(Need::Programs, "no /etc/fstab")) {
        return;
    }
    let offices = Offices::new(fast(), "");
    let (here, disk) = (offices.here.join("source/disk"), offices.inbox.join("source/disk"));
    fs::create_dir_all(&here).unwrap();
    fs::create_dir_all(&disk).unwrap();
    fs::write(disk.join("file"), "on the disk").unwrap();
    let (fstab, wrapper) =
        (offices.pair.dir.path().join("fstab"), offices.pair.dir.path().join("strait-with-fstab"));
    fs::write(&fstab, format!("/dev/sdb1 {} ext4 nofail 0 2\n", here.display())).unwrap();
    program_with_mounts(program(), &wrapper, &format!("mount --bind '{}' /etc/fstab", fstab.display()))
        .unwrap();
    let sync = |more: &[&str]| {
        let usual = offices.pair.daemon(0).command(&["sync", "source", "site-b:inbox/source", "--delete"]);
        let mut command = offices.pair.hosts.a.command(&wrapper);
        command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.args(usual.get_args()).args(more).current_dir(&offices.here).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = sync(&[]);
    assert!(
        code == Some(1) && said.contains("nothing is mounted on this mount point of /etc/fstab"),
        "{said}"
    );
    assert!(disk.join("file").exists());
    let (code, said) = sync(&["--allow-empty"]);
    assert!(code == Some(0) && !disk.join("file").exists(), "{said}");
}

#[test]
fn a_file_that_is_like_another_costs_what_is_new() {
    if !allowed() {
        return;
    }
    let offices = Offices::new(fast(), "");
    let old = noise(3_000_000, 1);
    let new = [&old[..1_000_000], &noise(700, 2), &old[1_000_100..2_000_000], &old[2_100_000..]].concat();
    fs::write(offices.here.join("v1"), &old).unwrap();
    fs::write(offices.here.join("v2"), &new).unwrap();
    let wire = |arguments: &[&str]| {
        let before = offices.pair.hosts.link.traffic().unwrap();
        offices.good(arguments);
        offices.pair.hosts.link.traffic().unwrap().since(before).bytes()
    };
    let whole = wire(&["send", "v1", "site-b"]);
    assert!(whole > 3_000_000, "{whole}");
    // Ids of 180 chunks of 8 bytes, those of fine chunks in what differs, 700 bytes, headers and the stream's handshake.
    let like = wire(&["send", "v2", "site-b", "--like", "v1"]);
    assert!(like < 60_000, "{like} of {whole}");
    assert!(fs::read(offices.inbox.join("v2")).unwrap() == new);
    assert!(fs::read(offices.inbox.join("v1")).unwrap() == old);
    // Under its own name it needs no other.
    fs::write(offices.here.join("v1"), &new).unwrap();
    let same = wire(&["send", "v1", "site-b"]);
    assert!(same < 60_000, "{same} of {whole}");
    assert!(fs::read(offices.inbox.join("v1")).unwrap() == new);
    for (file, like) in [("v1", "../v1"), (".", "v1"), ("-", "v1")] {
        offices.bad(0, 2, &["send", file, "site-b:inbox/x", "--like", like]);
    }
}

#[test]
fn the_next_version_of_what_was_kept_costs_what_differs_in_both_directions() {
    if !allowed() {
        return;
    }
    // Text, of which one line in a hundred differs in a few bytes.
    let text = |word: &str| -> Vec<u8> {
        let noise = noise(1_000_000, 9);
        let line = |(number, bytes): (usize, &[u8])| {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{number} {hex} {}\n", if number % 100 == 50 { word } else { "as before" })
        };
        noise.chunks(25).enumerate().map(line).collect::<String>().into_bytes()
    };
    // What the second of two versions costs, sent and got.
    let cost = |node: &'static str| {
        let mut offices = Offices::with_nodes(fast(), node);
        offices.start_second("");
        let (here, there) = (offices.here.join("f"), offices.inbox.join("f"));
        let wire = |from: &Path, to: &Path, word: &str, arguments: &[&str]| {
            fs::write(from, text(word)).unwrap();
            let before = offices.pair.hosts.link.traffic().unwrap();
            offices.good(arguments);
            assert!(fs::read(to).unwrap() == fs::read(from).unwrap());
            offices.pair.hosts.link.traffic().unwrap().since(before).bytes()
        };
        let send = |word| wire(&here, &there, word, &["send", "f", "site-b"]);
        let get = |word| wire(&there, &here, word, &["get", "site-b:inbox/f", "."]);
        let sent = [send("one"), send("second")][1];
        [sent, [get("the third"), get("and the fourth")][1]]
    };
    let (kept, plain) = (cost("keep_sent = \"64MiB\""), cost(""));
    // The stream's handshake is some 5 kB of it; by ids each of 400 places costs a fine chunk and the ids around it.
    let less = |(kept, plain): (&u64, &u64)| *kept < 30_000 && *kept * 3 < *plain;
    assert!(kept.iter().zip(&plain).all(less), "{kept:?} of {plain:?}");
    println!("{kept:?} of {plain:?}");
}

#[test]
fn a_peer_reaches_no_folder_that_does_not_name_it() {
    if !allowed() {
        return;
    }
    let offices = Offices::new(fast(), "");
    fs::write(offices.here.join("f"), "f").unwrap();
    let refused = offices.bad(0, 1, &["get", "site-b:secret/f", "."]);
    assert!(refused.contains("no such folder"), "{refused}");
    offices.bad(0, 1, &["send", "f", "site-b:secret"]);
    // The first site has no folders at all.
    let none = offices.bad(1, 3, &["send", "f", "site-a"]);
    assert!(none.contains("no [[folder]]"), "{none}");
    assert_eq!(fs::read(offices.here.join("f")).unwrap(), b"f");
    let unknown = offices.bad(0, 1, &["send", "f", "site-c"]);
    assert!(unknown.contains("site-c"), "{unknown}");
}

/// Removes all that is in a folder.
fn empty(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
}

/// The output of a command, without what measures time and the link.
fn heard(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let lines = said.lines().map(|line| line.split_once(" in ").map_or(line, |(what, _)| what));
    format!("{:?} {}", output.status.code(), lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn who_may_only_write_sees_the_same_by_every_command_whatever_is_there() {
    if !allowed() {
        return;
    }
    let mut offices = Offices::without_second(fast());
    offices.start_with("owner = \"root\"\nwrite = [\"site-a\"]\n");
    let inbox = &offices.inbox;
    for (file, content) in [("same/salary.txt", "alice"), ("new/salary.txt/deep", "1"), ("new/f", "2")] {
        let path = offices.here.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::create_dir(offices.here.join("empty")).unwrap();
    let commands: [&[&str]; 14] = [
        &["ls", "site-b:"],
        &["ls", "site-b:inbox"],
        &["ls", "site-b:inbox/salary.txt"],
        &["get", "site-b:inbox/salary.txt", "."],
        &["send", "same/salary.txt", "site-b"],
        &["send", "same/salary.txt", "site-b", "--like", "salary.txt"],
        &["send", "new/f", "site-b:inbox/salary.txt"],
        &["send", "new", "site-b:inbox/salary.txt/deep"],
        &["sync", "same", "site-b:inbox"],
        &["sync", "new", "site-b:inbox"],
        &["sync", "new", "site-b:inbox", "--dry-run"],
        &["sync", "empty", "site-b:inbox", "--delete", "--allow-empty"],
        &["sync", "empty", "site-b:inbox", "--delete", "--allow-empty", "--dry-run"],
        &["sync", "empty", "site-b:inbox/salary.txt"],
    ];
    for command in commands {
        let said = [true, false].map(|is_there| {
            empty(inbox);
            if is_there {
                fs::write(inbox.join("salary.txt"), "alice").unwrap();
            }
            let said = heard(&offices.run(0, &command.iter().map(OsStr::new).collect::<Vec<_>>()));
            assert!(!is_there || inbox.join("salary.txt").exists(), "{command:?}: it was removed");
            said
        });
        println!("{command:?}: {}", said[0]);
        assert_eq!(said[0], said[1], "{command:?}");
    }
}

#[test]
fn a_reload_gives_and_takes_leave() {
    if !allowed() {
        return;
    }
    let offices = Offices::new(fast(), "");
    fs::write(offices.here.join("f"), "f").unwrap();
    offices.good(&["send", "f", "site-b"]);
    let site = &offices.pair.sites[1];
    let config = site.folder().join("strait.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("write = [\"site-a\"]", "write = []")).unwrap();
    assert!(offices.pair.daemon(1).reload().unwrap().contains("folders changed"));
    let refused = offices.bad(0, 1, &["send", "f", "site-b"]);
    assert!(refused.contains("not allowed"), "{refused}");
    offices.good(&["get", "site-b:inbox/f", "."]);
    fs::write(&config, text).unwrap();
    offices.pair.daemon(1).reload().unwrap();
    offices.good(&["send", "f", "site-b"]);
}

#[test]
fn what_serves_a_peer_has_no_privilege_and_acts_as_the_folders_owner() {
    if !allowed() {
        return;
    }
    let mut offices = Offices::without_second(fast());
    // Their parents belong to root alone otherwise.
    for folder in [offices.pair.dir.path(), &offices.inbox] {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    if chown(&offices.inbox, Some(65_534), Some(65_534)).is_err() {
        return;
    }
    offices.start_with(READ_AND_WRITE);
    fs::write(offices.here.join("f"), noise(400_000, 3)).unwrap();
    let mut sending = offices.pair.daemon(0).command(&["send", "f", "site-b", "--max-rate", "400kbit"]);
    let mut sending = sending.current_dir(&offices.here).spawn().unwrap();
    let mut worker = None;
    crate::pair::eventually("the stream has a process", || {
        worker = offices.pair.file_workers(1).pop();
        worker.is_some()
    });
    let status = format!("/proc/{}/status", worker.unwrap());
    let mut said = String::new();
    crate::pair::eventually("it acts as another user, and its calls are filtered", || {
        said = fs::read_to_string(&status).unwrap_or_default();
        said.contains("Uid:\t65534\t65534\t65534\t65534") && said.contains("Seccomp:\t2")
    });
    assert!(said.contains("CapEff:\t0000000000000000") && said.contains("NoNewPrivs:\t1"), "{said}");
    assert!(sending.wait().unwrap().success(), "{}", offices.pair.logs());
    let metadata = fs::metadata(offices.inbox.join("f")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid(), metadata.len()), (65_534, 65_534, 400_000));
}

#[test]
fn a_folder_that_is_swapped_for_a_link_or_another_folder_is_not_served() {
    if !allowed() {
        return;
    }
    let mut offices = Offices::without_second(fast());
    let [theirs, target, old] =
        ["theirs", "target", "theirs/old"].map(|name| offices.pair.dir.path().join(name));
    for folder in [&theirs, &target] {
        fs::create_dir(folder).unwrap();
    }
    fs::set_permissions(offices.pair.dir.path(), Permissions::from_mode(0o755)).unwrap();
    fs::write(target.join("shadow"), "root only").unwrap();
    fs::set_permissions(&target, Permissions::from_mode(0o700)).unwrap();
    offices.inbox = theirs.join("inbox");
    fs::create_dir(&offices.inbox).unwrap();
    if [&theirs, &offices.inbox].iter().any(|it| chown(it, Some(65_534), Some(65_534)).is_err()) {
        return;
    }
    offices.start_with(READ_AND_WRITE);
    fs::write(offices.here.join("f"), noise(3_000, 3)).unwrap();
    offices.good(&["send", "f", "site-b:inbox/before"]);

    // Its owner swaps it all the time, as fast as the machine can.
    let swapping = AtomicBool::new(true);
    let (inbox, swapping) = (&offices.inbox, &swapping);
    let swaps = thread::scope(|scope| {
        let swapper = scope.spawn(move || {
            let mut swaps = 0;
            while swapping.load(Ordering::Relaxed) || swaps < 1_000 {
                fs::rename(inbox, &old).unwrap();
                symlink(&target, inbox).unwrap();
                thread::yield_now();
                fs::remove_file(inbox).unwrap();
                fs::rename(&old, inbox).unwrap();
                swaps += 1;
            }
            swaps
        });
        for number in 0..20 {
            let to = format!("site-b:inbox/during-{number}");
            let mut sent = offices.pair.daemon(0).command(&["send", "f", &to]);
            sent.current_dir(&offices.here).output().unwrap();
            let mut got = offices.pair.daemon(0).command(&["get", "site-b:inbox/shadow", "got"]);
            let got = got.current_dir(&offices.here).output().unwrap();
            assert!(!got.status.success(), "{got:?}");
        }
        swapping.store(false, Ordering::Relaxed);
        swapper.join().unwrap()
    });
    assert!(swaps >= 1_000);
    let target = offices.pair.dir.path().join("target");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 1, "nothing was written outside");
    assert!(!offices.here.join("got").exists());

    // And another folder of the owner's is another one.
    fs::rename(&offices.inbox, theirs.join("old")).unwrap();
    fs::create_dir(&offices.inbox).unwrap();
    chown(&offices.inbox, Some(65_534), Some(65_534)).unwrap();
    offices.bad(0, 1, &["send", "f", "site-b:inbox/after"]);
    assert!(offices.pair.logs().contains("another folder is at"), "{}", offices.pair.logs());
    assert_eq!(fs::read_dir(&offices.inbox).unwrap().count(), 0);
    offices.pair.daemon(1).reload().unwrap();
    offices.good(&["send", "f", "site-b:inbox/after"]);
    assert_eq!(fs::metadata(offices.inbox.join("after")).unwrap().uid(), 65_534);
}

#[test]
fn a_folder_of_roots_is_served_only_where_the_file_says_so() {
    if !allowed() {
        return;
    }
    let mut offices = Offices::without_second(fast());
    offices.start_with(READ_AND_WRITE);
    fs::write(offices.here.join("f"), "x").unwrap();
    offices.bad(0, 1, &["send", "f", "site-b"]);
    assert!(offices.pair.logs().contains("owner = \"root\""), "{}", offices.pair.logs());
    assert_eq!(fs::read_dir(&offices.inbox).unwrap().count(), 0);
}

#[test]
fn standard_input_arrives_and_the_folder_runs_its_command() {
    if !allowed() {
        return;
    }
    let on_receive =
        "on_receive = [\"/bin/sh\", \"-c\", \"tr '\\\\0' '\\\\n' > ../told; mv ../told ../names\"]";
    let offices = Offices::new(fast(), on_receive);
    let content = noise(2_000_000, 5);
    fs::write(offices.here.join("in"), &content).unwrap();
    let input = File::open(offices.here.join("in")).unwrap();
    let mut command = offices.pair.daemon(0).command(&["send", "-", "site-b:inbox/from-a-pipe"]);
    assert!(command.stdin(input).status().unwrap().success(), "{}", offices.pair.logs());
    assert!(fs::read(offices.inbox.join("from-a-pipe")).unwrap() == content);
    let names = offices.pair.dir.path().join("names");
    crate::pair::eventually("the command was told of the file", || {
        fs::read(&names).is_ok_and(|names| names == b"from-a-pipe\n")
    });
    // A program that fails before it writes anything takes nothing away.
    let input = || File::open("/dev/null").unwrap();
    let mut command = offices.pair.daemon(0).command(&["send", "-", "site-b:inbox/from-a-pipe"]);
    let output = command.stdin(input()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("--allow-empty"), "{said}");
    assert!(fs::read(offices.inbox.join("from-a-pipe")).unwrap() == content);
    let mut command = offices.pair.daemon(0).command(&["send", "-", "site-b:inbox/empty", "--allow-empty"]);
    assert!(command.stdin(input()).status().unwrap().success(), "{}", offices.pair.logs());
    assert_eq!(fs::read(offices.inbox.join("empty")).unwrap(), b"");
}

#[test]
fn what_is_sent_to_a_peer_that_is_away_waits_and_arrives_once_although_its_sender_is_killed() {
    if !allowed() {
        return;
    }
    let mut offices = Offices::without_second(fast());
    let source = offices.here.join("source");
    tree(&source);
    let said = offices.bad(0, 4, &["send", "source", "site-b", "--max-rate", "4Mbit", "--expire", "1d"]);
    assert!(
        said.contains("site-b is away: the transfer waits in the outbox") && said.contains("--run"),
        "{said}"
    );
    assert_eq!(offices.outbox(&[]), ["waiting"]);
    let sender = offices.sender();

    offices.start_second("on_receive = [\"/bin/sh\", \"-c\", \"echo >> ../told\"]");
    // Of 3 MB that take 6 s, some are there.
    crate::pair::eventually("the transfer has begun", || {
        size(&offices.inbox.join(".strait-partial")) > 300_000
    });
    let config = offices.config();
    let second = offices.bad(0, 1, &["outbox", config.to_str().unwrap(), "--run"]);
    assert!(second.contains("already"), "{second}");
    drop(sender);
    assert!(!offices.inbox.join("source/deep/noise").exists());
    assert_eq!(offices.outbox(&[]), ["waiting"]);

    let _sender = offices.sender();
    crate::pair::eventually("the transfer has left the outbox", || offices.outbox(&[]).is_empty());
    assert_eq!(offices.outbox(&["--all"]), ["delivered"]);
    same(&source, &offices.inbox.join("source"));
    let told = offices.pair.dir.path().join("told");
    crate::pair::eventually("the command ran", || told.exists());
    assert_eq!(fs::read_to_string(told).unwrap(), "\n", "it is delivered once");
}

/// Bytes of the files below a folder; none where there is no folder.
pub(crate) fn size(at: &Path) -> u64 {
    let entries = fs::read_dir(at).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}
