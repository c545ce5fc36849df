//! The outbox as its user sees it, beside daemons of two hosts.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use strait_testbed::{Extra, TwoHosts, children};

use crate::files::{Ending, Offices, noise, size};
use crate::pair::{Pair, allowed, eventually, fast, program};

impl Offices {
    /// What `strait outbox --json` lists at the first site.
    fn listed(&self) -> Vec<Value> {
        let config = self.config();
        serde_json::from_str(&self.good(&["outbox", config.to_str().unwrap(), "--json"])).unwrap()
    }
}

#[test]
fn a_copy_is_sent_from_where_the_files_are_gone_and_keeps_to_the_bytes_of_a_day() {
    if !allowed() {
        return;
    }
    let mut offices = Offices::without_second(fast());
    fs::create_dir_all(offices.here.join("a/b")).unwrap();
    let content = noise(2_500_000, 1);
    fs::write(offices.here.join("a/b/noise"), &content).unwrap();
    fs::write(offices.here.join("a/left.o"), "out").unwrap();
    fs::write(offices.here.join("large"), noise(9_000_000, 2)).unwrap();
    let said = offices.bad(0, 4, &["send", "a", "site-b", "--spool", "--exclude", "*.o"]);
    assert!(said.contains("site-b is away"), "{said}");
    let day = ["send", "large", "site-b:inbox/far", "--spool", "--max-bytes", "5MB", "--priority", "bulk"];
    offices.bad(0, 4, &day);
    for (wrong, flag) in [("--max-bytes", "1MB"), ("--spool", "--xattrs")] {
        offices.bad(0, 2, &["send", "a", "site-b", wrong, flag]);
    }
    fs::remove_dir_all(offices.here.join("a")).unwrap();
    fs::remove_file(offices.here.join("large")).unwrap();

    let _sender = offices.sender();
    offices.start_second("");
    eventually("the copy has left the outbox", || offices.listed().len() == 1);
    assert!(fs::read(offices.inbox.join("a/b/noise")).unwrap() == content);
    assert!(!offices.inbox.join("a/left.o").exists());
    eventually("the day's bytes are used up", || {
        let one = &offices.listed()[0];
        one["note"] == "the bytes of this day are used up"
            && one["state"] == "waiting"
            && one["spooled"] == true
    });
    let sent = offices.pair.hosts.link.traffic().unwrap().bytes();
    // Both transfers, and what datagrams, handshakes and answers add.
    assert!((7_400_000..9_500_000).contains(&sent), "{sent} bytes crossed the link");
    assert!(!offices.inbox.join("far/large").exists());
    // Three files of the copy that is left: contents, manifest, and the lock.
    let outbox = fs::read_dir(spool(&offices)).unwrap().count();
    assert_eq!(outbox, 3, "the copy of what is delivered is removed");
}

#[test]
fn what_the_receiver_has_no_room_for_waits_with_its_copy_until_there_is_room() {
    if !allowed() {
        return;
    }
    let mut offices = Offices::without_second(fast());
    let content = noise(1_500_000, 1);
    fs::write(offices.here.join("only"), &content).unwrap();
    offices.bad(0, 4, &["send", "only", "site-b", "--spool"]);
    fs::remove_file(offices.here.join("only")).unwrap();
    let hog = offices.inbox.join("hog");
    fs::write(&hog, noise(1_900_000, 2)).unwrap();
    offices.start_second("max_bytes = \"2MB\"");
    let _sender = offices.sender();
    eventually("the list says what stands in the way", || {
        let one = &offices.listed()[0];
        one["note"].as_str().unwrap().contains("only: beyond the limit of the folder")
    });
    let one = &offices.listed()[0];
    assert!(one["state"] == "waiting" && one["spooled"] == true, "{one}");
    assert_eq!(fs::read_dir(spool(&offices)).unwrap().count(), 3, "contents, manifest, and the lock");
    fs::remove_file(hog).unwrap();
    eventually("it is tried again, and arrives", || offices.listed().is_empty());
    assert!(fs::read(offices.inbox.join("only")).unwrap() == content);
    assert_eq!(offices.outbox(&["--all"]), ["delivered"]);
}

/// The folder of copies in the only outbox of the first site.
fn spool(offices: &Offices) -> PathBuf {
    let state = find(offices.pair.dir.path(), "outbox").unwrap();
    let only = fs::read_dir(state).unwrap().next().unwrap().unwrap().path();
    only.join("spool")
}

/// A folder of this name, wherever it is below.
fn find(at: &Path, name: &str) -> Option<PathBuf> {
    let folders = fs::read_dir(at).ok()?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    let mut folders: Vec<PathBuf> = folders.collect();
    folders.sort();
    let here = folders.iter().find(|path| path.ends_with(name)).cloned();
    here.or_else(|| folders.iter().find_map(|path| find(path, name)))
}

