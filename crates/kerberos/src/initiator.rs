//! The end that has a ticket.
#![allow(unsafe_code)]

use core::ptr;

use crate::library::{Library, library};
use crate::objects::{
    Buffer, Context, Credentials, KERBEROS, Name, Usage, binding_data, bindings, check, failure, input,
};
use crate::{Binding, KerberosError, KerberosRefusal, ServiceName, Step, TOKEN_MAX};

// Flags of RFC 2744 section 5.19, and of MIT Kerberos 1.19 the one that says that the exchange was bound.
pub(crate) const DELEGATE: u32 = 0x1;
pub(crate) const MUTUAL: u32 = 0x2;
const REPLAY: u32 = 0x4;
const SEQUENCE: u32 = 0x8;
const INTEGRITY: u32 = 0x20;
pub(crate) const BOUND: u32 = 0x800;
/// `GSS_S_CONTINUE_NEEDED`
pub(crate) const CONTINUE: u32 = 0x1;

/// What an [`Initiator`] wants.
#[derive(Clone, Debug)]
pub struct InitiatorOptions {
    /// Whom it talks to.
    pub service: ServiceName,
    /// Whether the acceptor gets a ticket to act as the initiator, if this one may be passed on.
    pub delegate: bool,
    /// The cache of tickets, such as `FILE:/tmp/krb5cc_1000`. None: the system's default.
    pub cache: Option<String>,
    /// Leaves the exchange unbound, as an end would that was talked into another connection: for tests of acceptors.
    pub danger_unbound: bool,
}

impl InitiatorOptions {
    /// For this service, with the default tickets and nothing delegated.
    #[must_use]
    pub fn new(service: ServiceName) -> InitiatorOptions {
        InitiatorOptions { service, delegate: false, cache: None, danger_unbound: false }
    }
}

/// The end that has a ticket and sends the first token.
pub struct Initiator {
    library: &'static Library,
    credentials: Credentials,
    target: Name,
    context: Context,
    flags: u32,
    /// None: unbound.
    binding: Option<Vec<u8>>,
    over: bool,
}

impl Initiator {
    /// Reads the tickets.
    ///
    /// # Errors
    /// [`KerberosError::NoLibrary`]; [`KerberosError::Gss`]: there is no ticket, or it is over.
    pub fn new(options: &InitiatorOptions, binding: &Binding) -> Result<Initiator, KerberosError> {
        let library = library()?;
        let cache = Vec::from_iter(options.cache.as_deref().map(|cache| ("ccache", cache)));
        let delegate = if options.delegate { DELEGATE } else { 0 };
        Ok(Initiator {
            library,
            credentials: Credentials::acquire(None, Usage::Initiate, &cache)?,
            target: Name::of(&options.service)?,
            context: Context::none(library),
            flags: MUTUAL | REPLAY | SEQUENCE | INTEGRITY | BOUND | delegate,
            binding: (!options.danger_unbound).then(|| binding_data(binding)),
            over: false,
        })
    }

    /// The first token (`incoming` is None), or what follows a token of the acceptor's. Asks the KDC where it has to.
    ///
    /// # Errors
    /// A token that does not prove the acceptor, a KDC that gives no ticket.
    pub fn step(&mut self, incoming: Option<&[u8]>) -> Result<Step, KerberosRefusal> {
        if core::mem::replace(&mut self.over, true) {
            return Err(KerberosError::Over.into());
        }
        let token = incoming.unwrap_or(&[]);
        if token.len() > TOKEN_MAX || incoming.is_some_and(<[u8]>::is_empty) {
            return Err(KerberosError::TokenLength(token.len()).into());
        }
        let token = input(token);
        let bindings = self.binding.as_deref().map(bindings);
        let (mut minor, mut flags, mut out) = (0, 0, Buffer::new(self.library));
        // SAFETY: handles are the library's; the token and the bindings outlive the call.
        let major = unsafe {
            (self.library.gss_init_sec_context)(
                &raw mut minor,
                self.credentials.handle(),
                self.context.as_mut_ptr(),
                self.target.handle(),
                KERBEROS.as_ptr(),
                self.flags,
                0,
                bindings.as_ref().map_or(ptr::null(), ptr::from_ref),
                &raw const token,
                ptr::null_mut(),
                out.as_mut_ptr(),
                &raw mut flags,
                ptr::null_mut(),
            )
        };
        let out = some_token(&out);
        if let Err(error) = check(self.library, "prove who this is", major, minor) {
            return Err(KerberosRefusal { error, token: out });
        }
        if major & CONTINUE != 0 {
            let token = out.ok_or_else(|| failure(self.library, "begin", major, minor))?;
            self.over = false;
            return Ok(Step::GoOn(token));
        }
        if flags & MUTUAL == 0 {
            return Err(KerberosError::NotMutual.into());
        }
        Ok(Step::Done(out))
    }
}

/// A token of the library's, if there is one.
pub(crate) fn some_token(buffer: &Buffer) -> Option<Vec<u8>> {
    Some(buffer.bytes().to_vec()).filter(|token| !token.is_empty())
}
