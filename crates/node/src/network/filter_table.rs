//! A table of the packet filter that this process alone changes, where the kernel knows owners of tables.

use std::io;

use crate::nftables::{self, NftAttributes, NftVerb, Nftables, table_name};

/// A table and its connection to the packet filter.
#[derive(Debug)]
pub(super) struct FilterTable {
    nftables: Nftables,
    name: String,
    /// Those that an owner takes.
    flags: u32,
    owned: bool,
}

impl FilterTable {
    /// Connects to the packet filter for the table `name`, which is to have `flags`; makes nothing yet.
    ///
    /// # Errors
    /// Where the kernel has no packet filter.
    pub(super) fn open(name: String, flags: u32) -> io::Result<FilterTable> {
        Ok(FilterTable { nftables: Nftables::open()?, name, flags, owned: true })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether there is a table of that name.
    pub(super) fn is_there(&mut self) -> bool {
        self.nftables.has_table(&self.name)
    }

    /// Makes it of these chains and rules, in place of what there is of it.
    ///
    /// # Errors
    /// What the kernel said; what was there before is there still.
    pub(super) fn make(&mut self, content: &[(NftVerb, NftAttributes)]) -> io::Result<()> {
        match self.try_make(content) {
            // Older kernels know no owner. Others can flush the same table without one, and then it is put back.
            Err(error) if self.owned && is_unknown(&error) => {
                self.owned = false;
                self.try_make(content)
            }
            other => other,
        }
    }

    fn try_make(&mut self, content: &[(NftVerb, NftAttributes)]) -> io::Result<()> {
        let mut all = nftables::fresh_table(&self.name, if self.owned { self.flags } else { 0 });
        all.extend_from_slice(content);
        self.nftables.change(&all)
    }

    /// Removes it.
    ///
    /// # Errors
    /// What the kernel said; also that there is none.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        self.nftables.change(&[(NftVerb::DelTable, table_name(&self.name))])
    }

    /// Whether others may remove it unseen.
    pub(super) const fn can_be_flushed(&self) -> bool {
        !self.owned
    }

    /// As on a kernel that knows no owner.
    #[cfg(test)]
    pub(super) const fn forget_owner(&mut self) {
        self.owned = false;
    }
}

/// A flag that this kernel does not know.
fn is_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP))
}