#[test]
fn how_far_a_transfer_is_stands_in_the_list_and_not_on_the_disk() {
    if !allowed() {
        return;
    }
    let mut offices = Offices::without_second(fast());
    fs::write(offices.here.join("secret-name"), noise(9_000_000, 1)).unwrap();
    offices.bad(0, 4, &["send", "secret-name", "site-b", "--max-rate", "3Mbit"]);
    let sender = offices.sender();
    offices.start_second("");
    eventually("the list has how far it is", || {
        let one = &offices.listed()[0];
        let far = &one["progress"];
        one["state"] == "sending"
            && far["moved_bytes"].as_u64() > Some(0)
            && far["announced_bytes"] == 9_000_000
            && far["bytes_per_second"].as_u64() > Some(0)
            && far["seconds_left"].as_u64() > Some(0)
    });
    let config = offices.config();
    let table = offices.good(&["outbox", config.to_str().unwrap()]);
    assert!(table.contains("sending") && table.contains("of 9.00 MB") && table.contains("left"), "{table}");
    let live = spool(&offices).with_file_name("live");
    let told = fs::read(live.join("progress")).unwrap();
    assert!(!told.windows(6).any(|part| part == b"secret" || part == b"progre"), "it is encrypted");
    // A process that was killed says nothing more.
    drop(sender);
    let one = &offices.listed()[0];
    assert!(one["state"] == "waiting" && one["progress"].is_null(), "{one}");
    let id = one["id"].as_str().unwrap();
    offices.good(&["outbox", config.to_str().unwrap(), "--cancel", &id[..8]]);
    assert_eq!(offices.good(&["outbox", config.to_str().unwrap(), "--watch"]), "nothing waits\n");
}

#[test]
fn a_send_whose_node_is_lost_waits_in_the_outbox_and_goes_on_from_there() {
    if !allowed() {
        return;
    }
    let mut offices = Offices::new(fast(), "");
    let size = 6_000_000;
    fs::write(offices.here.join("f"), noise(size, 1)).unwrap();
    let lose = |offices: &mut Offices| {
        let mut command = offices.pair.daemon(0).command(&["send", "f", "site-b", "--max-rate", "8Mbit"]);
        command.current_dir(&offices.here).stderr(Stdio::piped());
        let sending = command.spawn().unwrap();
        let (partial, before) =
            (offices.inbox.join(".strait-partial"), offices.pair.hosts.link.traffic().unwrap());
        eventually("half of it has passed", || {
            let passed = offices.pair.hosts.link.traffic().unwrap().since(before).bytes();
            partial.exists() && passed > size as u64 / 2
        });
        offices.pair.kill(0);
        let ended = sending.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(4), "{said}");
        assert!(said.contains("site-b was lost meanwhile: the transfer waits in the outbox as "), "{said}");
        offices.pair.start(0, Extra::default());
        offices.pair.wait_for_session();
    };
    lose(&mut offices);
    assert_eq!(offices.outbox(&[]), ["waiting"]);
    // It goes on as a command too, which takes it out, and begins where the other was lost.
    let before = offices.pair.hosts.link.traffic().unwrap();
    offices.good(&["send", "f", "site-b"]);
    let passed = offices.pair.hosts.link.traffic().unwrap().since(before).bytes();
    assert!(passed < size as u64 * 3 / 4, "{passed}");
    assert_eq!(offices.outbox(&[]), [""; 0]);
    // And by itself.
    fs::write(offices.here.join("f"), noise(size, 2)).unwrap();
    lose(&mut offices);
    let before = offices.pair.hosts.link.traffic().unwrap();
    let _sender = offices.sender();
    let sent = fs::read(offices.here.join("f")).unwrap();
    eventually("it arrives", || fs::read(offices.inbox.join("f")).is_ok_and(|there| there == sent));
    let passed = offices.pair.hosts.link.traffic().unwrap().since(before).bytes();
    assert!(passed < size as u64 * 3 / 4, "{passed}");
    eventually("nothing waits", || offices.outbox(&[]).is_empty());
}

#[test]
fn a_folders_command_runs_after_a_daemon_was_killed_in_it() {
    if !allowed() {
        return;
    }
    let told = "cat > ../told.$$; echo begun >> ../begun; while [ ! -e ../go ]; do sleep 0.05; done; \
                mv ../told.$$ ../names; echo ended >> ../ended";
    let command = format!("on_receive = [\"/bin/sh\", \"-c\", \"{told}\"]");
    let mut offices = Offices::new(fast(), &command);
    fs::write(offices.here.join("f"), "f").unwrap();
    fs::write(offices.here.join("g"), "g").unwrap();
    offices.good(&["send", "f", "g", "site-b"]);
    let outside = offices.pair.dir.path().to_owned();
    let lines = move |name: &str| fs::read_to_string(outside.join(name)).unwrap_or_default().lines().count();
    eventually("the command runs", || lines("begun") == 1);
    // The sender has heard that all is done, and the command has not ended: all that serves is killed, from the inside out.
    let daemon = offices.pair.daemon(1).pid();
    let service = child(daemon, "strait-service");
    let worker = child(service, "strait-files");
    let run = children(worker).unwrap();
    assert_eq!(run.len(), 1, "{run:?}");
    kill(worker);
    run.iter().for_each(|(_, process)| kill(*process));
    offices.pair.kill(1);
    fs::write(offices.pair.dir.path().join("go"), "").unwrap();
    assert_eq!(lines("ended"), 0);
    offices.start_second(&command);
    eventually("the command has run to its end", || lines("ended") == 1);
    let names = fs::read(offices.pair.dir.path().join("names")).unwrap();
    assert_eq!(names, b"f\0g\0");
    assert_eq!(lines("begun"), 2);
    eventually("nothing is owed any more", || !offices.inbox.join(".strait-partial").exists());
    // And not again at the next start.
    offices.pair.kill(1);
    offices.start_second(&command);
    let list = ["ls", "site-b:inbox"].map(std::ffi::OsStr::new);
    eventually("it serves", || offices.run(0, &list).status.success());
    assert_eq!((lines("begun"), lines("ended"), size(&offices.inbox.join(".strait-partial"))), (2, 1, 0));
}

