//! The bodies of what a server answers.

use super::LoginMessage;
use super::fields::{FieldReader, MAX_TEXT, put_number, put_string, put_text};
use crate::{Exit, ListedSession, LoginError, Refusal, RefusedReason, SessionNumber, TerminalModes};

/// The name of an account at most.
const MAX_ACCOUNT: usize = 255;
/// What runs in a listed session at most.
const MAX_WHAT: usize = 256;
/// Listed sessions at most, so that a list fits in a message.
pub(crate) const MAX_LISTED: usize = 128;
/// The name of a signal at most.
const MAX_SIGNAL: usize = 16;

fn exit(body: &mut FieldReader<'_>) -> Result<Exit, LoginError> {
    if !body.flag()? {
        return Ok(Exit::Status(body.byte()?));
    }
    let name = body.text(MAX_SIGNAL)?;
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) {
        return Err(LoginError::Text);
    }
    Ok(Exit::Signal { name, core_dumped: body.flag()?, message: body.text(MAX_TEXT)? })
}

fn put_exit(out: &mut Vec<u8>, exit: &Exit) {
    match exit {
        Exit::Status(status) => out.extend([0, *status]),
        Exit::Signal { name, core_dumped, message } => {
            out.push(1);
            let known: String = name
                .chars()
                .filter(|character| character.is_ascii_uppercase() || character.is_ascii_digit())
                .take(MAX_SIGNAL)
                .collect();
            put_string(out, if known.is_empty() { b"UNKNOWN" } else { known.as_bytes() });
            out.push(u8::from(*core_dumped));
            put_text(out, message, MAX_TEXT);
        }
    }
}

fn sessions(body: &mut FieldReader<'_>) -> Result<Vec<ListedSession>, LoginError> {
    let mut all = Vec::new();
    while !body.is_empty() {
        if all.len() == MAX_LISTED {
            return Err(LoginError::Bound);
        }
        all.push(ListedSession {
            number: SessionNumber(u64::from_le_bytes(body.fixed()?)),
            since: body.number()?,
            idle: body.number()?,
            what: body.text(MAX_WHAT)?,
            attached: body.flag()?,
        });
    }
    Ok(all)
}

fn put_sessions(out: &mut Vec<u8>, all: &[ListedSession]) {
    for session in all.iter().take(MAX_LISTED) {
        out.extend(session.number.0.to_le_bytes());
        put_number(out, session.since);
        put_number(out, session.idle);
        put_text(out, &session.what, MAX_WHAT);
        out.push(u8::from(session.attached));
    }
}

/// The answer with this head; nothing if it is another message's.
pub(super) fn parse(
    head: u8,
    body: &mut FieldReader<'_>,
) -> Result<Option<LoginMessage<'static>>, LoginError> {
    Ok(Some(match head {
        0x60 => {
            let reason = RefusedReason::ALL.get(usize::from(body.byte()?)).copied();
            LoginMessage::Refused(Refusal {
                reason: reason.ok_or(LoginError::Unknown)?,
                text: body.text(MAX_TEXT)?,
            })
        }
        0x61 => LoginMessage::Started { account: body.text(MAX_ACCOUNT)? },
        0x62 => LoginMessage::Resumed {
            account: body.text(MAX_ACCOUNT)?,
            client: u32::try_from(body.number()?).map_err(|_| LoginError::Bound)?,
            input: body.number()?,
            output: body.number()?,
        },
        0x63 => LoginMessage::Sessions(sessions(body)?),
        0x64 => LoginMessage::Modes(TerminalModes { echo: body.flag()?, canonical: body.flag()? }),
        0x65 => LoginMessage::Exited(exit(body)?),
        0x66 => LoginMessage::Opened,
        _ => return Ok(None),
    }))
}

/// Appends the body of an answer and gives its head; nothing for other messages.
pub(super) fn put(message: &LoginMessage<'_>, out: &mut Vec<u8>) -> Option<u8> {
    Some(match message {
        LoginMessage::Refused(refusal) => {
            out.push(refusal.reason as u8);
            put_text(out, &refusal.text, MAX_TEXT);
            0x60
        }
        LoginMessage::Started { account } => {
            put_text(out, account, MAX_ACCOUNT);
            0x61
        }
        LoginMessage::Resumed { account, client, input, output } => {
            put_text(out, account, MAX_ACCOUNT);
            put_number(out, u64::from(*client));
            put_number(out, *input);
            put_number(out, *output);
            0x62
        }
        LoginMessage::Sessions(all) => {
            put_sessions(out, all);
            0x63
        }
        LoginMessage::Modes(modes) => {
            out.extend([u8::from(modes.echo), u8::from(modes.canonical)]);
            0x64
        }
        LoginMessage::Exited(exit) => {
            put_exit(out, exit);
            0x65
        }
        LoginMessage::Opened => 0x66,
        _ => return None,
    })
}
