//! The budget of each source: questions, bytes, and places for connections and for what they send.
//!
//! A site has a /64 of IPv6, an office or a customer mostly a /56 or a /48, and a stranger as many addresses of these as it likes. So
//! each of them counts, as do an address, a /28 and a /24 of IPv4. When all places are taken, the network that has most of them gives one up.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use strait_scheduler::Rate;
use tokio::task::AbortHandle;

/// Questions a second of the smallest network, each with up to [`BYTES`] of an answer: what one core answers in a tenth of its time.
const RATE: f64 = 2_000.0;
/// Questions at once.
const BURST: f64 = 2_000.0;
/// Bytes of an answer that cost as much as a question.
const BYTES: usize = 4096;
/// What something costs that the authority did not sign: verifying it took as long as some ten look-ups, and it is not meant well.
pub(crate) const FOREIGN: f64 = 100.0;
/// Networks that are remembered; one that is forgotten begins anew.
const NETWORKS: usize = 3 * 8192;
/// Connections that may be about to end while others come.
const ENDING_MAX: usize = 64;
/// The share of all places that connections about to end may have beyond those: one in so many.
const ENDING_SHARE: usize = 8;
/// Bytes of memory in a place: what a connection takes with its buffer, and a part of a message.
pub(crate) const PLACE: usize = 16 << 10;

/// Bytes of an answer that leave at once where the link has a rate: others come between.
const PIECE: usize = 16 << 10;
/// Time behind its last byte for which a network counts as one that is sent to.
const SENT_TO: Duration = Duration::from_secs(1);

/// The bits of a network, and the share of all places that it may have: one in so many.
type Share = (u32, usize);
/// Of IPv6: what a site has, and what customers get (RFC 6177).
const SIX: [Share; 3] = [(64, 16), (56, 8), (48, 4)];
/// Of IPv4: an address, what an office gets, and what is not routed in parts.
const FOUR: [Share; 3] = [(32, 16), (28, 8), (24, 4)];

/// The networks of an address, the smallest first: they pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source([Network; 3]);

/// A network, and the share of places and questions that it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    name: u128,
    share: usize,
}

impl Source {
    /// The networks of an address.
    pub(crate) fn of(address: IpAddr) -> Source {
        // In the last bits, which no network has, is the number of its bits: that tells it from a smaller one.
        let network = |bits: u128, (len, share): Share| Network {
            name: bits >> (128 - len) << (128 - len) | u128::from(len),
            share,
        };
        Source(match address.to_canonical() {
            IpAddr::V4(address) => FOUR.map(|share| network(u128::from(u32::from(address)) << 96, share)),
            IpAddr::V6(address) => SIX.map(|share| network(u128::from(address), share)),
        })
    }

    /// The largest, which gives places up.
    const fn whole(self) -> u128 {
        let Source([_, _, whole]) = self;
        whole.name
    }
}

/// What the answer of so many bytes costs.
pub(crate) fn cost(bytes: usize) -> f64 {
    // An answer has less than a MiB.
    1.0 + f64::from(u32::try_from(bytes / BYTES).unwrap_or(u32::MAX))
}

/// A network's.
#[derive(Clone, Copy, Debug)]
struct Account {
    left: f64,
    at: Instant,
    places: usize,
    /// The moment at which the link has carried what it was sent last, within its share.
    sent_until: Option<Instant>,
}

/// A connection. Its number grows with each question, so that the least is the one that has asked nothing for longest.
#[derive(Debug)]
struct Guest {
    source: Source,
    places: usize,
    /// Ends it.
    handle: Option<AbortHandle>,
}

/// The accounts of all networks, and the connections.
#[derive(Debug)]
pub(crate) struct Budgets {
    /// Places of all together.
    places: usize,
    /// The rate of the link, if it has one here.
    up: Option<Rate>,
    /// The largest networks that are sent to, as they were counted last, and when.
    sent_to: (u32, Instant),
    taken: usize,
    /// Places of connections that had to give them up, and have yet to end.
    ending: BTreeMap<u64, usize>,
    ending_places: usize,
    accounts: BTreeMap<u128, Account>,
    guests: BTreeMap<u64, Guest>,
    next: u64,
    /// The connections of each largest network.
    of_network: BTreeMap<u128, BTreeSet<u64>>,
    /// The largest networks by their places.
    by_size: BTreeSet<(usize, u128)>,
}

impl Budgets {
    pub(crate) fn new(places: usize, up: Option<Rate>, now: Instant) -> Budgets {
        Budgets {
            places,
            up,
            sent_to: (0, now),
            taken: 0,
            ending: BTreeMap::new(),
            ending_places: 0,
            accounts: BTreeMap::new(),
            guests: BTreeMap::new(),
            next: 0,
            of_network: BTreeMap::new(),
            by_size: BTreeSet::new(),
        }
    }

