//! Where the programs of the other tunnels are, or how they get there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use strait_testbed::Namespace;
use strait_testbed::outside::{SshdProgram, unpack, versions};

use super::way::PeerWay;
use crate::error::Error;
use crate::stage::BenchSetup;
use crate::wireguard::{WireguardSearch, find};

/// Names in a package's folder of programs.
const FOLDERS: [&str; 2] = ["usr/sbin", "usr/bin"];
/// What Debian calls the packages, and the libraries of theirs that a system without them may lack.
const OPENVPN: [&str; 7] = [
    "openvpn",
    "liblzo2-2",
    "libpkcs11-helper1",
    "libnl-3-200",
    "libnl-genl-3-200",
    "libcap-ng0",
    "liblz4-1",
];
const TINC: [&str; 2] = ["tinc", "liblzo2-2"];
/// What crates.io calls boringtun's program.
const BORINGTUN: &str = "boringtun-cli";
/// Tunnels that are not measured, and why.
const ABSENT: [(&str, &str); 1] = [(
    "EasyTier",
    "the release that crates.io has, 2.0.3, knows no compression, and needs protoc to be built",
)];
/// The kernel of Debian's package `user-mode-linux`, which looks for its modules where that puts them.
const KERNEL: &str = "linux.uml";

/// A program that carries one of the ways or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerProgramKind {
    WireGuardGo,
    BoringTun,
    OpenVpn,
    Tinc,
    Kernel,
    Ssh,
}

impl PeerProgramKind {
    const ALL: [PeerProgramKind; 6] = [
        PeerProgramKind::WireGuardGo,
        PeerProgramKind::BoringTun,
        PeerProgramKind::OpenVpn,
        PeerProgramKind::Tinc,
        PeerProgramKind::Kernel,
        PeerProgramKind::Ssh,
    ];

    const fn name(self) -> &'static str {
        match self {
            PeerProgramKind::WireGuardGo => "wireguard-go",
            PeerProgramKind::BoringTun => "boringtun",
            PeerProgramKind::OpenVpn => "OpenVPN",
            PeerProgramKind::Tinc => "tinc",
            PeerProgramKind::Kernel => "Linux",
            PeerProgramKind::Ssh => "ssh",
        }
    }

    /// Looks for it, and installs it where it is not; `cache` is the folder of what was installed for benchmarks.
    fn find(self, setting: &BenchSetup) -> Result<PeerProgram, String> {
        let cache = |name: &str| setting.cache.with_file_name(name);
        match self {
            PeerProgramKind::WireGuardGo => match find(&setting.cache) {
                WireguardSearch::Here { program, version } => {
                    Ok(PeerProgram { program, libraries: Vec::new(), version })
                }
                WireguardSearch::Missing(why) => Err(why),
            },
            PeerProgramKind::BoringTun => boringtun(&cache("boringtun")),
            PeerProgramKind::OpenVpn => debian("openvpn", &OPENVPN, &cache("openvpn")),
            PeerProgramKind::Tinc => debian("tincd", &TINC, &cache("tinc")),
            PeerProgramKind::Kernel => look(KERNEL, &places(&cache(KERNEL)), &cache(KERNEL))
                .ok_or_else(|| format!("no {KERNEL} (scripts/setup test)")),
            PeerProgramKind::Ssh => {
                SshdProgram::find(&cache("openssh"))?;
                let version = versions(&[("ssh", "-V")]);
                if version.is_empty() {
                    return Err("there is no ssh".to_owned());
                }
                Ok(PeerProgram { program: PathBuf::from("ssh"), libraries: Vec::new(), version })
            }
        }
    }
}

/// A program that is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerProgram {
    pub(super) program: PathBuf,
    /// Folders of libraries that were unpacked with it.
    libraries: Vec<PathBuf>,
    /// What it calls itself.
    version: String,
}

