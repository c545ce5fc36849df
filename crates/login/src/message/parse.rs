//! Reads a message.

use super::fields::FieldReader;
use super::framing::MessageFrame;
use super::requests::size;
use super::{Channel, LoginMessage, MAX_SMALL, MessageUnit, answers, requests};
use crate::{LoginError, SessionSignal};

impl<'a> LoginMessage<'a> {
    /// Reads a message from its head and what follows it.
    ///
    /// # Errors
    /// [`LoginError`] for what is no message.
    pub fn parse(head: u8, body: &'a [u8]) -> Result<LoginMessage<'a>, LoginError> {
        if MessageFrame::is_small(head) {
            return small(head, body);
        }
        let mut fields = FieldReader::new(body);
        let message = match head >> 4 {
            2 => LoginMessage::Unit(channel(head)?, MessageUnit::parse(&mut fields)?),
            3 => LoginMessage::End(Some(channel(head)?).filter(|it| it.ends()).ok_or(LoginError::Unknown)?),
            4 => requests::parse(head, &mut fields)?.ok_or(LoginError::Unknown)?,
            5 => steering(head, &mut fields)?,
            6 => answers::parse(head, &mut fields)?.ok_or(LoginError::Unknown)?,
            _ => return Err(LoginError::Unknown),
        };
        fields.end()?;
        Ok(message)
    }
}

/// What does not count is zero.
fn small(head: u8, body: &[u8]) -> Result<LoginMessage<'_>, LoginError> {
    let (bytes, rest) = body.split_at_checked(usize::from(head & 15)).ok_or(LoginError::Short)?;
    if body.len() != MAX_SMALL || rest.iter().any(|byte| *byte != 0) {
        return Err(LoginError::Long);
    }
    Ok(LoginMessage::Small(bytes))
}

fn channel(head: u8) -> Result<Channel, LoginError> {
    Channel::ALL.get(usize::from(head & 15)).copied().ok_or(LoginError::Unknown)
}

/// What a client tells beside input.
fn steering(head: u8, body: &mut FieldReader<'_>) -> Result<LoginMessage<'static>, LoginError> {
    Ok(match head {
        0x50 => LoginMessage::Resize(size(body)?),
        0x51 => {
            let signal = SessionSignal::from_number(body.byte()?);
            LoginMessage::Signal(signal.ok_or(LoginError::Unknown)?)
        }
        0x52 => LoginMessage::Detach,
        0x53 => LoginMessage::HangUp,
        _ => return Err(LoginError::Unknown),
    })
}