    /// Gives a connection a place and a number. When all are taken, one of the network with most of them ends. Nothing if a network of
    /// its own has as many as it may.
    pub(crate) fn connect(&mut self, source: Source, now: Instant) -> Option<u64> {
        if !self.fits(source, 1) {
            return None;
        }
        self.make_room(1, now);
        self.resize(source, 0, 1, now);
        self.next += 1;
        self.guests.insert(self.next, Guest { source, places: 1, handle: None });
        self.of_network.entry(source.whole()).or_default().insert(self.next);
        Some(self.next)
    }

    /// Says how a connection is ended.
    pub(crate) fn begun(&mut self, number: u64, handle: AbortHandle) {
        match self.guests.get_mut(&number) {
            Some(guest) => guest.handle = Some(handle),
            // It had to give its place up meanwhile.
            None => handle.abort(),
        }
    }

    /// A connection has asked something: its new number.
    pub(crate) fn asked(&mut self, number: u64) -> u64 {
        let Some(guest) = self.guests.remove(&number) else { return number };
        self.next += 1;
        if let Some(all) = self.of_network.get_mut(&guest.source.whole()) {
            all.remove(&number);
            all.insert(self.next);
        }
        self.guests.insert(self.next, guest);
        self.next
    }

    /// Gives a connection so many places for what it sends, those that it has included. Nothing if it may not have as many; false if it
    /// has to ask again when others have ended.
    pub(crate) fn hold(&mut self, number: u64, places: usize, now: Instant) -> Option<bool> {
        let (source, held) = self.guests.get(&number).map(|guest| (guest.source, guest.places))?;
        let more = places.saturating_sub(held);
        if !self.fits(source, more) {
            return None;
        }
        self.make_room(more, now);
        // It may have been the one that had to go.
        let guest = self.guests.get_mut(&number)?;
        if more > 0 && self.taken + more + self.ending_places > self.places + self.places / ENDING_SHARE {
            return Some(false);
        }
        guest.places = places;
        self.resize(source, held, places, now);
        Some(true)
    }

    /// True while many connections have yet to end.
    pub(crate) fn is_crowded(&self) -> bool {
        self.ending.len() > ENDING_MAX
    }

    /// A connection has ended.
    pub(crate) fn leave(&mut self, number: u64, now: Instant) {
        self.ending_places -= self.ending.remove(&number).unwrap_or(0);
        self.give_up(number, now);
    }

    /// Takes the places of a connection, and ends it if it has not ended.
    fn give_up(&mut self, number: u64, now: Instant) {
        let Some(guest) = self.guests.remove(&number) else { return };
        let whole = guest.source.whole();
        if let Some(all) = self.of_network.get_mut(&whole) {
            all.remove(&number);
            if all.is_empty() {
                self.of_network.remove(&whole);
            }
        }
        self.resize(guest.source, guest.places, 0, now);
        if let Some(handle) = guest.handle {
            handle.abort();
        }
    }

    /// Takes `cost`; says how long the source has to wait before its next question.
    pub(crate) fn take(&mut self, source: Source, cost: f64, now: Instant) -> Duration {
        let Source([Network { share: least, .. }, ..]) = source;
        let waits = source.0.map(|network| {
            // A network of sixteen has the questions of four, as it has the places.
            let scale = f64::from(u32::try_from(least / network.share).unwrap_or(1));
            let account = self.account(network.name, now);
            account.left -= cost / scale;
            -account.left / RATE
        });
        Duration::from_secs_f64(waits.into_iter().fold(0.0, f64::max))
    }

    /// Bytes of an answer that leave at once: all where the link has no rate.
    pub(crate) fn piece(&self) -> usize {
        self.up.map_or(usize::MAX, |_| PIECE)
    }

    /// Lets so many bytes leave, or says how long to wait before the next try. The largest networks that are sent to share the rate of
    /// the link.
    pub(crate) fn send(&mut self, source: Source, bytes: usize, now: Instant) -> Duration {
        let Some(up) = self.up else { return Duration::ZERO };
        let is_sent_to = |account: &Account| account.sent_until.is_some_and(|until| until + SENT_TO > now);
        if now >= self.sent_to.1 + SENT_TO {
            let accounts = self.of_network.keys().filter_map(|name| self.accounts.get(name));
            let count = accounts.filter(|account| is_sent_to(account)).count();
            self.sent_to = (u32::try_from(count).unwrap_or(u32::MAX), now);
        }
        let (mut count, _) = self.sent_to;
        let account = self.account(source.whole(), now);
        count += u32::from(!is_sent_to(account));
        let wait = account.sent_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        if wait.is_zero() {
            account.sent_until = Some(now + up.time_for(bytes as u64) * count.max(1));
        }
        self.sent_to.0 = count;
        wait.min(SENT_TO)
    }