/// The only child of a process that has this name.
fn child(of: u32, name: &str) -> u32 {
    let all = children(of).unwrap();
    all.iter().find(|(its, _)| its == name).unwrap_or_else(|| panic!("no {name} in {all:?}")).1
}

fn kill(process: u32) {
    let ended = Command::new("kill").args(["-KILL", &process.to_string()]).status().unwrap();
    assert!(ended.success());
}

/// A host where root runs a daemon, and a user who is a member of its group.
struct SharedHost {
    pair: Pair,
    /// Where every user can go, unlike the folder of a test.
    place: PathBuf,
    /// The user's home; none where the user of the tests may not become another.
    home: Option<PathBuf>,
}

impl Drop for SharedHost {
    fn drop(&mut self) {
        let _ = self.output(false, &["down"]);
        let _ = fs::remove_dir_all(&self.place);
    }
}

impl SharedHost {
    fn new() -> SharedHost {
        let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
        let place = std::env::temp_dir().join(format!("strait-member-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
        fs::copy(program(), place.join("strait")).unwrap();
        let home = place.join("home");
        fs::create_dir(&home).unwrap();
        let home = std::os::unix::fs::chown(&home, Some(65_533), Some(1)).is_ok().then_some(home);
        SharedHost { pair, place, home }
    }

    fn command(&self, member: bool, arguments: &[&str]) -> Command {
        let home = self.home.as_ref().unwrap();
        let mut command = self.pair.hosts.a.command(if member { "setpriv" } else { "env" });
        if member {
            // The group 1 is `daemon` on every Linux.
            command.args(["--reuid", "65533", "--regid", "1", "--clear-groups"]);
            command.env_remove("STRAIT_STATE_DIR").env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
        } else {
            command.env("STRAIT_STATE_DIR", self.pair.dir.path().join("state"));
        }
        command.arg(self.place.join("strait")).args(arguments).current_dir(home).stdin(Stdio::null());
        command.env("STRAIT_RUNTIME_DIR", self.place.join("run")).env("HOME", home);
        command
    }

    /// The exit code of a command, and all that it said.
    fn output(&self, member: bool, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(member, arguments).output().unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    }
}

#[test]
fn a_member_of_the_group_has_an_outbox_that_goes_over_roots_daemon() {
    if !allowed() {
        return;
    }
    let host = SharedHost::new();
    let Some(home) = &host.home else { return };
    let inbox = host.pair.dir.path().join("inbox");
    fs::create_dir(&inbox).unwrap();
    fs::write(home.join("report"), "figures\n".repeat(10_000)).unwrap();
    let [near, far] = &host.pair.sites;
    let extra = Extra { node: "group = \"daemon\"", ..Extra::default() };
    let file = near.configure("strait", &[far], extra).unwrap();
    let (file, log) = (file.to_str().unwrap(), host.place.join("log"));
    let (code, said) = host.output(false, &["up", file, "--log-file", log.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    assert_ne!(host.output(true, &["check", file]).0, Some(0), "the configuration is root's alone");

    let (code, said) = host.output(true, &["send", "report", "site-b"]);
    assert!(code == Some(4) && said.contains("`strait outbox --run`"), "{said}");
    let state = home.join(".local/state/strait");
    for (path, mode) in [("", 0o700), ("outbox.key", 0o600)] {
        let found = fs::metadata(state.join(path)).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{path}");
    }
    let (code, said) = host.output(true, &["outbox"]);
    assert!(code == Some(0) && said.contains("waiting") && said.contains("site-b"), "{said}");
    let _sender = Ending(host.command(true, &["outbox", "--run"]).spawn().unwrap());
    let sections = format!(
        "[[folder]]\nname = \"inbox\"\npath = \"{}\"\nwrite = [\"site-a\"]\nowner = \"root\"\n",
        inbox.display()
    );
    let config = far.configure("strait", &[near], Extra { sections: &sections, ..Extra::default() }).unwrap();
    let _second = far.start(&config, "run").unwrap();
    eventually("the transfer has left the outbox", || {
        host.output(true, &["outbox"]).1.contains("nothing waits")
    });
    assert_eq!(fs::read(inbox.join("report")).unwrap(), fs::read(home.join("report")).unwrap());
    let (_, all) = host.output(true, &["outbox", "--all"]);
    assert!(all.contains("delivered"), "{all}");
}
