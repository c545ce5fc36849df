//! What the store has of an upload.

use std::sync::atomic::Ordering;

use strait_transfer::broker::message::ObjectName;

use crate::engine::Engine;
use crate::names::{self, PIECE};
use crate::store::StoreFault;

/// A newest piece that is this old, in parts of the time after which an upload counts as forgotten, is put again, so that no broker
/// collects the upload while it goes on.
const TOUCHED: i64 = 4;

/// Bytes of whole pieces from the beginning on.
pub(super) async fn stored(engine: &Engine, object: &ObjectName) -> Result<u64, StoreFault> {
    if engine.store.about(&names::piece(object, 0)).await?.is_none() {
        return Ok(0);
    }
    let (stored, newest) = counted(engine, object).await?;
    let forgotten = i64::try_from(engine.limits.forgotten.as_secs()).unwrap_or(i64::MAX);
    let now = crate::now().saturating_add(engine.store_clock.load(Ordering::Relaxed));
    if stored > 0 && now.saturating_sub(newest) > forgotten / TOUCHED {
        let last = (stored - 1) / PIECE;
        let path = names::piece(object, last);
        let bytes = engine.store.read(&path, 0..names::piece_length(stored, last)).await?;
        engine.store.replace(&path, bytes.into()).await?;
    }
    Ok(stored)
}

/// Bytes of pieces without a gap, and when the newest was put, in seconds since 1970 by the store's clock.
pub(super) async fn counted(engine: &Engine, object: &ObjectName) -> Result<(u64, i64), StoreFault> {
    let folder = names::contents(object);
    let begin = || (Vec::new(), i64::MIN);
    let each = |(all, newest): &mut (Vec<(u64, u64)>, i64), about: object_store::ObjectMeta| {
        if let Some((_, number)) = names::parse_piece(&about.location) {
            all.push((number, about.size));
            *newest = (*newest).max(about.last_modified.timestamp());
        }
    };
    let (mut all, newest) = engine.store.gather(&folder, begin, each).await?;
    all.sort_unstable();
    let mut stored = 0;
    for (expected, (number, size)) in (0..).zip(all) {
        if number != expected || size == 0 || size > PIECE {
            break;
        }
        stored += size;
        if size < PIECE {
            break;
        }
    }
    Ok((stored, newest))
}
