//! A holder's daily keys: of each node whose certificate is held, the newest that it signed.

use strait_keying::PublicKey;
use strait_keying::sessionless::{DailyKeys, Day, key_name};
use strait_wire::sessionless::Name;

use super::Holder;

/// After how many seconds a directory is asked again for daily keys that do not have the day after this one.
const AGAIN: u64 = 300;
/// The same where they have it: a node that lost its secrets has published others.
const AGAIN_KNOWN: u64 = 3600;

impl Holder {
    /// Takes daily keys that a directory gave, if they are newer than what is held of a node whose certificate is; says whose they are.
    ///
    /// # Errors
    /// In words, if the node did not sign them: the directory lies.
    pub(in crate::daemon::directory) fn take_daily_keys(
        &mut self,
        bytes: &[u8],
        unix: u64,
    ) -> Result<Option<PublicKey>, String> {
        let keys =
            DailyKeys::from_bytes(bytes).map_err(|error| format!("what the directory gave {error}"))?;
        let Some(held) = self.held.get_mut(keys.node()).filter(|_| keys.is_near(unix)) else {
            return Ok(None);
        };
        if held.daily.as_ref().is_some_and(|known| known.number() >= keys.number()) {
            return Ok(None);
        }
        let node = *keys.node();
        held.daily = Some(keys);
        Ok(Some(node))
    }

    /// The daily keys of a node that is a peer.
    pub(in crate::daemon::directory) fn daily_keys(&self, node: &PublicKey) -> Option<&DailyKeys> {
        self.held.get(node).filter(|held| held.admitted)?.daily.as_ref()
    }

    /// Names of peers for whose daily keys a directory is to be asked now, `most` of them; they count as asked for.
    pub(in crate::daemon::directory) fn ask_for_daily_keys(&mut self, unix: u64, most: usize) -> Vec<Name> {
        let next = Day(Day::at(unix).0.saturating_add(1));
        let mut names = Vec::new();
        for (key, held) in self.held.iter_mut().filter(|(_, held)| held.admitted) {
            let is_known = held.daily.as_ref().is_some_and(|keys| keys.on(next).is_some());
            let again = if is_known { AGAIN_KNOWN } else { AGAIN };
            if names.len() < most && held.asked.is_none_or(|asked| asked.abs_diff(unix) >= again) {
                held.asked = Some(unix);
                names.push(key_name(key));
            }
        }
        names
    }
}
