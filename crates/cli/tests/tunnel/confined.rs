//! What a running node may do, and what others may do with it, as the system tells.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Output};

use strait_testbed::{Extra, TwoHosts, children};

use crate::pair::{Family, Pair, allowed, eventually, fast, program};

/// The file `name` of a process under `/proc`.
fn proc(pid: u32, name: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap()
}

/// The value of a line such as `Uid:` in the file `status` of a process.
fn status(pid: u32, name: &str) -> String {
    let status = proc(pid, "status");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {status}")).trim().to_owned()
}

#[test]
fn keys_of_a_running_node_reach_neither_swap_space_nor_a_core() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    pair.start(0, Extra::default());
    let pid = pair.daemon(0).pid();
    // What is in use, pages of files and those that are shared aside, is locked; and so will be what comes.
    let kilobytes = |name| status(pid, name).trim_end_matches(" kB").parse::<u64>().unwrap();
    let (locked, used) = (kilobytes("VmLck"), kilobytes("RssAnon"));
    // Root of a container may have no right to lift the limit.
    let said =
        fs::read_to_string(pair.daemon(0).log()).unwrap().contains("keys can be written to swap space");
    let has_swap = fs::read_to_string("/proc/swaps").unwrap().lines().count() > 1;
    assert!(locked >= used || said || !has_swap, "{}", proc(pid, "status"));
    let limits = proc(pid, "limits");
    let limit = |name: &str| limits.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let core: Vec<_> = limit("Max core file size").split_whitespace().skip(4).map(str::to_owned).collect();
    assert_eq!(core[..2], ["0", "0"], "{limits}");
}

/// The number of the process called `name` that `pid` started.
pub(crate) fn child(pid: u32, name: &str) -> u32 {
    children(pid).unwrap().into_iter().find(|(found, _)| found == name).map(|(_, child)| child).unwrap()
}

/// True if each of these processes has its program, heap, libraries and stack at other places in memory than all others.
pub(crate) fn have_places_of_their_own(processes: &[u32]) -> bool {
    let mut places = Vec::new();
    for process in processes {
        let maps = proc(*process, "maps");
        for kind in ["/strait", "[heap]", "/libc.so", "[stack]"] {
            places.extend(
                maps.lines()
                    .find(|line| line.contains(kind))
                    .and_then(|line| line.split('-').next())
                    .map(str::to_owned),
            );
        }
    }
    let found = places.len();
    places.sort_unstable();
    places.dedup();
    found == 4 * processes.len() && places.len() == found
}

pub(crate) fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

pub(crate) fn has_ended(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn packets_are_handled_by_a_user_without_rights_after_a_reload_too() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    pair.tcp(1, Family::V4, 50_000);
    pair.daemon(0).reload().unwrap();
    pair.tcp(0, Family::V6, 50_000);
    let pid = pair.daemon(0).pid();
    let none = "0000000000000000";
    for process in [pid, child(pid, "strait-resolver")] {
        for thread in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
            let thread = thread.unwrap().file_name().to_str().unwrap().parse().unwrap();
            assert!(
                status(thread, "Uid").split_whitespace().all(|user| user != "0"),
                "{}",
                status(thread, "Uid")
            );
            assert!(status(thread, "Gid").split_whitespace().all(|group| group != "0"));
            assert_eq!(status(thread, "Groups"), "");
            for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                assert_eq!(status(thread, set), none, "{set}");
            }
            assert_eq!(status(thread, "NoNewPrivs"), "1");
            // 2: a filter (proc(5)). What it refuses, tests of the filter try.
            let filtered = if process == pid { "2" } else { "0" };
            assert_eq!(status(thread, "Seccomp"), filtered, "{}", proc(thread, "comm"));
        }
    }
    // CAP_NET_ADMIN is number 12 (capability.h); it takes no packets.
    let starter = child(pid, "strait-starter");
    assert_eq!(status(starter, "CapEff"), "0000000000001000");
    let opened = fs::read_dir(format!("/proc/{starter}/fd")).unwrap();
    let opened: Vec<_> = opened.filter_map(|fd| fs::read_link(fd.unwrap().path()).ok()).collect();
    assert!(!opened.iter().any(|file| file.ends_with("net/tun")), "{opened:?}");
}

#[test]
fn a_tunnel_without_its_privileged_process_ends_and_says_so() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    pair.daemon(0).signal_starter(9).unwrap();
    eventually("the daemon ends", || pair.daemons[0].as_mut().unwrap().ended().unwrap().is_some());
    let status = pair.daemons[0].as_mut().unwrap().ended().unwrap().unwrap();
    assert_eq!(status.code(), Some(1));
    let said = pair.daemon(0).last_words();
    assert!(said.contains("the privileged process failed"), "{said}");
    assert!(!pair.hosts.a.interfaces().unwrap().contains(&"strait0".to_owned()));
    // What it left behind is found by the next.
    pair.start(0, Extra::default());
    pair.tcp(1, Family::V4, 50_000);
}

