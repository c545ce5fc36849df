//! PAM (Linux-PAM, pam(3)): whether an account may log in, its credentials, and its session.
//!
//! The library is loaded when it is needed, so that the program runs where there is none (`library`). The conversation answers nothing:
//! a peer has proved its key, and no module may ask it for a password. What modules have to say is kept for the person (`conversation`).

use std::ffi::{CStr, CString, OsStr, c_int};
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use conversation::{Conversation, Said};
use library::{Handle, Library};

use crate::services::TimeLimit;

mod conversation;
mod library;

/// The name of the service, and of its file.
const SERVICE: &CStr = c"strait";
/// Where that file may be (pam.d(5)).
const FOLDERS: [&str; 3] = ["/etc/pam.d/strait", "/usr/lib/pam.d/strait", "/usr/etc/pam.d/strait"];

// _pam_types.h
const PAM_SUCCESS: c_int = 0;
const PAM_SILENT: c_int = 0x8000;
const PAM_ESTABLISH_CRED: c_int = 2;
const PAM_DELETE_CRED: c_int = 4;
const PAM_TTY: c_int = 3;
const PAM_RHOST: c_int = 4;
const PAM_RUSER: c_int = 8;
/// Variables that modules may set, and bytes of each.
const VARIABLES_MAX: usize = 256;
const VARIABLE_MAX: usize = 16 << 10;

/// Why an account may not log in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PamError {
    /// No library.
    #[error("PAM cannot be loaded ({0}); install libpam, without which no account can be given")]
    NoLibrary(String),
    /// No file that says what modules there are.
    #[error("there is no /etc/pam.d/strait; copy packaging/pam.d/strait there")]
    NoService,
    /// A module said no.
    #[error("{step}: {reason}")]
    Refused {
        /// Which call.
        step: &'static str,
        /// What PAM says of it, and what its modules said.
        reason: String,
    },
    /// The time limit could not be set.
    #[error("no time limit for PAM: {0}")]
    Limit(#[source] io::Error),
}

/// Returns true if there is a file that says what modules give an account.
pub(super) fn has_service() -> bool {
    FOLDERS.iter().any(|file| Path::new(file).is_file())
}

/// An account's session with PAM; dropped, it is closed.
pub(super) struct PamSession {
    library: Library,
    handle: Handle,
    /// Where the conversation writes to; the library has a pointer to it.
    said: Box<Said>,
    /// What has to be undone.
    has_credentials: bool,
    is_open: bool,
    last: c_int,
    limit: Duration,
}

/// For whom a session is.
#[derive(Clone, Copy, Debug)]
pub(super) struct PamLogin<'a> {
    pub(super) account: &'a str,
    /// The address that the person comes from. A name would be asked of name servers by the library that audits logins, which takes longer
    /// than a login may where these do not answer.
    pub(super) from: IpAddr,
    /// The terminal, such as `/dev/pts/3`, if there is one.
    pub(super) terminal: Option<&'a Path>,
    /// How long modules may take before this process is killed.
    pub(super) limit: Duration,
}

impl PamSession {
    /// Has the modules decide whether the account may log in, without a session. A module that takes longer than the limit costs
    /// this process.
    pub(super) fn check(login: PamLogin<'_>) -> Result<(), PamError> {
        let _limit = TimeLimit::set(login.limit).map_err(PamError::Limit)?;
        PamSession::begin(login).map(drop)
    }

    /// Has the modules decide whether the account may log in, and opens its session. `before_credentials` runs between the two. A
    /// module that takes longer than the limit costs this process.
    pub(super) fn open(
        login: PamLogin<'_>,
        before_credentials: impl FnOnce() -> io::Result<()>,
    ) -> Result<PamSession, PamError> {
        let _limit = TimeLimit::set(login.limit).map_err(PamError::Limit)?;
        let mut session = PamSession::begin(login)?;
        let library = session.library;
        before_credentials()
            .map_err(|error| PamError::Refused { step: "the account's groups", reason: error.to_string() })?;
        // SAFETY: as above.
        let result = unsafe { (library.setcred)(session.handle, PAM_ESTABLISH_CRED | PAM_SILENT) };
        session.checked("no credentials for the account", result)?;
        session.has_credentials = true;
        // SAFETY: as above.
        let result = unsafe { (library.open_session)(session.handle, 0) };
        session.checked("no session for the account", result)?;
        session.is_open = true;
        Ok(session)
    }

