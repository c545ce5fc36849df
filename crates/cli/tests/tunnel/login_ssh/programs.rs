//! Programs that start `ssh`.

use std::fs;

use super::{Desk, can_run};
use crate::files::noise;

#[test]
fn scp_copies_with_both_of_its_protocols() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let content = noise(2_000_000, 4);
    fs::write(desk.path("file"), &content).unwrap();
    for protocol in ["-O", "-s"] {
        let there = format!("site-b:{}", desk.path("there").display());
        let scp = |from: &str, to: &str| {
            desk.good(desk.command("scp").arg("-F").arg(&desk.config).args([protocol, "-q", from, to]));
        };
        scp("file", &there);
        assert!(fs::read(desk.path("there")).unwrap() == content);
        scp(&there, "back");
        assert!(fs::read(desk.path("back")).unwrap() == content);
        fs::remove_file(desk.path("there")).unwrap();
        fs::remove_file(desk.path("back")).unwrap();
    }
}

#[test]
fn sftp_does_what_a_list_of_commands_says() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let content = noise(1_000_000, 5);
    fs::write(desk.path("file"), &content).unwrap();
    let folder = desk.path("far").display().to_string();
    let batch = format!("mkdir {folder}\ncd {folder}\nput file\nrename file other\nget other back\nls -1\n");
    fs::write(desk.path("batch"), batch).unwrap();
    let said = desk.good(desk.command("sftp").arg("-F").arg(&desk.config).args(["-b", "batch", "site-b"]));
    assert!(said.contains("other"), "{said}");
    assert!(fs::read(desk.path("back")).unwrap() == content);
}

#[test]
fn rsync_brings_a_folder_into_step() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    fs::create_dir_all(desk.path("source/below")).unwrap();
    fs::write(desk.path("source/below/noise"), noise(3_000_000, 6)).unwrap();
    for number in 0..200 {
        fs::write(desk.path(&format!("source/{number}")), "a line\n".repeat(number)).unwrap();
    }
    let there = format!("site-b:{}/", desk.path("copy").display());
    let rsync = || {
        let mut command = desk.command("rsync");
        desk.good(command.args([
            "-a",
            "--checksum",
            "--itemize-changes",
            "-e",
            &desk.ssh_words(),
            "source/",
            &there,
        ]))
    };
    rsync();
    assert!(
        fs::read(desk.path("copy/below/noise")).unwrap()
            == fs::read(desk.path("source/below/noise")).unwrap()
    );
    assert_eq!(rsync(), "", "nothing is left to do");
    fs::write(desk.path("source/below/noise"), noise(3_000_000, 7)).unwrap();
    assert!(rsync().contains("below/noise"));
}

#[test]
fn git_clones_and_pushes() {
    if !can_run() {
        return;
    }
    let desk = Desk::new();
    let git = |arguments: &[&str]| {
        let mut command = desk.command("git");
        command.env("GIT_SSH_COMMAND", desk.ssh_words()).env("GIT_CONFIG_NOSYSTEM", "1");
        command.args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.org",
            "-c",
            "init.defaultBranch=main",
        ]);
        desk.good(command.args(arguments))
    };
    git(&["init", "-q", "--bare", "far.git"]);
    git(&["init", "-q", "first"]);
    fs::write(desk.path("first/noise"), noise(1_000_000, 8)).unwrap();
    git(&["-C", "first", "add", "."]);
    git(&["-C", "first", "commit", "-q", "-m", "one"]);
    let far = format!("site-b:{}", desk.path("far.git").display());
    git(&["-C", "first", "push", "-q", &far, "main"]);
    git(&["clone", "-q", &far, "second"]);
    assert!(fs::read(desk.path("second/noise")).unwrap() == noise(1_000_000, 8));
    fs::write(desk.path("second/more"), "more").unwrap();
    git(&["-C", "second", "add", "."]);
    git(&["-C", "second", "commit", "-q", "-m", "two"]);
    git(&["-C", "second", "push", "-q", "origin", "main"]);
    assert_eq!(git(&["-C", "far.git", "log", "--format=%s", "main"]), "two\none\n");
}
