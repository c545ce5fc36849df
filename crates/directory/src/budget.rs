//! What each source may cost: questions, bytes, connections.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Questions a second of one source, each with up to [`BYTES`] of an answer: what one core answers in a tenth of its time.
const RATE: f64 = 2_000.0;
/// Questions at once.
const BURST: f64 = 2_000.0;
/// Bytes of an answer that cost as much as a question.
const BYTES: usize = 4096;
/// What something costs that the authority did not sign: verifying it took as long as some ten look-ups, and it is not meant well.
pub(crate) const FOREIGN: f64 = 100.0;
/// Sources that are remembered; one that is forgotten begins anew.
const SOURCES: usize = 8192;
/// Connections of one source: nodes behind one address of a network.
const CONNECTIONS: usize = 256;

/// Who pays: an IPv4 address, or the first 64 bits of an IPv6 address, which is what one site has.
pub(crate) type Source = u128;

/// The source of a connection.
pub(crate) fn source(address: IpAddr) -> Source {
    match address.to_canonical() {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address) >> 64 << 64 | 1 << 63,
    }
}

/// What the answer of so many bytes costs.
pub(crate) fn cost(bytes: usize) -> f64 {
    // An answer has less than a MiB.
    1.0 + f64::from(u32::try_from(bytes / BYTES).unwrap_or(u32::MAX))
}

#[derive(Clone, Copy, Debug)]
struct Account {
    left: f64,
    at: Instant,
    connections: usize,
}

/// The accounts of all sources.
#[derive(Debug, Default)]
pub(crate) struct Budgets(BTreeMap<Source, Account>);

impl Budgets {
    fn account(&mut self, source: Source, now: Instant) -> &mut Account {
        if !self.0.contains_key(&source) && self.0.len() >= SOURCES {
            // Who has no connection and owes nothing is as good as new.
            self.0.retain(|_, account| account.connections > 0 || account.refilled(now) < BURST);
        }
        let account = self.0.entry(source).or_insert(Account { left: BURST, at: now, connections: 0 });
        account.left = account.refilled(now);
        account.at = now;
        account
    }

    /// Whether the source may have another connection.
    pub(crate) fn connect(&mut self, source: Source, now: Instant) -> bool {
        if !self.0.contains_key(&source) && self.0.len() >= 2 * SOURCES {
            return false;
        }
        let account = self.account(source, now);
        let may = account.connections < CONNECTIONS;
        account.connections += usize::from(may);
        may
    }

    /// A connection has ended.
    pub(crate) fn disconnect(&mut self, source: Source, now: Instant) {
        let account = self.account(source, now);
        account.connections = account.connections.saturating_sub(1);
    }

    /// Takes `cost`; says how long the source has to wait before its next question.
    pub(crate) fn take(&mut self, source: Source, cost: f64, now: Instant) -> Duration {
        let account = self.account(source, now);
        account.left -= cost;
        Duration::from_secs_f64((-account.left / RATE).max(0.0))
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

    #[test]
    fn who_asks_more_than_it_may_waits_and_others_do_not() {
        let (mut budgets, now) = (Budgets::default(), Instant::now());
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|address| source(address.parse().unwrap()));
        for _ in 0..2_000 {
            assert_eq!(budgets.take(one, 1.0, now), Duration::ZERO);
        }
        assert_eq!(budgets.take(one, 200.0, now), Duration::from_millis(100));
        assert_eq!(budgets.take(other, 1.0, now), Duration::ZERO);
        assert_eq!(budgets.take(one, 1.0, now + Duration::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn a_site_is_one_source_and_has_so_many_connections() {
        let of = |address: &str| source(address.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        let (mut budgets, now) = (Budgets::default(), Instant::now());
        assert_eq!((0..1000).filter(|_| budgets.connect(1, now)).count(), CONNECTIONS);
        budgets.disconnect(1, now);
        assert!(budgets.connect(1, now) && !budgets.connect(1, now));
    }

    #[test]
    fn many_sources_take_bounded_memory() {
        let (mut budgets, now) = (Budgets::default(), Instant::now());
        for source in 0..100_000 {
            budgets.take(source, 0.0, now);
        }
        assert!(budgets.0.len() <= SOURCES, "{}", budgets.0.len());
        let connected = (0..100_000).filter(|source| budgets.connect(*source, now)).count();
        assert_eq!((connected, budgets.0.len()), (2 * SOURCES, 2 * SOURCES));
    }
}
