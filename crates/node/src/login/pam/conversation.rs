//! The conversation of PAM's modules with a person: it answers nothing, and keeps what they say.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::PAM_SUCCESS;

// _pam_types.h
const PAM_CONV_ERR: c_int = 19;
const PAM_BUF_ERR: c_int = 5;
const PAM_ERROR_MSG: c_int = 3;
const PAM_TEXT_INFO: c_int = 4;
/// Most messages of one call (PAM_MAX_NUM_MSG).
const MESSAGES_MAX: usize = 32;
/// Bytes that modules may say in all: a message of the day and a few lines.
const SAID_MAX: usize = 16 << 10;

#[repr(C)]
struct Message {
    style: c_int,
    text: *const c_char,
}

#[repr(C)]
struct Response {
    text: *mut c_char,
    code: c_int,
}

type Talk = unsafe extern "C" fn(c_int, *mut *const Message, *mut *mut Response, *mut c_void) -> c_int;

#[repr(C)]
pub(super) struct Conversation {
    talk: Talk,
    data: *mut c_void,
}

impl Conversation {
    /// Keeps in `said` what modules say, which has to be there as long as the library has this.
    pub(super) const fn kept_in(said: *mut Said) -> Conversation {
        Conversation { talk: listen, data: said.cast() }
    }
}

/// What modules said.
#[derive(Default)]
pub(super) struct Said(pub(super) Vec<u8>);

/// Answers nothing, and keeps what is said.
unsafe extern "C" fn listen(
    count: c_int,
    messages: *mut *const Message,
    responses: *mut *mut Response,
    data: *mut c_void,
) -> c_int {
    let Some(count) = usize::try_from(count).ok().filter(|count| (1..=MESSAGES_MAX).contains(count)) else {
        return PAM_CONV_ERR;
    };
    let mut asked = false;
    for at in 0..count {
        // SAFETY: Linux-PAM passes an array of `count` pointers to messages, each with a text or none, and the pointer that the
        // conversation was made with.
        unsafe {
            let message = &**messages.add(at);
            asked |= !matches!(message.style, PAM_ERROR_MSG | PAM_TEXT_INFO);
            if let (false, false) = (asked, message.text.is_null()) {
                let said = &mut (*data.cast::<Said>()).0;
                let text = CStr::from_ptr(message.text).to_bytes();
                let room = SAID_MAX.saturating_sub(said.len() + 1);
                if room > 0 {
                    said.extend_from_slice(text.get(..room).unwrap_or(text));
                    said.push(b'\n');
                }
            }
        }
    }
    if asked {
        return PAM_CONV_ERR;
    }
    // SAFETY: takes sizes; the library frees what it gets.
    let answers = unsafe { libc::calloc(count, size_of::<Response>()) };
    if answers.is_null() {
        return PAM_BUF_ERR;
    }
    // SAFETY: a pointer of the library's to be filled.
    unsafe { *responses = answers.cast() };
    PAM_SUCCESS
}