impl PeerProgram {
    /// A command of it on `host`.
    pub(super) fn command(&self, host: &Namespace) -> Command {
        let mut command = host.command(&self.program);
        if let Ok(libraries) = std::env::join_paths(&self.libraries)
            && !libraries.is_empty()
        {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }
}

/// All programs.
#[derive(Clone, Debug)]
pub(crate) struct PeerPrograms {
    pub(super) strait: PathBuf,
    others: Vec<(PeerProgramKind, Result<PeerProgram, String>)>,
}

impl PeerPrograms {
    /// Looks for all that are wanted, and installs what is not there.
    pub(super) fn find(setting: &BenchSetup) -> Result<PeerPrograms, Error> {
        let strait = setting.program.clone();
        if !strait.is_file() {
            return Err(Error::NoProgram(strait));
        }
        let is_wanted = |kind: &PeerProgramKind| {
            let mut ways = PeerWay::ALL.into_iter().filter(|way| way.is_asked_for(&setting.tunnels));
            ways.any(|way| way.program() == Some(*kind))
        };
        let wanted = PeerProgramKind::ALL.into_iter().filter(is_wanted);
        Ok(PeerPrograms { strait, others: wanted.map(|kind| (kind, kind.find(setting))).collect() })
    }

    /// None but Strait.
    #[cfg(test)]
    pub(super) const fn without_others(strait: PathBuf) -> PeerPrograms {
        PeerPrograms { strait, others: Vec::new() }
    }

    /// The one of this kind, if it is here.
    pub(super) fn of(&self, wanted: PeerProgramKind) -> Option<&PeerProgram> {
        self.others.iter().find(|(kind, _)| *kind == wanted).and_then(|(_, found)| found.as_ref().ok())
    }

    /// Whether a way can be measured.
    pub(super) fn has(&self, way: PeerWay) -> bool {
        way.program().is_none_or(|kind| self.of(kind).is_some())
    }

    /// What each of those that were asked for is and how it is set, and what is missing and why.
    pub(super) fn notes(&self, asked: &[PeerWay]) -> Vec<String> {
        let strait = said(&self.strait, &["--version"], &[]).unwrap_or_default();
        let mut notes = vec![format!("versions: {strait}")];
        for (kind, found) in &self.others {
            notes.push(match found {
                Ok(program) => format!("versions: {} is {}", kind.name(), program.version),
                Err(why) => format!("{} is left out: {why}", kind.name()),
            });
        }
        let ways = PeerWay::ALL.into_iter().filter(|way| self.has(*way) && way.is_asked_for(asked));
        notes.extend(ways.map(|way| format!("{}: {}", way.name(), way.options())));
        if asked.is_empty() {
            notes.extend(ABSENT.map(|(name, why)| format!("{name} is not measured: {why}")));
        }
        notes
    }
}

/// Of a Debian package: where systems install it, or unpacked in `cache`.
fn debian(name: &str, packages: &[&str], cache: &Path) -> Result<PeerProgram, String> {
    if let Some(found) = look(name, &places(cache), cache) {
        return Ok(found);
    }
    unpack(packages, cache).map_err(|error| format!("{name} is not installed, and {error}"))?;
    look(name, &places(cache), cache)
        .ok_or_else(|| format!("{name} is not installed, and the one of Debian's package does not start"))
}

fn boringtun(cache: &Path) -> Result<PeerProgram, String> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo/bin"));
    let places: Vec<PathBuf> = places(cache).into_iter().chain(home).chain([cache.join("bin")]).collect();
    if let Some(found) = look(BORINGTUN, &places, cache) {
        return Ok(found);
    }
    eprintln!("  installing {BORINGTUN} into {}", cache.display());
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--quiet", BORINGTUN, "--root"]).arg(cache).stdin(Stdio::null());
    let status = cargo.status().map_err(|error| format!("`cargo install {BORINGTUN}`: {error}"))?;
    look(BORINGTUN, &places, cache)
        .ok_or_else(|| format!("`cargo install {BORINGTUN}` ended with {status}, and there is no program"))
}

