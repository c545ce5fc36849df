//! The end that has a key.
#![allow(unsafe_code)]

use core::ptr;
use core::time::Duration;
use std::ffi::CStr;

use crate::initiator::{BOUND, CONTINUE, DELEGATE, MUTUAL, some_token};
use crate::library::{Library, library};
use crate::objects::{
    Buffer, Context, Credentials, Name, Usage, binding_data, bindings, check, failure, input,
};
use crate::{Binding, KerberosError, KerberosRefusal, ServiceName, Step, TOKEN_MAX};

/// Bytes of a keytab's name at most: `PATH_MAX`.
const KEYTAB_MAX: usize = 4096;

/// What an [`Acceptor`] is.
#[derive(Clone, Debug)]
pub struct AcceptorOptions {
    /// Its name: tickets for others are refused, also where their key is there.
    pub service: ServiceName,
    /// The file of keys. None: the system's default.
    pub keytab: Option<String>,
    /// The record of tokens that were taken, such as `file2:/run/replay`. None: the system's default.
    pub replay: Option<String>,
}

/// The name of the file of keys that the system has by default, such as `FILE:/etc/krb5.keytab`. Reads `krb5.conf`, and no key.
///
/// # Errors
/// [`KerberosError::NoLibrary`]; [`KerberosError::NoKeytab`]: `krb5.conf` cannot be read.
pub fn default_keytab() -> Result<String, KerberosError> {
    let library = library()?;
    let (mut context, mut name) = (ptr::null_mut(), vec![0_u8; KEYTAB_MAX]);
    let length = core::ffi::c_int::try_from(name.len()).unwrap_or(0);
    // SAFETY: the pointer is to a place for a handle, which stays.
    let mut code = unsafe { (library.krb5_init_context)(&raw mut context) };
    if code == 0 {
        // SAFETY: the handle is the library's; the buffer has this length, and outlives the call.
        code = unsafe { (library.krb5_kt_default_name)(context, name.as_mut_ptr().cast(), length) };
    }
    let name = CStr::from_bytes_until_nul(&name).ok().filter(|_| code == 0);
    let name = name.and_then(|name| name.to_str().ok());
    name.map(str::to_owned).ok_or(KerberosError::NoKeytab(code.cast_signed()))
}

/// Who the initiator is.
#[derive(Debug)]
pub struct KerberosPeer {
    /// The principal, such as `alice@EXAMPLE.ORG`.
    pub principal: String,
    /// How long the ticket holds.
    pub lifetime: Duration,
    /// What it lets the acceptor do in its name.
    pub delegated: Option<Delegated>,
}

/// A ticket to act as the initiator. Another process gets it as bytes.
pub struct Delegated(Credentials);

impl core::fmt::Debug for Delegated {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Delegated(..)")
    }
}

impl Delegated {
    /// All of it as bytes.
    ///
    /// # Errors
    /// [`KerberosError::Gss`]: the library cannot write it.
    pub fn export(&self) -> Result<Vec<u8>, KerberosError> {
        self.0.export()
    }

    /// Reads what [`Delegated::export`] wrote. The bytes may name files, which the library then opens.
    ///
    /// # Errors
    /// [`KerberosError::NoLibrary`]; [`KerberosError::Gss`]: the bytes are something else.
    pub fn import(bytes: &[u8]) -> Result<Delegated, KerberosError> {
        Credentials::import(bytes).map(Delegated)
    }

    /// Writes it to a cache, such as `FILE:/run/user/1000/krb5cc`, in place of what is there.
    ///
    /// # Errors
    /// [`KerberosError::Gss`]: the cache cannot be written.
    pub fn store(&self, cache: &str) -> Result<(), KerberosError> {
        self.0.store(cache)
    }
}

/// The end that has a key, and gets the first token. Tokens that it accepted are recorded by the library (its replay cache), so
/// that no acceptor with the same record takes one twice.
pub struct Acceptor {
    library: &'static Library,
    credentials: Credentials,
    context: Context,
    binding: Vec<u8>,
    source: Name,
    over: bool,
    peer: Option<KerberosPeer>,
}

impl Acceptor {
    /// Reads the keys.
    ///
    /// # Errors
    /// [`KerberosError::NoLibrary`]; [`KerberosError::Gss`]: there is no key for the service.
    pub fn new(options: &AcceptorOptions, binding: &Binding) -> Result<Acceptor, KerberosError> {
        let library = library()?;
        let name = Name::of(&options.service)?;
        let keytab = options.keytab.as_deref().map(|keytab| ("keytab", keytab));
        let replay = options.replay.as_deref().map(|replay| ("rcache", replay));
        let places: Vec<_> = keytab.into_iter().chain(replay).collect();
        Ok(Acceptor {
            library,
            credentials: Credentials::acquire(Some(&name), Usage::Accept, &places)?,
            context: Context::none(library),
            binding: binding_data(binding),
            source: Name::none(library),
            over: false,
            peer: None,
        })
    }

    /// What follows a token of the initiator's.
    ///
    /// # Errors
    /// A token that proves nothing; it was seen before, it is for another service or another connection, its ticket is over, or the
    /// clocks differ.
    pub fn step(&mut self, incoming: &[u8]) -> Result<Step, KerberosRefusal> {
        if core::mem::replace(&mut self.over, true) {
            return Err(KerberosError::Over.into());
        }
        if incoming.is_empty() || incoming.len() > TOKEN_MAX {
            return Err(KerberosError::TokenLength(incoming.len()).into());
        }
        let token = input(incoming);
        let bindings = bindings(&self.binding);
        let mut delegated = Credentials::none(self.library);
        let (mut minor, mut flags, mut seconds, mut out) = (0, 0, 0, Buffer::new(self.library));
        // SAFETY: handles are the library's; the token and the bindings outlive the call.
        let major = unsafe {
            (self.library.gss_accept_sec_context)(
                &raw mut minor,
                self.context.as_mut_ptr(),
                self.credentials.handle(),
                &raw const token,
                &raw const bindings,
                self.source.as_mut_ptr(),
                ptr::null_mut(),
                out.as_mut_ptr(),
                &raw mut flags,
                &raw mut seconds,
                delegated.as_mut_ptr(),
            )
        };
        let out = some_token(&out);
        if let Err(error) = check(self.library, "verify the peer", major, minor) {
            return Err(KerberosRefusal { error, token: out });
        }
        if major & CONTINUE != 0 {
            let token = out.ok_or_else(|| failure(self.library, "go on", major, minor))?;
            self.over = false;
            return Ok(Step::GoOn(token));
        }
        // The library takes a token that is bound to nothing, if it does not say that the initiator knows of bindings.
        if flags & BOUND == 0 {
            return Err(KerberosError::NotBound.into());
        }
        // The initiator would not know whom it talks to.
        if flags & MUTUAL == 0 {
            return Err(KerberosError::NotMutual.into());
        }
        self.peer = Some(KerberosPeer {
            principal: self.source.principal()?,
            lifetime: Duration::from_secs(u64::from(seconds)),
            delegated: (flags & DELEGATE != 0 && !delegated.handle().is_null())
                .then_some(Delegated(delegated)),
        });
        Ok(Step::Done(out))
    }

    /// Who the initiator is, once a step was [`Step::Done`].
    #[must_use]
    pub fn peer(&self) -> Option<&KerberosPeer> {
        self.peer.as_ref()
    }
}