#[test]
fn nothing_of_a_daemon_goes_on_once_its_packet_process_is_killed() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    let pid = pair.daemon(0).pid();
    let others = children(pid).unwrap();
    assert_eq!(others.len(), 2, "{others:?}");
    pair.kill(0);
    eventually("the others end", || others.iter().all(|(_, child)| has_ended(*child)));
}

/// Runs `strait` as the unit in `packaging/` does: an ordinary user with one capability, kernel settings that cannot be changed.
fn as_under_the_unit(pair: &Pair, arguments: &[&str]) -> Output {
    let folder = pair.dir.path();
    let set = "-all,+net_admin";
    let script = format!(
        "mount --bind {folder}/tun /dev/net/tun && mount -o bind,ro /proc/sys /proc/sys && exec setpriv --reuid 65534 \
         --regid 65534 --clear-groups --bounding-set={set} --inh-caps={set} --ambient-caps={set} --no-new-privs \
         {folder}/strait \"$@\"",
        folder = folder.display()
    );
    let mut command = pair.hosts.a.command("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]).args(arguments);
    command.env("STRAIT_RUNTIME_DIR", folder.join("unit")).output().unwrap()
}

#[test]
fn an_ordinary_user_with_one_capability_and_fixed_kernel_settings_runs_a_tunnel() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    pair.start(1, Extra::default());
    let file = pair.sites[0].configure("strait", &[&pair.sites[1]], Extra::default()).unwrap();
    let folder = pair.dir.path().to_owned();
    fs::copy(program(), folder.join("strait")).unwrap();
    let shell = |script: &str| {
        let done = Command::new("sh").args(["-ec", script]).current_dir(&folder).status().unwrap();
        assert!(done.success(), "{script}");
    };
    shell("mknod tun c 10 200; chmod 666 tun; chown -R 65534:65534 .; chmod 700 .");
    let log = folder.join("unit.log");
    let (file, log) = (file.to_str().unwrap(), log.to_str().unwrap());
    let up = as_under_the_unit(&pair, &["up", file, "--log-file", log]);
    let said = String::from_utf8_lossy(&up.stdout).into_owned();
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    let pid =
        said.split_once("(process ").and_then(|(_, rest)| rest.split_once(',')).unwrap().0.parse().unwrap();
    pair.tcp(1, Family::V4, 50_000);
    pair.tcp(1, Family::V6, 50_000);
    assert!(as_under_the_unit(&pair, &["reload"]).status.success());
    assert_eq!((status(pid, "CapEff"), status(pid, "Seccomp")), ("0".repeat(16), "2".to_owned()));
    let starter = child(pid, "strait-starter");
    assert_eq!(status(starter, "CapEff"), "0000000000001000");
    assert!(status(starter, "Uid").starts_with("65534"));
    let addresses = pair.hosts.a.command("ip").args(["-6", "address", "show", "strait0"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&addresses.stdout).contains("fe80"), "an idle tunnel is silent");
    assert!(as_under_the_unit(&pair, &["down"]).status.success());
}

#[test]
fn members_of_the_group_may_look_at_the_tunnel_and_no_more() {
    if !allowed() {
        return;
    }
    // Where everybody can go, unlike the folder of a test.
    let folder = std::env::temp_dir().join(format!("strait-group-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(program(), folder.join("strait")).unwrap();
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    // The group 1 is `daemon` on every Linux.
    let extra = Extra { node: "group = \"daemon\"", ..Extra::default() };
    let file = pair.sites[0].configure("strait", &[&pair.sites[1]], extra).unwrap();
    let run = |group: Option<&str>, arguments: &[&str]| {
        let mut command = pair.hosts.a.command(if group.is_some() { "setpriv" } else { "env" });
        if let Some(group) = group {
            command.args(["--reuid", "65533", "--regid", group, "--clear-groups"]);
        }
        let output =
            command.arg(folder.join("strait")).args(arguments).env("STRAIT_RUNTIME_DIR", folder.join("run"));
        let output = output.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let log = folder.join("log");
    let (code, said) = run(None, &["up", file.to_str().unwrap(), "--log-file", log.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    for socket in ["run/strait0.sock", "run-users/strait0.sock"] {
        let found = folder.join(socket).metadata().unwrap();
        let expected = if socket.contains("users") { (1, 0o660) } else { (0, 0o600) };
        assert_eq!((found.gid(), found.mode() & 0o777), expected, "{socket}");
    }
    for arguments in [&["show"][..], &["show", "strait0"], &["show", "strait0", "--json"]] {
        let (code, said) = run(Some("1"), arguments);
        assert!(code == Some(0) && said.contains(pair.sites[1].public_key()), "{said}");
        let (code, said) = run(Some("65533"), arguments);
        assert_ne!(code, Some(0), "{said}");
    }
    for command in ["down", "reload"] {
        assert_ne!(run(Some("1"), &[command, "strait0"]).0, Some(0));
    }
    assert_eq!(run(None, &["down"]).0, Some(0));
    let is_left = |socket: &str| folder.join(socket).exists();
    assert!(!is_left("run-users/strait0.sock") && !is_left("run/strait0.sock"));
    fs::remove_dir_all(&folder).unwrap();
}
