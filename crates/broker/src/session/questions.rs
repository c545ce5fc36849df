//! Lists and reads of a stream, one after the other.

use std::sync::Arc;

use strait_keying::PublicKey;
use strait_transfer::broker::message::{
    BrokerAnswer, BrokerFault, Letter, LetterBox, LetterKind, ObjectName, ObjectPart,
};
use tokio::sync::mpsc;

use super::answers::Answers;
use crate::audit::{Deed, Line};
use crate::engine::{Client, Engine};
use crate::letters;
use crate::names::LetterName;
use crate::reading;
use crate::status::{refusal, word};

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

/// Tells all letters of a box that have not expired, as the store lists them: of the client's inbox, or of all inboxes those that it sent.
async fn list(
    engine: &Engine,
    client: &Client,
    which: LetterBox,
    answers: &Answers,
) -> Result<(), BrokerFault> {
    let _permit = engine.lists.acquire().await;
    let (now, access, own) = (crate::now(), engine.access(), [client.key]);
    let inboxes: Vec<&PublicKey> = match which {
        LetterBox::Inbox => own.iter().collect(),
        LetterBox::Sent => access.keys().collect(),
    };
    for receiver in inboxes {
        let mut inbox = letters::Inbox::open(engine, receiver, None);
        while let Some(page) = inbox.next().await {
            let page = page.map_err(|fault| refusal(&fault))?;
            let is_told = |name: &&LetterName| {
                name.expires > now && (which == LetterBox::Inbox || name.object.sender == client.key)
            };
            let told: Vec<Letter> = page
                .iter()
                .filter(is_told)
                .map(|name| {
                    engine.index.insert(receiver, name);
                    name.to(*receiver)
                })
                .collect();
            for some in told.chunks(LETTERS) {
                if !answers.say(&BrokerAnswer::Letters(some.to_vec())).await {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}