    /// True if all networks of a source may have so many places more.
    fn fits(&self, source: Source, more: usize) -> bool {
        let fits = |network: Network| {
            let held = self.accounts.get(&network.name).map_or(0, |account| account.places);
            held + more <= (self.places / network.share).max(1)
        };
        source.0.into_iter().all(fits)
    }

    /// Ends connections until so many places are free: of the network with most, that which has asked nothing for longest.
    fn make_room(&mut self, places: usize, now: Instant) {
        while self.taken + places > self.places
            && let Some((_, whole)) = self.by_size.last()
            && let Some(oldest) = self.of_network.get(whole).and_then(|all| all.first()).copied()
        {
            let places = self.guests.get(&oldest).map_or(0, |guest| guest.places);
            self.ending.insert(oldest, places);
            self.ending_places += places;
            self.give_up(oldest, now);
        }
    }

    /// Counts a connection of so many places in another number of them.
    fn resize(&mut self, source: Source, from: usize, to: usize, now: Instant) {
        let changed = |held: usize| (held + to).saturating_sub(from);
        self.taken = changed(self.taken);
        for network in source.0 {
            let account = self.account(network.name, now);
            let held = account.places;
            account.places = changed(held);
            if network.name == source.whole() {
                self.by_size.remove(&(held, network.name));
                if changed(held) > 0 {
                    self.by_size.insert((changed(held), network.name));
                }
            }
        }
    }

    fn account(&mut self, network: u128, now: Instant) -> &mut Account {
        if !self.accounts.contains_key(&network) && self.accounts.len() >= NETWORKS {
            // Who has no connection and owes nothing is as good as new.
            self.accounts.retain(|_, account| account.places > 0 || account.refilled(now) < BURST);
        }
        let account = self.accounts.entry(network).or_insert(Account {
            left: BURST,
            at: now,
            places: 0,
            sent_until: None,
        });
        account.left = account.refilled(now);
        account.at = now;
        account
    }
}

