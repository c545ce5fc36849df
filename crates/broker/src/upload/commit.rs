//! The end of an upload: the last piece, then a letter to each receiver.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::future::join_all;
use object_store::PutPayload;
use strait_keying::PublicKey;
use strait_transfer::broker::message::{BrokerAnswer, BrokerFault, FaultKind, LetterKind};

use super::{Upload, held, tell_refused};
use crate::audit::{Deed, Line};
use crate::engine::{Client, Engine};
use crate::letters;
use crate::names::{self, LetterName};
use crate::session::answers::Answers;
use crate::status::{refusal, spool_refusal};
use crate::store::{Made, StoreFault};
use crate::usage::Side;

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
        Ok(()) => {
            engine.counts.stored.fetch_add(1, Ordering::Relaxed);
            let mut line = Line::new(Deed::Put, Some(&client.name), &client.key);
            line.id = Some(id.to_string());
            line.bytes = bytes;
            line.receivers = receivers.iter().map(PublicKey::to_string).collect();
            engine.audit.say(line).await;
            BrokerAnswer::Stored { id }
        }
        Err(fault) => {
            tell_refused(engine, client, id, &fault, bytes).await;
            BrokerAnswer::Refused { id: Some(id), fault }
        }
    };
    answers.say(&answer).await;
}

async fn commit(engine: &Arc<Engine>, mut upload: Upload, contents: u64) -> Result<(), BrokerFault> {
    if !upload.is_known && contents > 0 {
        upload.look(engine).await?;
    }
    match whole(engine, &mut upload, contents).await {
        Ok(()) => {}
        Err(fault) => {
            upload.give_up(engine, &fault).await;
            return Err(fault);
        }
    }
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
    let Upload { asked, manifest, was_there, claim, .. } = upload;
    let (manifest, _file) = manifest.payload(engine).await.map_err(|error| spool_refusal(&error))?;
    let content = letter(&asked.receivers, &name, manifest);
    let put = asked.receivers.iter().map(|receiver| send(engine, receiver, &name, content.clone()));
    let put = join_all(put).await;
    if let Some(Err(fault)) = put.iter().find(|put| put.is_err()) {
        for (receiver, made) in asked.receivers.iter().zip(&put) {
            if matches!(made, Ok(Made::New)) {
                take_back(engine, receiver, &name).await;
            }
        }
        return Err(fault.clone());
    }
    // Of several receivers, one may have fetched it, and removed what no letter needed yet; what was forgotten may have been collected.
    let may_lack = was_there || asked.receivers.len() > 1;
    if contents > 0 && may_lack {
        let (there, _) = held::counted(engine, &name.object).await.map_err(|fault| refusal(&fault))?;
        if there != contents {
            return Err(BrokerFault::new(FaultKind::Store, "pieces were removed meanwhile; put it again"));
        }
    }
    drop(claim);
    Ok(())
}

/// Brings all contents into the store.
async fn whole(engine: &Arc<Engine>, upload: &mut Upload, contents: u64) -> Result<(), BrokerFault> {
    if upload.next() != contents {
        upload.keep(engine).await;
        return Err(BrokerFault::new(FaultKind::Mismatch, "other bytes came than are committed"));
    }
    // A piece is put when the one before it is known to be this object's.
    upload.settle().await?;
    if upload.part.len() > 0 {
        upload.put_piece(engine).await?;
    }
    let manifest = upload.manifest.len() * upload.asked.receivers.len() as u64;
    upload.take_quota(engine, manifest)
}

/// Refuses another object of the same name.
async fn differs(engine: &Engine, receivers: &[PublicKey], name: &LetterName) -> Result<(), BrokerFault> {
    for receiver in receivers {
        let found = letters::all(engine, receiver, name.kind, &name.object).await;
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

/// Puts a letter into an inbox that has room for it.
async fn send(
    engine: &Engine,
    receiver: &PublicKey,
    name: &LetterName,
    content: PutPayload,
) -> Result<Made, BrokerFault> {
    let bytes = name.manifest + name.contents;
    let limit = engine.access().rights(receiver).and_then(|rights| rights.quota_kept);
    let is_receipt = name.kind == LetterKind::Receipt;
    // A receipt makes room: it is small, and its receiver waits for it.
    if !engine.usage.add(Side::Kept, receiver, bytes, limit.filter(|_| !is_receipt)) {
        let whose = engine.access().rights(receiver).map(|rights| rights.name.clone());
        return Err(BrokerFault::new(FaultKind::ReceiverQuota, whose.unwrap_or_default()));
    }
    let made = engine.store.create(&names::letter(receiver, name), content).await;
    if made == Ok(Made::New) {
        engine.usage.count(1, 0);
        engine.index.insert(receiver, name);
    } else {
        engine.usage.subtract(Side::Kept, receiver, bytes);
        engine.usage.subtract(Side::Sent, &name.object.sender, name.manifest);
        engine.usage.count(0, -i128::from(name.manifest));
    }
    made.map_err(|fault: StoreFault| refusal(&fault))
}

/// Removes a letter of an object that was not stored for all.
async fn take_back(engine: &Engine, receiver: &PublicKey, name: &LetterName) {
    if engine.store.remove(&names::letter(receiver, name)).await.is_ok() {
        engine.usage.subtract(Side::Kept, receiver, name.manifest + name.contents);
        engine.usage.subtract(Side::Sent, &name.object.sender, name.manifest);
        engine.usage.count(-1, -i128::from(name.manifest));
        engine.index.remove(receiver, name.kind, &name.object);
    }
}
