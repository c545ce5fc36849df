//! The functions of the system's GSSAPI library (RFC 2744; `gssapi/gssapi_ext.h` and `krb5.h` of MIT Kerberos 1.19 and later).
#![allow(unsafe_code)]

use core::ffi::{c_char, c_int, c_void};
use std::ffi::CStr;
use std::sync::OnceLock;

use crate::KerberosError;

/// The library's name on systems with ELF. MIT Kerberos has had this version since 1.0.
const LIBRARY: &CStr = c"libgssapi_krb5.so.2";

/// `gss_buffer_desc`
#[repr(C)]
pub(crate) struct BufferDesc {
    pub(crate) length: usize,
    pub(crate) value: *mut c_void,
}

/// `gss_OID_desc`
#[repr(C)]
pub(crate) struct OidDesc {
    pub(crate) length: u32,
    pub(crate) elements: *const c_void,
}

/// `gss_OID_set_desc`
#[repr(C)]
pub(crate) struct OidSetDesc {
    pub(crate) count: usize,
    pub(crate) elements: *const OidDesc,
}

/// `struct gss_channel_bindings_struct`
#[repr(C)]
pub(crate) struct ChannelBindings {
    pub(crate) initiator_kind: u32,
    pub(crate) initiator: BufferDesc,
    pub(crate) acceptor_kind: u32,
    pub(crate) acceptor: BufferDesc,
    pub(crate) application: BufferDesc,
}

/// `gss_key_value_element_desc`
#[repr(C)]
pub(crate) struct KeyValue {
    pub(crate) key: *const c_char,
    pub(crate) value: *const c_char,
}

/// `gss_key_value_set_desc`
#[repr(C)]
pub(crate) struct KeyValueSet {
    pub(crate) count: u32,
    pub(crate) elements: *const KeyValue,
}

/// `gss_name_t`, `gss_cred_id_t` and `gss_ctx_id_t`: what they point to is the library's.
pub(crate) type Handle = *mut c_void;
type Oid = *const OidDesc;
type OidSet = *const OidSetDesc;
type Minor = *mut u32;
type Buffer = *mut BufferDesc;

/// Declares a table of functions with the types that the headers give them, and loads each by its name.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*);)*) => {
        /// The functions.
        pub(crate) struct Library {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> u32,)*
        }

        impl Library {
            /// # Safety
            /// `handle` is of the library whose headers have these declarations.
            unsafe fn of(handle: *mut c_void) -> Result<Library, KerberosError> {
                Ok(Library {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        // SAFETY: a handle that dlopen gave, and a string that ends with 0.
                        let symbol = unsafe { libc::dlsym(handle, name.as_ptr().cast()) };
                        if symbol.is_null() {
                            let missing = format!("its library has no {}", stringify!($name));
                            return Err(KerberosError::NoLibrary(missing));
                        }
                        // SAFETY: the header has this type for the function of this name.
                        unsafe {
                            core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> u32>(symbol)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    gss_accept_sec_context: fn(
        Minor, *mut Handle, Handle, *const BufferDesc, *const ChannelBindings, *mut Handle, *mut Oid, Buffer, *mut u32,
        *mut u32, *mut Handle
    );
    gss_acquire_cred_from: fn(
        Minor, Handle, u32, OidSet, c_int, *const KeyValueSet, *mut Handle, *mut OidSet, *mut u32
    );
    gss_delete_sec_context: fn(Minor, *mut Handle, Buffer);
    gss_display_name: fn(Minor, Handle, Buffer, *mut Oid);
    gss_display_status: fn(Minor, u32, c_int, Oid, *mut u32, Buffer);
    gss_export_cred: fn(Minor, Handle, Buffer);
    gss_import_cred: fn(Minor, *const BufferDesc, *mut Handle);
    gss_import_name: fn(Minor, *const BufferDesc, Oid, *mut Handle);
    gss_init_sec_context: fn(
        Minor, Handle, *mut Handle, Handle, Oid, u32, u32, *const ChannelBindings, *const BufferDesc, *mut Oid,
        Buffer, *mut u32, *mut u32
    );
    gss_localname: fn(Minor, Handle, Oid, Buffer);
    gss_release_buffer: fn(Minor, Buffer);
    gss_release_cred: fn(Minor, *mut Handle);
    gss_release_name: fn(Minor, *mut Handle);
    gss_store_cred_into: fn(
        Minor, Handle, c_int, Oid, u32, u32, *const KeyValueSet, *mut OidSet, *mut c_int
    );
    krb5_init_context: fn(*mut Handle);
    krb5_kt_default_name: fn(Handle, *mut c_char, c_int);
}

/// The library, loaded when this is called first. It stays.
pub(crate) fn library() -> Result<&'static Library, KerberosError> {
    static LOADED: OnceLock<Result<Library, KerberosError>> = OnceLock::new();
    LOADED.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Library, KerberosError> {
    // SAFETY: a string that ends with 0. What runs in it on loading is the system's library.
    let handle = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: dlerror gives null, or a string that stays until the next call of this thread.
        let why = unsafe {
            let text = libc::dlerror();
            if text.is_null() { None } else { Some(CStr::from_ptr(text).to_string_lossy().into_owned()) }
        };
        let why = why.unwrap_or_else(|| format!("{} was not loaded", LIBRARY.to_string_lossy()));
        return Err(KerberosError::NoLibrary(why));
    }
    // SAFETY: MIT Kerberos has this name and version; others that use it keep to the same headers.
    unsafe { Library::of(handle) }
}