impl Account {
    fn refilled(&self, now: Instant) -> f64 {
        (self.left + RATE * now.saturating_duration_since(self.at).as_secs_f64()).min(BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many as a directory has.
    const PLACES: usize = 4096;

    fn of(address: &str) -> Source {
        Source::of(address.parse().unwrap())
    }

    #[test]
    fn who_asks_more_than_it_may_waits_and_others_do_not() {
        let now = Instant::now();
        let mut budgets = Budgets::new(PLACES, None, now);
        let [one, other] = ["192.0.2.1", "198.51.100.2"].map(of);
        for _ in 0..2_000 {
            assert_eq!(budgets.take(one, 1.0, now), Duration::ZERO);
        }
        assert_eq!(budgets.take(one, 200.0, now), Duration::from_millis(100));
        assert_eq!(budgets.take(other, 1.0, now), Duration::ZERO);
        assert_eq!(budgets.take(one, 1.0, now + Duration::from_secs(1)), Duration::ZERO);
        // Many addresses of one network have four times as much as one.
        let many = (0..65_536).map(|site| of(&format!("2001:db8:0:{site:x}::1")));
        let free = many.take_while(|site| budgets.take(*site, 1.0, now).is_zero()).count();
        assert_eq!(free, 8_000);
    }

    #[test]
    fn a_network_has_a_share_of_the_places_however_many_addresses_it_has() {
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        let now = Instant::now();
        for (name, most) in [("2001:db8::", 256), ("2001:db8:0:X::", 512), ("2001:db8:0:X00::", 1024)] {
            let mut budgets = Budgets::new(PLACES, None, now);
            let addresses = (0..4_096).map(|at| name.replace('X', &format!("{:x}", at % 32)) + "1");
            assert_eq!(addresses.filter(|it| budgets.connect(of(it), now).is_some()).count(), most, "{name}");
        }
        for (name, most) in [("192.0.2.1", 256), ("192.0.2.X", 1024)] {
            let mut budgets = Budgets::new(PLACES, None, now);
            let addresses = (0..4_096).map(|at| name.replace('X', &(at % 256).to_string()));
            assert_eq!(addresses.filter(|it| budgets.connect(of(it), now).is_some()).count(), most, "{name}");
        }
        let mut budgets = Budgets::new(PLACES, None, now);
        let numbers: Vec<u64> = core::iter::from_fn(|| budgets.connect(of("::1"), now)).collect();
        budgets.leave(numbers[7], now);
        budgets.leave(numbers[7], now);
        assert!(budgets.connect(of("::1"), now).is_some() && budgets.connect(of("::1"), now).is_none());
    }

    #[test]
    fn the_network_with_most_places_gives_up_those_that_asked_nothing_for_longest() {
        let now = Instant::now();
        let mut budgets = Budgets::new(64, None, now);
        let honest = budgets.connect(of("198.51.100.1"), now).unwrap();
        // Four networks of 16 places each would take all; one of them has a message of several places.
        let mut hostile = Vec::new();
        for at in 0..64 {
            hostile.extend(budgets.connect(of(&format!("2001:db8:{}:{at:x}00::1", at % 5)), now));
        }
        assert_eq!(budgets.taken, 64);
        assert!(budgets.guests.contains_key(&honest));
        let hostile: Vec<u64> = hostile.into_iter().filter(|it| budgets.guests.contains_key(it)).collect();
        let largest = budgets.by_size.last().unwrap().1;
        let [first, second, ..] = budgets.of_network[&largest].iter().copied().collect::<Vec<_>>()[..] else {
            panic!("{hostile:?}")
        };
        let first = budgets.asked(first);
        assert!(budgets.connect(of("203.0.113.1"), now).is_some());
        assert!(budgets.guests.contains_key(&first) && !budgets.guests.contains_key(&second));
        assert!(budgets.guests.contains_key(&honest) && budgets.taken == 64);
        // A long message takes places of others than its own network only while that has not most.
        let late =
            (0..6).filter_map(|at| budgets.connect(of(&format!("203.0.113.{}", 16 * at)), now)).count();
        assert_eq!(late, 6);
        assert_eq!(
            (budgets.hold(honest, 4, now), budgets.taken),
            (Some(false), 61),
            "others have yet to end"
        );
        let ending: Vec<u64> = budgets.ending.keys().copied().collect();
        ending.iter().for_each(|number| budgets.leave(*number, now));
        assert_eq!((budgets.hold(honest, 4, now), budgets.taken), (Some(true), 64));
        assert_eq!(budgets.hold(honest, 5, now), None, "an address has a sixteenth");
        budgets.leave(honest, now);
        assert_eq!(budgets.taken, 60);
    }

    #[test]
    fn networks_share_the_rate_of_the_link() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut budgets = Budgets::new(PLACES, Rate::from_bits(1_000_000), start);
        let many: Vec<Source> = (0..4).map(|at| of(&format!("2001:db8:{at}::1"))).collect();
        let honest = of("192.0.2.1");
        for source in many.iter().chain([&honest]) {
            budgets.connect(*source, start).unwrap();
        }
        // Everyone asks a hundred times a second. Returns how much the first and the honest one get, and all.
        let mut run = |from: u32, sources: &[Source]| {
            let mut sent = [0; 3];
            for at in 0..1_000 {
                let now = start + from * second + at * second / 100;
                for source in sources {
                    if budgets.send(*source, 1_000, now).is_zero() {
                        sent[0] += u32::from(*source == many[0]);
                        sent[1] += u32::from(*source == honest);
                        sent[2] += 1;
                    }
                }
            }
            sent
        };
        // One alone has all of it: 10 s take 1,250 kB, and each waits up to a hundredth too long.
        let alone = run(0, &many[..1]);
        assert!((900..=1_250).contains(&alone[0]), "{alone:?}");
        let all: Vec<Source> = many.iter().copied().chain([honest]).collect();
        let together = run(20, &all);
        assert!((200..=300).contains(&together[0]) && (200..=300).contains(&together[1]), "{together:?}");
        assert!(together[2] <= 1_300, "{together:?}");
        // A network is one, however many of it ask.
        let same: Vec<Source> = (0..9).map(|at| of(&format!("2001:db8:0:{at}::1"))).chain([honest]).collect();
        let shared = run(40, &same);
        assert!((500..=650).contains(&shared[1]) && shared[2] <= 1_300, "{shared:?}");
        let mut free = Budgets::new(PLACES, None, start);
        assert!(free.piece() == usize::MAX && free.send(honest, 1 << 30, start).is_zero());
    }

    #[test]
    fn many_networks_take_bounded_memory() {
        let now = Instant::now();
        let mut budgets = Budgets::new(PLACES, None, now);
        let address = |at: u32| Source::of(IpAddr::from((at << 8).to_be_bytes()));
        for at in 0..40_000 {
            budgets.take(address(at), 0.0, now);
        }
        assert!(budgets.accounts.len() <= NETWORKS, "{}", budgets.accounts.len());
        let connected = (0..40_000).filter(|at| budgets.connect(address(*at), now).is_some()).count();
        assert_eq!((connected, budgets.guests.len(), budgets.taken), (40_000, PLACES, PLACES));
        assert!(budgets.is_crowded());
        assert!(budgets.accounts.len() <= NETWORKS + 3 && budgets.by_size.len() == PLACES);
    }
}
