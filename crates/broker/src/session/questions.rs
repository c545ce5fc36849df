//! Lists and reads of a stream, one after the other.

use std::sync::Arc;

use strait_keying::PublicKey;
use strait_transfer::broker::message::{
    BrokerAnswer, BrokerFault, FaultKind, Letter, LetterBox, LetterKind, ObjectName, ObjectPart,
};
use tokio::sync::mpsc;

use super::answers::Answers;
use crate::audit::{Deed, Line};
use crate::engine::{Client, Engine};
use crate::letters;
use crate::names::{self, LetterName};
use crate::reading;
use crate::status::{refusal, word};

/// Letters in one answer, at 120 bytes each: a page takes eight.
const LETTERS: usize = 128;
/// Inboxes that one page of sent letters looks at: as many as are read within some tens of milliseconds.
const INBOXES: usize = 16;

/// What is asked.
#[derive(Debug)]
pub(super) enum Question {
    /// Asks for the letters behind a place.
    List(LetterBox, Vec<u8>),
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
            Question::List(which, after) => match list(&engine, &client, which, &after, &answers).await {
                Ok(next) => answers.say(&BrokerAnswer::ListEnd { next }).await,
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

/// Tells a page of letters that have not expired, in the order of their names: of the client's inbox, or of those that it sent. Where the
/// next page begins; nothing where there is none.
async fn list(
    engine: &Engine,
    client: &Client,
    which: LetterBox,
    after: &[u8],
    answers: &Answers,
) -> Result<Vec<u8>, BrokerFault> {
    let after = str::from_utf8(after).map_err(|_| FaultKind::Mismatch)?;
    let listed = match which {
        LetterBox::Inbox => inbox_page(engine, client, after).await?,
        LetterBox::Sent => sent_page(engine, client, after).await?,
    };
    let now = crate::now();
    let told: Vec<Letter> = listed
        .letters
        .iter()
        .map(|(receiver, name)| name.to(*receiver))
        .filter(|letter| letter.expires > now)
        .collect();
    for (receiver, name) in &listed.letters {
        engine.index.insert(receiver, name);
    }
    for some in told.chunks(LETTERS) {
        answers.say(&BrokerAnswer::Letters(some.to_vec())).await;
    }
    Ok(listed.next.into_bytes())
}

/// A page of letters, and where the next one begins.
struct Page {
    letters: Vec<(PublicKey, LetterName)>,
    next: String,
}

/// The letters of the client's inbox behind a name.
async fn inbox_page(engine: &Engine, client: &Client, after: &str) -> Result<Page, BrokerFault> {
    if !after.is_empty() && LetterName::parse(after).is_none() {
        return Err(FaultKind::Mismatch.into());
    }
    let page = letters::page(engine, &client.key, &client.key, "", after).await;
    let page = page.map_err(|fault| refusal(&fault))?;
    let last = page.last().filter(|_| page.len() == letters::PAGE);
    let next = last.map(LetterName::file).unwrap_or_default();
    Ok(Page { letters: page.into_iter().map(|name| (client.key, name)).collect(), next })
}

/// The letters that the client sent, behind a receiver and a name in its inbox.
async fn sent_page(engine: &Engine, client: &Client, after: &str) -> Result<Page, BrokerFault> {
    let (first, mut after) = if after.is_empty() {
        (None, "")
    } else {
        names::parse_place(after).map(|(key, name)| (Some(key), name)).ok_or(FaultKind::Mismatch)?
    };
    engine.know_usage().await.map_err(|fault| refusal(&fault))?;
    let mut letters = Vec::new();
    let receivers = engine.usage.receivers(&client.key);
    let receivers = receivers.iter().filter(|key| first.is_none_or(|first| **key >= first));
    for (count, receiver) in receivers.enumerate() {
        if count == INBOXES {
            return Ok(Page { letters, next: names::place(receiver, "") });
        }
        if first != Some(*receiver) {
            after = "";
        }
        for start in names::starts(&client.key) {
            let page = letters::page(engine, &client.key, receiver, &start, after).await;
            let page = page.map_err(|fault| refusal(&fault))?;
            let full = page.len() == letters::PAGE;
            letters.extend(page.into_iter().map(|name| (*receiver, name)));
            if let Some((_, last)) = letters.last().filter(|_| full || letters.len() >= letters::PAGE) {
                let next = names::place(receiver, &last.file());
                return Ok(Page { letters, next });
            }
        }
    }
    Ok(Page { letters, next: String::new() })
}
