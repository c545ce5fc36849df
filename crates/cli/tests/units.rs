//! The units in `packaging`: systemd understands all of each, and none of them has rights that its program does not need.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use strait_testbed::Workdir;
use strait_testdata::skip::{Need, skip};

/// The units, and the most exposure that `systemd-analyze security` may find (0.0 to 10.0): packaging/README.md has that of the first.
const UNITS: [(&str, f64); 3] =
    [("strait@.service", 1.7), ("strait-broker@.service", 1.4), ("strait-directory@.service", 1.4)];

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

/// What `systemd-analyze` says, and whether it found nothing to say.
fn analyze(arguments: &[&str], unit: &Path) -> (bool, String) {
    let output = Command::new("systemd-analyze").args(arguments).arg(unit).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.success(), said)
}

fn is_here() -> bool {
    let asked = Command::new("systemd-analyze").arg("--version").output();
    asked.is_ok_and(|output| output.status.success()) || skip(Need::Programs, "no systemd-analyze")
}

#[test]
fn systemd_understands_the_units_and_finds_them_closed() {
    if !is_here() {
        return;
    }
    let dir = Workdir::create().unwrap();
    for (name, most) in UNITS {
        // The programs are not installed here; of a unit whose program is missing, that is all that is said.
        let text = fs::read_to_string(packaging().join(name)).unwrap();
        let text: String = text
            .lines()
            .map(|line| match line.strip_prefix("ExecStart=/usr/bin/strait") {
                Some(rest) => format!("ExecStart=/bin/true{}\n", &rest[rest.find(' ').unwrap()..]),
                None => format!("{line}\n"),
            })
            .collect();
        let file = dir.path().join(name);
        fs::write(&file, text).unwrap();
        let instance = file.with_file_name(name.replace('@', "@x"));
        let (good, said) = analyze(&["verify", "--man=no", "--recursive-errors=no"], &instance);
        assert!(good && !said.contains(name.split('@').next().unwrap()), "{name}: {said}");
        let (_, said) = analyze(&["security", "--offline=true"], &file);
        let exposure = said.split("exposure level for ").nth(1).and_then(|rest| rest.split(' ').nth(1));
        let exposure: f64 = exposure.unwrap().parse().unwrap();
        assert!(exposure <= most, "{name}: exposure {exposure}\n{said}");
    }
}

#[test]
fn every_unit_is_checked_and_in_the_readme() {
    let readme = fs::read_to_string(packaging().join("README.md")).unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir(packaging()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".service") {
            assert!(readme.contains(&format!("| `{name}` |")), "{name}");
            found.push(name);
        }
    }
    found.sort();
    let mut checked = UNITS.map(|(name, _)| name.to_owned());
    checked.sort();
    assert_eq!(found, checked);
}
