//! The end of an upload: the last piece, then a letter to each receiver.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::future::join_all;
use object_store::PutPayload;
use strait_keying::PublicKey;
use strait_transfer::broker::message::{BrokerAnswer, BrokerFault, FaultKind, LetterKind, ObjectName};

use super::{Asked, Upload, held, tell_refused};
use crate::audit::{Deed, Line};
use crate::engine::{Client, Engine};
use crate::letters;
use crate::names::{self, LetterName};
use crate::removal;
use crate::session::answers::Answers;
use crate::status::refusal;
use crate::store::Made;
use crate::usage::{Reserved, Sums};

/// Finishes an upload, writes it down, and tells the client.
pub(crate) async fn finish(
    engine: &Arc<Engine>,
    client: &Client,
    upload: Upload,
    contents: u64,
    answers: &Answers,
) {
    let (id, receivers) = (upload.asked.name.id, upload.asked.receivers.clone());
    let bytes = contents.saturating_add(upload.manifest.len());
    let answer = match commit(engine, upload, contents).await {
        Ok(answered) => {
            engine.counts.stored.fetch_add(1, Ordering::Relaxed);
            let mut line = Line::new(Deed::Put, Some(&client.name), &client.key);
            line.id = Some(id.to_string());
            line.bytes = bytes;
            line.receivers = receivers.iter().map(PublicKey::to_string).collect();
            engine.audit.say(line).await;
            if let Some(letter) = answered {
                let line = Line {
                    sender: Some(letter.object.sender.to_string()),
                    ..Line::removed(client, id, letter.size())
                };
                engine.audit.say(line).await;
            }
            BrokerAnswer::Stored { id }
        }
        Err(fault) => {
            tell_refused(engine, client, id, &fault, bytes).await;
            BrokerAnswer::Refused { id: Some(id), fault }
        }
    };
    answers.say(&answer).await;
}

/// The letter that was answered, if it was a receipt.
async fn commit(
    engine: &Arc<Engine>,
    mut upload: Upload,
    contents: u64,
) -> Result<Option<LetterName>, BrokerFault> {
    match prepare(engine, &mut upload, contents).await {
        Ok(ready) => put_letters(engine, upload, ready).await,
        Err(fault) => {
            upload.give_up(engine, &fault).await;
            Err(fault)
        }
    }
}

/// An object whose letters are put.
struct Ready {
    name: LetterName,
    /// Room for the letters.
    room: Reserved,
    /// The letter that a receipt answers.
    answered: Option<LetterName>,
}

/// Brings all contents into the store, and takes room for the letters.
async fn prepare(engine: &Arc<Engine>, upload: &mut Upload, contents: u64) -> Result<Ready, BrokerFault> {
    if !upload.is_known && contents > 0 {
        upload.look(engine).await?;
    }
    if upload.manifest.len() == 0 {
        return Err(BrokerFault::new(FaultKind::Mismatch, "it has no manifest: no receiver could open it"));
    }
    whole(engine, upload, contents).await?;
    let name = LetterName {
        kind: upload.asked.kind,
        object: upload.asked.name,
        made: upload.asked.made,
        expires: upload.asked.expires,
        manifest: upload.manifest.len(),
        contents,
        count: u8::try_from(upload.asked.receivers.len()).map_err(|_| FaultKind::Mismatch)?,
    };
    if upload.was_there {
        differs(engine, &upload.asked.receivers, &name).await?;
    }
    // Configurations change while uploads go on.
    engine.access().may_put(&name.object.sender, name.kind, &upload.asked.receivers)?;
    let answered = match name.kind {
        LetterKind::Receipt => Some(answered(engine, &upload.asked).await?),
        LetterKind::Transfer => None,
    };
    upload.manifest_room = engine.usage.reserve_nothing();
    let mut letters = Sums::default();
    upload.asked.receivers.iter().for_each(|receiver| letters.letter(receiver, &name));
    // It is an object now.
    letters.uploads(&name.object.sender, -i128::from(upload.counts));
    let room = engine.usage.reserve(letters, &engine.access())?;
    Ok(Ready { name, room, answered })
}

/// Brings all contents into the store.
async fn whole(engine: &Arc<Engine>, upload: &mut Upload, contents: u64) -> Result<(), BrokerFault> {
    upload.is_whole()?;
    if upload.next() != contents {
        return Err(BrokerFault::new(FaultKind::Mismatch, "other bytes came than are committed"));
    }
    // A piece is put when the one before it is known to be this object's.
    upload.settle().await?;
    if upload.part.len() > 0 {
        upload.put_piece(engine).await?;
    }
    Ok(())
}

