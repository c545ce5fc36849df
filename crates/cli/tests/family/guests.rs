//! The guests that are booted here.

use std::net::IpAddr;

use strait_scheduler::Rate;
use strait_testbed::{Guest, LinkSpec, TwoHosts, Workdir, sandbox};
use strait_testdata::Kernel;

use crate::case::{Case, Mode};
use crate::kernel;

/// Every kernel that can be booted here.
pub(crate) fn kernels() -> Vec<Kernel> {
    if sandbox::allows_tests() { strait_testdata::kernels() } else { Vec::new() }
}

/// One of them: that with IP-TFS, or Debian's.
pub(crate) fn kernel_here(iptfs: bool) -> Option<Kernel> {
    strait_testdata::kernel(iptfs).filter(|_| sandbox::allows_tests())
}

/// Whether a kernel knows everything that a case needs.
pub(crate) fn knows(kernel: &Kernel, case: Case) -> bool {
    kernel.iptfs || !matches!(case.mode, Mode::Aggfrag(_))
}

/// A guest behind a link, ready for cases.
pub(crate) struct Place {
    pub(crate) guest: Guest,
    pub(crate) hosts: TwoHosts,
    /// For what daemons need.
    pub(crate) dir: Workdir,
}

impl Place {
    /// Boots `kernel`; to the guest `neighbours` are behind the link.
    pub(crate) fn boot(kernel: &Kernel, neighbours: &[IpAddr]) -> Place {
        // Fast enough not to matter.
        let hosts = TwoHosts::direct(LinkSpec::thin(Rate::from_bits(200_000_000).unwrap())).unwrap();
        let dir = Workdir::create().unwrap();
        let mut guest =
            Guest::start(&kernel.path, &hosts.link, neighbours, &dir.path().join("console")).unwrap();
        guest.run(&kernel::preparation()).unwrap();
        Place { guest, hosts, dir }
    }
}
