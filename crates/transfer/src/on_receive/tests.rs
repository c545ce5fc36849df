use std::path::Path;

use strait_keying::PrivateKey;
use strait_testdata::skip::{Need, skip};

use super::*;
use crate::TransferId;
use crate::scratch::ScratchFolder;

const LIMIT: Duration = Duration::from_secs(60);

fn command(folder: &Path, argv: &[&str], paths: &[&[u8]]) -> ReceiveCommand {
    ReceiveCommand {
        argv: argv.iter().map(|part| (*part).to_owned()).collect(),
        folder: folder.into(),
        name: "inbox".to_owned(),
        owner: (geteuid().as_raw(), getegid().as_raw()),
        owed: OwedCommand {
            transfer: TransferId::from_bytes([3; 16]),
            sender: PrivateKey::generate(&[2; 32]).public(),
            paths: paths.iter().map(|path| path.to_vec()).collect(),
        },
    }
}

/// A program of its own that tells what it was given, because a shell would add to its environment.
const TELL: &[&str] =
    &["sh", "-c", "env -i /bin/true; cat > names; cat /proc/self/environ > environment; pwd > where"];

#[test]
fn it_gets_five_variables_the_folder_and_the_names_on_standard_input() {
    let scratch = ScratchFolder::new();
    let done = command(scratch.path(), TELL, &[b"a b\n$(touch x)", b"--option\xff"]).carry_out(LIMIT);
    assert_eq!(done.end, CommandEnd::Code(0), "{}", done.said);
    let read = |name| std::fs::read(scratch.path().join(name)).unwrap();
    assert_eq!(read("names"), b"a b\n$(touch x)\0--option\xff\0");
    let environment = String::from_utf8(read("environment")).unwrap();
    let mut names: Vec<&str> =
        environment.split('\0').filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // The shell's own.
    names.retain(|name| !["PWD", "OLDPWD", "_", "SHLVL"].contains(name));
    names.sort_unstable();
    assert_eq!(names, ["PATH", "STRAIT_COUNT", "STRAIT_FOLDER", "STRAIT_PEER", "STRAIT_TRANSFER"]);
    let canonical = scratch.path().canonicalize().unwrap();
    assert_eq!(String::from_utf8(read("where")).unwrap().trim(), canonical.to_str().unwrap());
    assert!(!scratch.path().join("x").exists());
}

#[test]
fn arguments_are_not_seen_by_a_shell() {
    let scratch = ScratchFolder::new();
    let done = command(scratch.path(), &["touch", "$(touch x)", "a;b", "*"], &[]).carry_out(LIMIT);
    assert_eq!(done.end, CommandEnd::Code(0));
    for name in ["$(touch x)", "a;b", "*"] {
        assert!(scratch.path().join(name).exists(), "{name}");
    }
    assert!(!scratch.path().join("x").exists());
}

#[test]
fn how_it_failed_is_told_with_the_end_of_what_it_said() {
    let scratch = ScratchFolder::new();
    let run = |argv: &[&str]| command(scratch.path(), argv, &[]).carry_out(LIMIT);
    let done = run(&["sh", "-c", "yes long | head -c 100000 >&2; echo disk full >&2; exit 7"]);
    assert_eq!((done.end, done.said.len()), (CommandEnd::Code(7), SAID_MAX));
    assert!(
        done.said.ends_with("long\nlodisk full\n") || done.said.ends_with("disk full\n"),
        "{}",
        done.said
    );
    assert_eq!(run(&["sh", "-c", "kill -9 $$"]).end, CommandEnd::Signal(9));
    assert_eq!(run(&["no-such-program-anywhere"]).end, CommandEnd::NotStarted(2));
    assert!(matches!(run(&[]).end, CommandEnd::NotStarted(_)));
}

#[test]
fn a_command_that_does_not_end_is_killed_with_its_children() {
    let scratch = ScratchFolder::new();
    let line = "sleep 1000 & echo $! > child; exec sleep 1000";
    let done = command(scratch.path(), &["sh", "-c", line], &[]).carry_out(Duration::from_millis(500));
    assert_eq!(done.end, CommandEnd::TooLong);
    let child = std::fs::read_to_string(scratch.path().join("child")).unwrap();
    // Gone, or a zombie that its parent has not collected yet. The signal takes effect a moment after the call that sent it.
    let stat = format!("/proc/{}/stat", child.trim());
    while std::fs::read_to_string(&stat).is_ok_and(|state| !state.contains(") Z ")) {
        std::thread::sleep(LOOK);
    }
}

#[test]
fn a_command_that_reads_no_names_is_not_waited_for_in_vain() {
    let scratch = ScratchFolder::new();
    let many = vec![&[b'n'; 1000][..]; 1000];
    assert_eq!(command(scratch.path(), &["true"], &many).carry_out(LIMIT).end, CommandEnd::Code(0));
}

#[test]
fn root_runs_it_as_the_owner_and_no_other_user_can_run_it_as_another() {
    let scratch = ScratchFolder::new();
    if !(geteuid().is_root() || skip(Need::Root, "only root can become another user")) {
        let mut other = command(scratch.path(), &["true"], &[]);
        other.owner.0 += 1;
        assert_eq!(other.carry_out(LIMIT).end, CommandEnd::NotStarted(1));
        return;
    }
    std::os::unix::fs::chown(scratch.path(), Some(65_534), Some(65_534)).unwrap();
    let mut other = command(scratch.path(), &["sh", "-c", "id -u > id; id -G >> id"], &[]);
    other.owner = (65_534, 65_534);
    let done = other.carry_out(LIMIT);
    assert_eq!(done.end, CommandEnd::Code(0), "{}", done.said);
    assert_eq!(std::fs::read_to_string(scratch.path().join("id")).unwrap(), "65534\n65534\n");
}
