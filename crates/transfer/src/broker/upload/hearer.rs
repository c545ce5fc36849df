//! The thread that reads what the broker says.

use std::io::Read;
use std::sync::{Mutex, PoisonError};

use super::kinds::UploadError;
use super::shared::Shared;
use crate::broker::client::{BrokerAnswers, BrokerError};
use crate::broker::journal::UploadJournal;
use crate::broker::message::BrokerAnswer;

/// Reads until the stream ends.
pub(super) fn hear<R: Read>(
    mut answers: BrokerAnswers<R>,
    shared: &Shared<'_>,
    journal: &Mutex<UploadJournal>,
) -> Result<(), UploadError> {
    loop {
        match answers.next_answer()? {
            BrokerAnswer::Held { id, next, .. } => shared.hear_held(id, next),
            BrokerAnswer::Stored { id } => {
                if let Some(number) = shared.hear_stored(id) {
                    let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
                    journal.stored(number);
                    // A power failure may lose it: the broker then says again that it has the object.
                    journal.write().map_err(UploadError::Journal)?;
                }
            }
            // That it could not be forgotten is no matter: the broker collects it.
            BrokerAnswer::Refused { id: Some(id), fault } => {
                if !shared.hear_forgotten(id) {
                    shared.hear_refused(id, fault);
                }
            }
            BrokerAnswer::Refused { id: None, fault } => {
                return Err(BrokerError::Refused { id: None, fault }.into());
            }
            BrokerAnswer::Removed { object } => drop(shared.hear_forgotten(object.id)),
            _ => return Err(BrokerError::Protocol("an answer is none to an upload").into()),
        }
    }
}
