//! What people log in with.

use strait_testbed::outside;

/// A program for logins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoginWay {
    /// `strait login`, or `strait ssh` below a program that uses ssh.
    Strait,
    /// `ssh`.
    Ssh,
    /// `ssh -C`.
    Compressed,
    /// `mosh`.
    Mosh,
}

impl LoginWay {
    /// In the order of the columns and of runs.
    pub(super) const ALL: [LoginWay; 4] =
        [LoginWay::Strait, LoginWay::Ssh, LoginWay::Compressed, LoginWay::Mosh];

    pub(super) const fn name(self) -> &'static str {
        match self {
            LoginWay::Strait => "Strait",
            LoginWay::Ssh => "ssh",
            LoginWay::Compressed => "ssh -C",
            LoginWay::Mosh => "mosh",
        }
    }

    /// The programs that it needs on this machine.
    pub(super) const fn programs(self) -> &'static [&'static str] {
        match self {
            LoginWay::Strait => &["script"],
            LoginWay::Ssh | LoginWay::Compressed => &["script", "ssh"],
            LoginWay::Mosh => &["script", "mosh-client", "mosh-server"],
        }
    }

    /// Why it cannot be measured here, if a program is lacking.
    pub(super) fn missing(self) -> Option<String> {
        let lacking = self.programs().iter().find(|program| !outside::has(program))?;
        Some(format!("{} is left out: there is no {lacking}", self.name()))
    }
}

/// What the compared programs call themselves, each that is there.
pub(super) fn versions() -> String {
    outside::versions(&[
        ("ssh", "-V"),
        ("mosh-server", "--version"),
        ("rsync", "--version"),
        ("git", "--version"),
    ])
}