    /// What both begin with.
    fn begin(login: PamLogin<'_>) -> Result<PamSession, PamError> {
        if !has_service() {
            return Err(PamError::NoService);
        }
        let library = Library::load()?;
        let mut said = Box::<Said>::default();
        let conversation = Conversation::kept_in(&raw mut *said);
        let account = CString::new(login.account).unwrap_or_default();
        let mut handle = std::ptr::null_mut();
        // SAFETY: texts end in zero bytes; the library copies the conversation, whose data is as long there as the handle.
        let last = unsafe {
            (library.start)(SERVICE.as_ptr(), account.as_ptr(), &raw const conversation, &raw mut handle)
        };
        let mut session = PamSession {
            library,
            handle,
            said,
            has_credentials: false,
            is_open: false,
            last,
            limit: login.limit,
        };
        session.checked("PAM", last)?;
        session.item(PAM_RHOST, login.from.to_string().as_bytes())?;
        session.item(PAM_RUSER, b"")?;
        let terminal = login.terminal.map_or(OsStr::new("strait"), Path::as_os_str);
        session.item(PAM_TTY, terminal.as_bytes())?;
        // SAFETY: the handle is that of `start`.
        let result = unsafe { (library.acct_mgmt)(session.handle, 0) };
        session.checked("the account may not log in", result)?;
        Ok(session)
    }

    /// What modules said so far.
    pub(super) fn take_said(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.said.0)
    }

    /// Variables that modules set, as NAME=VALUE.
    pub(super) fn environment(&self) -> Vec<Vec<u8>> {
        // SAFETY: gives an array of texts that ends with a null pointer, all of them this process's to free.
        unsafe {
            let list = (self.library.getenvlist)(self.handle);
            let mut found = Vec::new();
            let mut at = list;
            while !at.is_null() && !(*at).is_null() {
                let text = CStr::from_ptr(*at).to_bytes();
                if found.len() < VARIABLES_MAX && text.len() <= VARIABLE_MAX {
                    found.push(text.to_vec());
                }
                libc::free((*at).cast());
                at = at.add(1);
            }
            libc::free(list.cast());
            found
        }
    }

    fn item(&mut self, item: c_int, value: &[u8]) -> Result<(), PamError> {
        let value = CString::new(value).unwrap_or_default();
        // SAFETY: the text ends in a zero byte, and is copied.
        let result = unsafe { (self.library.set_item)(self.handle, item, value.as_ptr().cast()) };
        self.checked("PAM", result)
    }

    fn checked(&mut self, step: &'static str, result: c_int) -> Result<(), PamError> {
        self.last = result;
        if result == PAM_SUCCESS {
            return Ok(());
        }
        // SAFETY: gives a text that is the library's and stays.
        let text = unsafe { (self.library.strerror)(self.handle, result) };
        let mut reason = if text.is_null() {
            format!("error {result}")
        } else {
            // SAFETY: as above.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        let said = self.take_said();
        let said = String::from_utf8_lossy(&said);
        let lines = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
        if !lines.is_empty() {
            reason = format!("{reason} ({})", lines.join("; "));
        }
        Err(PamError::Refused { step, reason })
    }
}

impl Drop for PamSession {
    fn drop(&mut self) {
        if self.handle.is_null() {
            return;
        }
        let limit = TimeLimit::set(self.limit);
        // SAFETY: the handle is that of `start`, and is not used again.
        unsafe {
            if self.is_open {
                self.last = (self.library.close_session)(self.handle, 0);
            }
            if self.has_credentials {
                self.last = (self.library.setcred)(self.handle, PAM_DELETE_CRED | PAM_SILENT);
            }
            (self.library.end)(self.handle, self.last);
        }
        drop(limit);
    }
}
