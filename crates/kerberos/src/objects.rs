//! What the library gives out, released when it is dropped, and what it is given.
#![allow(unsafe_code)]

use core::ffi::c_int;
use core::ptr;
use std::ffi::CString;

use crate::library::{
    BufferDesc, ChannelBindings, Handle, KeyValue, KeyValueSet, Library, OidDesc, OidSetDesc, library,
};
use crate::{Binding, GssProblem, KerberosError};

/// `GSS_C_GSS_CODE` and `GSS_C_MECH_CODE`: whose code a text is wanted for.
const GSS_CODE: c_int = 1;
const MECHANISM_CODE: c_int = 2;
/// Texts of one status at most, each for one bit of it.
const TEXTS_MAX: usize = 8;
/// Bytes of the texts together at most.
const TEXT_MAX: usize = 400;

/// An object identifier, which is a constant of this program.
#[repr(transparent)]
pub(crate) struct Oid(OidDesc);

// SAFETY: it points to constants, and nothing writes to it.
unsafe impl Sync for Oid {}

impl Oid {
    const fn new(bytes: &'static [u8]) -> Oid {
        // An identifier's length is a few bytes.
        #[allow(clippy::cast_possible_truncation)]
        let length = bytes.len() as u32;
        Oid(OidDesc { length, elements: bytes.as_ptr().cast() })
    }

    pub(crate) fn as_ptr(&'static self) -> *const OidDesc {
        &raw const self.0
    }
}

