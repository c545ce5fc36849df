//! How an end learns who the other is: by its card, from disk or from the directory.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use strait_crypto::SuiteSet;
use strait_ipsec::{Payloads, ReturnPath};
use strait_keying::sessionless::{
    Compression, KeyCard, KijAlgorithm, KnownSender, PacketAlgorithms, PacketKeyLimits, Protection, Sender,
    SenderSettings, WaitingDatagram, key_name,
};
use strait_wire::sessionless::Name;

use super::super::cards::fetched;
use super::{Known, PEER, PingEnd, broken, refused};

impl PingEnd {
    /// Finds a card on disk, or at the directory, and what it says; gives what waited for it.
    pub(super) fn learn(&mut self, name: Name) -> io::Result<Vec<WaitingDatagram>> {
        let start = Instant::now();
        let found = self.cards.read(name)?;
        self.waited.cards += start.elapsed();
        let text = match found {
            Some(text) => {
                self.asked.cards += 1;
                text
            }
            None => self.fetch(name)?,
        };
        let card: KeyCard = text.parse().map_err(|why| refused("read a card", &why))?;
        if key_name(&card.key) != name {
            return Err(broken("a card of another name"));
        }
        let seed = std::array::from_fn(|_| self.random.next_u64() as u8);
        let sender = Sender::new(self.sender_settings(&card), &card.key, &seed);
        let known = Known { key: card.key, sender, out: None, inbound: BTreeMap::new(), used: 0 };
        self.known = Some(known);
        Ok(self.receiver.know(KnownSender {
            peer: PEER,
            key: card.key,
            names: card.header_names().to_vec(),
            epoch: card.epoch,
            suites: SuiteSet::ALL,
            separate: matches!(self.settings.protection, Protection::Separate(..)),
            hybrid: self.settings.hybrid,
            valid: card.valid_wall(),
            mark: self.marks[1].value,
            pinned: false,
        }))
    }

    /// The card as the directory has it, which is on disk from then on.
    fn fetch(&mut self, name: Name) -> io::Result<String> {
        let start = Instant::now();
        let text = fetched(self.place.directory, name)?.ok_or_else(|| broken("the directory has no card"))?;
        self.waited.directory += start.elapsed();
        let start = Instant::now();
        self.cards.keep(name, &text)?;
        self.waited.cards += start.elapsed();
        self.asked.fetched += 1;
        Ok(text)
    }

    fn sender_settings(&self, card: &KeyCard) -> SenderSettings {
        SenderSettings {
            peer: PEER,
            path: ReturnPath::Answers,
            kij: KijAlgorithm::default(),
            algorithms: PacketAlgorithms {
                protection: self.settings.protection,
                compression: Compression::None,
            },
            payloads: Payloads::Standard(None),
            limits: PacketKeyLimits::default(),
            epoch: card.epoch,
            kem: card.kem.clone().filter(|_| self.settings.hybrid),
            destination: Name::NONE,
        }
    }
}
