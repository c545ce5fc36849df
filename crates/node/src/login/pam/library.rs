//! Linux-PAM's library: loaded when it is needed, so that the program runs where there is none.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::PamError;
use super::conversation::Conversation;

/// The library's name: Linux-PAM's.
const LIBRARY: &CStr = c"libpam.so.0";

pub(super) type Handle = *mut c_void;

/// The calls of the library.
#[derive(Clone, Copy)]
pub(super) struct Library {
    pub(super) start:
        unsafe extern "C" fn(*const c_char, *const c_char, *const Conversation, *mut Handle) -> c_int,
    pub(super) end: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(super) set_item: unsafe extern "C" fn(Handle, c_int, *const c_void) -> c_int,
    pub(super) acct_mgmt: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(super) setcred: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(super) open_session: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(super) close_session: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(super) getenvlist: unsafe extern "C" fn(Handle) -> *mut *mut c_char,
    pub(super) strerror: unsafe extern "C" fn(Handle, c_int) -> *const c_char,
}

impl Library {
    pub(super) fn load() -> Result<Library, PamError> {
        // SAFETY: the name ends in a zero byte; the library's initialisers have no demands. It stays loaded.
        let loaded = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if loaded.is_null() {
            return Err(PamError::NoLibrary(said_by_loader()));
        }
        // SAFETY: each is called as <security/pam_appl.h> declares it.
        unsafe {
            Ok(Library {
                start: symbol(loaded, c"pam_start")?,
                end: symbol(loaded, c"pam_end")?,
                set_item: symbol(loaded, c"pam_set_item")?,
                acct_mgmt: symbol(loaded, c"pam_acct_mgmt")?,
                setcred: symbol(loaded, c"pam_setcred")?,
                open_session: symbol(loaded, c"pam_open_session")?,
                close_session: symbol(loaded, c"pam_close_session")?,
                getenvlist: symbol(loaded, c"pam_getenvlist")?,
                strerror: symbol(loaded, c"pam_strerror")?,
            })
        }
    }
}

/// A function of a loaded library.
///
/// # Safety
/// `F` is a pointer to a function with the signature that the library's has.
unsafe fn symbol<F: Copy>(library: *mut c_void, name: &CStr) -> Result<F, PamError> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the library is loaded, the name ends in a zero byte.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() {
        return Err(PamError::NoLibrary(said_by_loader()));
    }
    // SAFETY: both are pointers of one size, as asserted; the caller promises the signature.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

fn said_by_loader() -> String {
    // SAFETY: gives a text that ends in a zero byte and is valid until the next call, or nothing.
    let said = unsafe { libc::dlerror() };
    if said.is_null() {
        return LIBRARY.to_string_lossy().into_owned();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned()
}