/// The mechanism: Kerberos 5, 1.2.840.113554.1.2.2 (RFC 4121).
pub(crate) static KERBEROS: Oid = Oid::new(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02");
/// `GSS_C_NT_HOSTBASED_SERVICE`, 1.2.840.113554.1.2.1.4 (RFC 2743 section 4.1).
static HOST_BASED: Oid = Oid::new(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04");
/// `GSS_KRB5_NT_PRINCIPAL_NAME`, 1.2.840.113554.1.2.2.1 (RFC 1964 section 2.1.1).
static PRINCIPAL: Oid = Oid::new(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01");

/// The acceptor's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceName {
    /// A service of a host, such as `strait@server.example.org`: the realm is found by the host's name.
    HostBased(String),
    /// A principal, such as `strait/server.example.org@EXAMPLE.ORG`.
    Principal(String),
}

impl ServiceName {
    /// As people write it: a principal has a slash; all else is a service, of the host behind an `@`. An acceptor without a host is the
    /// service of any host that it has a key for.
    #[must_use]
    pub fn parse(text: &str) -> ServiceName {
        if text.contains('/') {
            ServiceName::Principal(text.to_owned())
        } else {
            ServiceName::HostBased(text.to_owned())
        }
    }
}

/// A result of the library's, or what is wrong.
pub(crate) fn check(
    library: &'static Library,
    doing: &'static str,
    major: u32,
    minor: u32,
) -> Result<(), KerberosError> {
    // Bits 16 to 31 are errors, those below say more about what went well (RFC 2744 section 3.9.1).
    if major >> 16 == 0 { Ok(()) } else { Err(failure(library, doing, major, minor)) }
}

pub(crate) fn failure(
    library: &'static Library,
    doing: &'static str,
    major: u32,
    minor: u32,
) -> KerberosError {
    // Numbers of RFC 2744 section 3.9.1, behind those of the mechanism, which say more.
    let problem = match major >> 16 & 0xff {
        _ if major & 0x2 != 0 || minor == kerberos_code(34) => GssProblem::Replayed,
        // A ticket that is not valid yet came from a clock that is ahead.
        _ if minor == kerberos_code(37) || minor == kerberos_code(33) => GssProblem::ClockSkew,
        _ if minor == kerberos_code(32) => GssProblem::Expired,
        2 | 3 => GssProblem::BadName,
        4 => GssProblem::BadBinding,
        7 => GssProblem::NoCredentials,
        9 => GssProblem::DefectiveToken,
        11 | 12 => GssProblem::Expired,
        _ => GssProblem::Other,
    };
    let mut text = status_text(library, major, GSS_CODE);
    let detail = status_text(library, minor, MECHANISM_CODE);
    if minor != 0 && !detail.is_empty() {
        text = format!("{text}: {detail}");
    }
    KerberosError::Gss { doing, problem, text }
}

/// What the library makes of an error of RFC 4120 section 7.5.9.
const fn kerberos_code(error: u32) -> u32 {
    // The table `krb5` of com_err begins at -1765328384.
    (-1_765_328_384_i32).cast_unsigned() + error
}

fn status_text(library: &'static Library, status: u32, kind: c_int) -> String {
    let mut parts = Vec::new();
    let mut context = 0;
    for _ in 0..TEXTS_MAX {
        let (mut minor, mut buffer) = (0, Buffer::new(library));
        // SAFETY: the mechanism is a constant, the others are places of this function.
        let major = unsafe {
            (library.gss_display_status)(
                &raw mut minor,
                status,
                kind,
                KERBEROS.as_ptr(),
                &raw mut context,
                buffer.as_mut_ptr(),
            )
        };
        if major != 0 {
            break;
        }
        parts.push(buffer.text());
        if context == 0 {
            break;
        }
    }
    // It goes to terminals and logs.
    let text = parts.join(", ");
    text.chars().filter(|character| !character.is_control()).take(TEXT_MAX).collect()
}

/// Bytes that the library gave.
pub(crate) struct Buffer {
    library: &'static Library,
    desc: BufferDesc,
}

impl Buffer {
    pub(crate) fn new(library: &'static Library) -> Buffer {
        Buffer { library, desc: BufferDesc { length: 0, value: ptr::null_mut() } }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut BufferDesc {
        &raw mut self.desc
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        if self.desc.value.is_null() || self.desc.length == 0 {
            return &[];
        }
        // SAFETY: the library says that so many bytes are there, and they stay until they are released.
        unsafe { core::slice::from_raw_parts(self.desc.value.cast(), self.desc.length) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: it is empty, or the library has filled it.
        unsafe { (self.library.gss_release_buffer)(&raw mut minor, &raw mut self.desc) };
    }
}

/// Bytes as the library wants them. It does not write to them.
pub(crate) fn input(bytes: &[u8]) -> BufferDesc {
    BufferDesc { length: bytes.len(), value: bytes.as_ptr().cast_mut().cast() }
}

/// What both ends bind the exchange to. `data` outlives what is returned.
pub(crate) fn bindings(data: &[u8]) -> ChannelBindings {
    // RFC 4121 section 4.1.1.2, with addresses of no kind.
    ChannelBindings {
        initiator_kind: 0,
        initiator: input(&[]),
        acceptor_kind: 0,
        acceptor: input(&[]),
        application: input(data),
    }
}

/// `Binding` as bytes that [`bindings`] takes.
pub(crate) fn binding_data(binding: &Binding) -> Vec<u8> {
    binding.application_data()
}

/// A handle, and the function that releases it.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $release:ident $(, $rest:expr)?) => {
        $(#[$doc])*
        pub(crate) struct $name {
            library: &'static Library,
            handle: Handle,
        }

        impl $name {
            pub(crate) fn none(library: &'static Library) -> $name {
                $name { library, handle: ptr::null_mut() }
            }

            pub(crate) fn handle(&self) -> Handle {
                self.handle
            }

            pub(crate) fn as_mut_ptr(&mut self) -> *mut Handle {
                &raw mut self.handle
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if !self.handle().is_null() {
                    let mut minor = 0;
                    // SAFETY: the library gave the handle, and it is released once.
                    unsafe { (self.library.$release)(&raw mut minor, &raw mut self.handle $(, $rest)?) };
                }
            }
        }
    };
}

handle!(
    /// A name.
    Name, gss_release_name
);
handle!(
    /// Tickets or keys.
    Credentials, gss_release_cred
);
handle!(
    /// One end of an exchange.
    Context, gss_delete_sec_context, ptr::null_mut()
);

impl Name {
    /// The name of a service.
    pub(crate) fn of(service: &ServiceName) -> Result<Name, KerberosError> {
        let library = library()?;
        let (text, kind) = match service {
            ServiceName::HostBased(text) => (text, &HOST_BASED),
            ServiceName::Principal(text) => (text, &PRINCIPAL),
        };
        let (mut minor, mut name) = (0, Name::none(library));
        let desc = input(text.as_bytes());
        // SAFETY: the buffer outlives the call, the kind is a constant.
        let major = unsafe {
            (library.gss_import_name)(&raw mut minor, &raw const desc, kind.as_ptr(), name.as_mut_ptr())
        };
        check(library, "read the service's name", major, minor)?;
        Ok(name)
    }

    /// The principal, such as `alice@EXAMPLE.ORG`.
    pub(crate) fn principal(&self) -> Result<String, KerberosError> {
        let (mut minor, mut buffer) = (0, Buffer::new(self.library));
        // SAFETY: the name is one of the library's.
        let major = unsafe {
            (self.library.gss_display_name)(&raw mut minor, self.handle, buffer.as_mut_ptr(), ptr::null_mut())
        };
        check(self.library, "read the peer's name", major, minor)?;
        Ok(buffer.text())
    }

    /// The account that `auth_to_local` gives it, if it does.
    pub(crate) fn account(&self) -> Option<String> {
        let (mut minor, mut buffer) = (0, Buffer::new(self.library));
        // SAFETY: the name is one of the library's, the mechanism a constant.
        let major = unsafe {
            (self.library.gss_localname)(&raw mut minor, self.handle, KERBEROS.as_ptr(), buffer.as_mut_ptr())
        };
        let account = core::str::from_utf8(buffer.bytes()).ok().filter(|account| !account.is_empty());
        account.filter(|_| major == 0).map(str::to_owned)
    }
}

/// What credentials are for (RFC 2744 section 5.2).
#[derive(Clone, Copy)]
pub(crate) enum Usage {
    Initiate = 1,
    Accept = 2,
}

impl Credentials {
    /// Those of `name`, or of the default one, from `places`: what each is called (`ccache`, `keytab`, `rcache`) and where it is.
    pub(crate) fn acquire(
        name: Option<&Name>,
        usage: Usage,
        places: &[(&str, &str)],
    ) -> Result<Credentials, KerberosError> {
        let library = library()?;
        let (mut minor, mut credentials) = (0, Credentials::none(library));
        let mechanisms = OidSetDesc { count: 1, elements: KERBEROS.as_ptr() };
        let store = Store::of(places)?;
        // SAFETY: the name is one of the library's or none; all else outlives the call.
        let major = unsafe {
            (library.gss_acquire_cred_from)(
                &raw mut minor,
                name.map_or(ptr::null_mut(), Name::handle),
                0,
                &raw const mechanisms,
                usage as c_int,
                store.as_ptr(),
                credentials.as_mut_ptr(),
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        let doing = match usage {
            Usage::Initiate => "get a ticket",
            Usage::Accept => "read the service's key",
        };
        check(library, doing, major, minor)?;
        Ok(credentials)
    }

    /// Writes them to the cache of this name, such as `FILE:/run/user/1000/krb5cc`.
    pub(crate) fn store(&self, cache: &str) -> Result<(), KerberosError> {
        let mut minor = 0;
        let store = Store::of(&[("ccache", cache)])?;
        // SAFETY: the credentials are the library's; all else outlives the call. 1 and 1: in place of what is there, and as
        // the cache's default.
        let major = unsafe {
            (self.library.gss_store_cred_into)(
                &raw mut minor,
                self.handle,
                Usage::Initiate as c_int,
                KERBEROS.as_ptr(),
                1,
                1,
                store.as_ptr(),
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        check(self.library, "keep the delegated ticket", major, minor)
    }

    /// All of them as bytes.
    pub(crate) fn export(&self) -> Result<Vec<u8>, KerberosError> {
        let (mut minor, mut buffer) = (0, Buffer::new(self.library));
        // SAFETY: the credentials are the library's.
        let major =
            unsafe { (self.library.gss_export_cred)(&raw mut minor, self.handle, buffer.as_mut_ptr()) };
        check(self.library, "write the delegated ticket", major, minor)?;
        Ok(buffer.bytes().to_vec())
    }

    /// Those that [`Credentials::export`] wrote.
    pub(crate) fn import(bytes: &[u8]) -> Result<Credentials, KerberosError> {
        let library = library()?;
        let (mut minor, mut credentials) = (0, Credentials::none(library));
        let token = input(bytes);
        // SAFETY: the bytes outlive the call.
        let major =
            unsafe { (library.gss_import_cred)(&raw mut minor, &raw const token, credentials.as_mut_ptr()) };
        check(library, "read the delegated ticket", major, minor)?;
        Ok(credentials)
    }
}

/// Places of credentials, as the library wants them.
struct Store {
    /// The strings that `elements` points to.
    _strings: Vec<(CString, CString)>,
    /// What `set` points to: on the heap, so that it stays where it is.
    _elements: Box<[KeyValue]>,
    set: KeyValueSet,
}

impl Store {
    fn of(places: &[(&str, &str)]) -> Result<Store, KerberosError> {
        let string = |text: &str| CString::new(text).map_err(|_| KerberosError::ZeroByte);
        let strings = places.iter().map(|(key, value)| Ok((string(key)?, string(value)?)));
        let strings = strings.collect::<Result<Vec<_>, KerberosError>>()?;
        let elements: Box<[KeyValue]> = strings
            .iter()
            .map(|(key, value)| KeyValue { key: key.as_ptr(), value: value.as_ptr() })
            .collect();
        let count = u32::try_from(elements.len()).unwrap_or(0);
        let set = KeyValueSet { count, elements: elements.as_ptr() };
        Ok(Store { _strings: strings, _elements: elements, set })
    }

    /// None of the library's, where no place was named: it has one by default.
    fn as_ptr(&self) -> *const KeyValueSet {
        if self.set.count == 0 { ptr::null() } else { &raw const self.set }
    }
}