/// The letter that a receipt answers: it has to be in the inbox of who sends the receipt, and goes when that is stored, so that there is one
/// receipt for each.
async fn answered(engine: &Engine, asked: &Asked) -> Result<LetterName, BrokerFault> {
    let [sender] = *asked.receivers else {
        return Err(BrokerFault::new(FaultKind::Mismatch, "a receipt goes to the sender of its transfer"));
    };
    let (own, object) = (&asked.name.sender, ObjectName { sender, id: asked.name.id });
    let found = letters::find(engine, own, own, LetterKind::Transfer, &object).await;
    let found = found.map_err(|fault| refusal(&fault))?.filter(|letter| letter.expires > crate::now());
    found.ok_or_else(|| {
        BrokerFault::new(FaultKind::NotFound, "a receipt answers a transfer that is in the inbox, once")
    })
}

/// Puts a letter into each inbox.
async fn put_letters(
    engine: &Engine,
    upload: Upload,
    ready: Ready,
) -> Result<Option<LetterName>, BrokerFault> {
    let Ready { name, room, answered } = ready;
    let Upload { asked, manifest, was_there, counts, claim, .. } = upload;
    let (manifest, _file) = manifest.payload(engine).await.map_err(|error| engine.spool_refusal(&error))?;
    let content = letter(&asked.receivers, &name, manifest);
    let put = asked.receivers.iter().map(|receiver| send(engine, receiver, &name, content.clone()));
    let put = join_all(put).await;
    let new = asked.receivers.iter().zip(&put).filter(|(_, made)| matches!(made, Ok(Made::New)));
    if let Some(Err(fault)) = put.iter().find(|put| put.is_err()) {
        for (receiver, _) in new {
            take_back(engine, receiver, &name).await;
        }
        return Err(fault.clone());
    }
    let mut made = Sums::default();
    new.for_each(|(receiver, _)| made.letter(receiver, &name));
    made.uploads(&name.object.sender, -i128::from(counts));
    room.settle_part(&made);
    // Of several receivers, one may have fetched it, and removed what no letter needed yet; what was forgotten may have been collected.
    let may_lack = was_there || asked.receivers.len() > 1;
    if name.contents > 0 && may_lack {
        let (there, _) = held::counted(engine, &name.object).await.map_err(|fault| refusal(&fault))?;
        if there != name.contents {
            return Err(BrokerFault::new(FaultKind::Store, "pieces were removed meanwhile; put it again"));
        }
    }
    if let Some(answered) = &answered {
        let own = &name.object.sender;
        removal::letter(engine, own, answered).await.map_err(|fault| refusal(&fault))?;
    }
    drop(claim);
    Ok(answered)
}

/// Refuses another object of the same name.
async fn differs(engine: &Engine, receivers: &[PublicKey], name: &LetterName) -> Result<(), BrokerFault> {
    for receiver in receivers {
        let found = letters::all(engine, &name.object.sender, receiver, name.kind, &name.object).await;
        let found = found.map_err(|fault| refusal(&fault))?;
        if found.iter().any(|other| other != name) {
            return Err(FaultKind::Exists.into());
        }
    }
    Ok(())
}

/// The content of a letter.
fn letter(receivers: &[PublicKey], name: &LetterName, manifest: PutPayload) -> PutPayload {
    if name.head() == 0 {
        return manifest;
    }
    let head: Vec<u8> = receivers.iter().flat_map(PublicKey::as_bytes).copied().collect();
    std::iter::once(Bytes::from(head)).chain(manifest).collect()
}

/// Puts a letter into an inbox.
async fn send(
    engine: &Engine,
    receiver: &PublicKey,
    name: &LetterName,
    content: PutPayload,
) -> Result<Made, BrokerFault> {
    let made = engine.store.create(&names::letter(receiver, name), content).await;
    let made = made.map_err(|fault| refusal(&fault))?;
    engine.index.insert(receiver, name);
    Ok(made)
}

/// Removes a letter of an object that was not stored for all. One that cannot be removed is counted with the next list.
async fn take_back(engine: &Engine, receiver: &PublicKey, name: &LetterName) {
    if engine.store.remove(&names::letter(receiver, name)).await.is_ok() {
        engine.index.remove(receiver, name.kind, &name.object);
    }
}
