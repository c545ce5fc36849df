//! A peer that is known by name: found at the start, and found again where the name leads when it is silent.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use strait_testbed::{Extra, Site, TwoHosts, Workdir};

use crate::pair::{Family, Pair, allowed, fast, program};

/// A program that runs the real one with a hosts file of its own.
fn with_hosts_file(dir: &Workdir) -> (PathBuf, PathBuf) {
    let (hosts, script) = (dir.path().join("hosts"), dir.path().join("strait"));
    let program = program().display();
    fs::write(
        &script,
        format!(
            "#!/bin/sh\nexec unshare --mount --propagation private sh -c 'mount --bind {} /etc/hosts && exec {program} \
             \"$@\"' sh \"$@\"\n",
            hosts.display()
        ),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    (hosts, script)
}

/// The configuration of the caller, who knows the other by name.
fn by_name(pair: &Pair) -> PathBuf {
    let (site, peer) = (&pair.sites[0], &pair.sites[1]);
    let text = site.configuration(&[peer], Extra::default());
    write(site, &text.replace(&peer.outside.ip().to_string(), "site-b.example"))
}

/// The configuration of the other, who can only be called.
fn without_endpoint(pair: &Pair) -> PathBuf {
    let (site, peer) = (&pair.sites[1], &pair.sites[0]);
    let text = site.configuration(&[peer], Extra::default());
    write(site, &text.replace(&format!("endpoint = \"{}\"\n", peer.outside), ""))
}

fn write(site: &Site, text: &str) -> PathBuf {
    let path = site.folder().join("strait.toml");
    fs::write(&path, text).unwrap();
    path
}

fn point(hosts: &Path, address: &str) {
    fs::write(hosts, format!("127.0.0.1 localhost\n{address} site-b.example\n")).unwrap();
}

#[test]
fn a_name_is_looked_up_again_when_its_owner_is_silent() {
    if !allowed() {
        return;
    }
    let dir = Workdir::create().unwrap();
    let (hosts_file, script) = with_hosts_file(&dir);
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let elsewhere = dir.path().join("sites");
    fs::create_dir(&elsewhere).unwrap();
    let old = pair.hosts.address_of_b().0;
    point(&hosts_file, &old.to_string());
    pair.sites = Site::pair(&script, &pair.hosts, &elsewhere).unwrap();
    let other = pair.sites[1].start(&without_endpoint(&pair), "run").unwrap();
    pair.daemons[1] = Some(other);
    pair.daemons[0] = Some(pair.sites[0].start(&by_name(&pair), "run").unwrap());
    pair.wait_for_session();
    pair.tcp(1, Family::V4, 50_000);

    // The other moves while it is not running, so it cannot tell; only the name can.
    pair.kill(1);
    let end = &pair.hosts.link.b;
    end.remove_address(old, 24).unwrap();
    end.add_address("198.18.0.60".parse().unwrap(), 24).unwrap();
    point(&hosts_file, "198.18.0.60");
    pair.daemons[1] = Some(pair.sites[1].start(&without_endpoint(&pair), "run").unwrap());
    pair.tcp(1, Family::V4, 50_000);
    assert_eq!(pair.peer(0)["endpoint"], "198.18.0.60:51820");
}