/// The folders of the search path, of an administrator's programs, and of what was unpacked.
fn places(cache: &Path) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = FOLDERS.map(|folder| Path::new("/").join(folder));
    let unpacked = FOLDERS.map(|folder| cache.join(folder));
    std::env::split_paths(&path).chain(system).chain(unpacked).collect()
}

/// The first one that says what it is.
fn look(name: &str, places: &[PathBuf], cache: &Path) -> Option<PeerProgram> {
    places.iter().map(|place| place.join(name)).filter(|program| program.is_file()).find_map(|program| {
        let libraries = if program.starts_with(cache) { libraries(cache) } else { Vec::new() };
        let version = said(&program, &["--version"], &libraries)?;
        Some(PeerProgram { program, libraries, version })
    })
}

/// Folders of libraries below a folder where packages were unpacked.
fn libraries(cache: &Path) -> Vec<PathBuf> {
    let below = |folder: &str| fs::read_dir(cache.join(folder)).into_iter().flatten().flatten();
    let folders = ["lib", "usr/lib"].into_iter().flat_map(below).map(|entry| entry.path());
    folders.filter(|path| path.to_string_lossy().ends_with("-linux-gnu")).collect()
}

/// The first line that a program says, whatever its exit code: OpenVPN's is not 0.
fn said(program: &Path, arguments: &[&str], libraries: &[PathBuf]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    if !libraries.is_empty() {
        command.env("LD_LIBRARY_PATH", std::env::join_paths(libraries).ok()?);
    }
    let output = command.output().ok()?;
    let line = String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned();
    // What it was built with is of no use in a table.
    let line = line.split(" [").next().unwrap_or_default().to_owned();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use strait_testbed::Workdir;

    use super::*;

    fn program(folder: &Path, name: &str, says: &str) {
        fs::create_dir_all(folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\necho '{says}'\nexit 1\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn an_unpacked_program_is_found_with_its_libraries() {
        let dir = Workdir::create().unwrap();
        let (cache, name) = (dir.path(), "tunnel-of-nobody");
        assert_eq!(look(name, &places(cache), cache), None);
        program(&cache.join("usr/sbin"), name, "OpenVPN 2.6.14 x86_64 [SSL] [LZO]");
        fs::create_dir_all(cache.join("usr/lib/x86_64-linux-gnu")).unwrap();
        fs::create_dir_all(cache.join("usr/lib/other")).unwrap();
        let found = look(name, &places(cache), cache).unwrap();
        assert_eq!(found.version, "OpenVPN 2.6.14 x86_64");
        assert_eq!(found.libraries, [cache.join("usr/lib/x86_64-linux-gnu")]);
    }

    #[test]
    fn what_is_missing_is_named_with_its_reason_and_what_is_here_with_its_settings() {
        let here = PeerProgram { program: "p".into(), libraries: Vec::new(), version: "tinc 1.0".into() };
        let programs = PeerPrograms {
            strait: "/nonexistent".into(),
            others: vec![
                (PeerProgramKind::Tinc, Ok(here)),
                (PeerProgramKind::OpenVpn, Err("no package".into())),
            ],
        };
        let notes = programs.notes(&[]);
        assert!(notes.contains(&"OpenVPN is left out: no package".to_owned()), "{notes:?}");
        assert!(notes.contains(&"versions: tinc is tinc 1.0".to_owned()), "{notes:?}");
        assert!(notes.iter().any(|note| note.starts_with("tinc, lzo: ")), "{notes:?}");
        assert!(!notes.iter().any(|note| note.starts_with("OpenVPN, lz4: ")), "{notes:?}");
        let asked = programs.notes(&[PeerWay::TincZlib]);
        assert!(asked.iter().any(|note| note.starts_with("tinc, zlib: ")), "{asked:?}");
        assert!(
            !asked.iter().any(|note| note.starts_with("tinc, lzo: ") || note.starts_with("EasyTier")),
            "{asked:?}"
        );
        assert!(programs.has(PeerWay::Plain) && programs.has(PeerWay::TincZlib));
        assert!(!programs.has(PeerWay::OpenVpn) && !programs.has(PeerWay::Ssh));
    }
}
