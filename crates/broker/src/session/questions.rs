//! Lists and reads of a stream, one after the other.

use std::sync::Arc;

use strait_transfer::broker::message::{
    BrokerAnswer, BrokerFault, Letter, LetterBox, LetterKind, ObjectName, ObjectPart,
};
use tokio::sync::mpsc;

use super::answers::Answers;
use crate::audit::{Deed, Line};
use crate::engine::{Client, Engine, refusal, word};
use crate::names;
use crate::reading;

/// Letters in one answer: as many as are told after one look at the store's pages, at 120 bytes each.
const LETTERS: usize = 128;

/// What is asked.
#[derive(Debug)]
pub(super) enum Question {
    /// Which letters there are.
    List(LetterBox),
    /// Bytes.
    Read { object: ObjectName, kind: LetterKind, part: ObjectPart, at: u64 },
}

/// Answers until no more is asked, or heard.
pub(super) async fn answer(
    engine: Arc<Engine>,
    client: Client,
    mut asked: mpsc::Receiver<Question>,
    answers: Answers,
) {
    while let Some(question) = asked.recv().await {
        let _waited = answers.waited_for();
        let heard = match question {
            Question::List(which) => match list(&engine, &client, which, &answers).await {
                Ok(()) => answers.say(&BrokerAnswer::ListEnd).await,
                Err(fault) => {
                    engine.refused(fault.kind);
                    answers.say(&BrokerAnswer::Refused { id: None, fault }).await
                }
            },
            Question::Read { object, kind, part, at } => {
                let read = reading::read(&engine, &client, &object, kind, part, at, &answers).await;
                let is_fetch = part == ObjectPart::Contents || kind == LetterKind::Receipt;
                if is_fetch || read.is_err() {
                    tell(&engine, &client, &object, at, &read).await;
                }
                match read {
                    Ok(size) => answers.say(&BrokerAnswer::ReadEnd { size }).await,
                    Err(fault) => {
                        engine.refused(fault.kind);
                        answers.say(&BrokerAnswer::Refused { id: Some(object.id), fault }).await
                    }
                }
            }
        };
        if !heard {
            return;
        }
    }
}

async fn tell(
    engine: &Engine,
    client: &Client,
    object: &ObjectName,
    at: u64,
    read: &Result<u64, BrokerFault>,
) {
    let mut line = Line::new(Deed::Fetch, Some(&client.name), &client.key);
    line.id = Some(object.id.to_string());
    line.sender = Some(object.sender.to_string());
    match read {
        Ok(size) => line.bytes = size.saturating_sub(at),
        Err(fault) => word(fault.kind).clone_into(&mut line.outcome),
    }
    engine.audit.say(line).await;
}

/// Tells all letters of a box that have not expired, as the store lists them.
async fn list(
    engine: &Engine,
    client: &Client,
    which: LetterBox,
    answers: &Answers,
) -> Result<(), BrokerFault> {
    let _permit = engine.lists.acquire().await;
    let now = crate::now();
    let folder = match which {
        LetterBox::Inbox => names::inbox(&client.key),
        LetterBox::Sent => names::inboxes(),
    };
    let mut listing = engine.store.list(&folder, None);
    let mut letters: Vec<Letter> = Vec::with_capacity(LETTERS);
    while let Some(about) = listing.next().await {
        let about = about.map_err(|fault| refusal(&fault))?;
        let Some((receiver, name)) = names::parse_letter(&about.location) else { continue };
        let is_own = match which {
            LetterBox::Inbox => receiver == client.key,
            LetterBox::Sent => name.object.sender == client.key,
        };
        if !is_own || name.expires <= now {
            continue;
        }
        engine.index.insert(&receiver, &name);
        letters.push(name.to(receiver));
        if letters.len() == LETTERS
            && !answers.say(&BrokerAnswer::Letters(std::mem::take(&mut letters))).await
        {
            return Ok(());
        }
    }
    if !letters.is_empty() {
        answers.say(&BrokerAnswer::Letters(letters)).await;
    }
    Ok(())
}
