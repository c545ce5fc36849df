//! A bus that one at a time has, in the order in which it was asked for.

use core::time::Duration;

use strait_clock::Time;

/// What a transfer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusSettings {
    /// Cycles a second.
    pub hertz: u64,
    /// Bytes a cycle: b of equation 5.
    pub width: u64,
    /// Cycles to assert the address.
    pub address: u64,
}

impl BusSettings {
    /// Equation 5: `t_bus_cycle * (c_address + ceil(l_data / b))`.
    #[must_use]
    pub fn time(&self, bytes: u64) -> Duration {
        let cycles = self.address + bytes.div_ceil(self.width.max(1));
        let nanos = u128::from(cycles) * 1_000_000_000 / u128::from(self.hertz.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The bus, and until when it is taken. A later request gets it later, so a queue of requests would say no more.
#[derive(Debug)]
pub(super) struct Bus {
    settings: BusSettings,
    free_at: Time,
}

impl Bus {
    pub(super) const fn new(settings: BusSettings) -> Bus {
        Bus { settings, free_at: Time::ZERO }
    }

    /// When a transfer ends that is asked for at `now`.
    pub(super) fn transfer(&mut self, bytes: u64, now: Time) -> Time {
        self.free_at = self.free_at.max(now) + self.settings.time(bytes);
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PCI: BusSettings = BusSettings { hertz: 66_000_000, width: 4, address: 1 };

    #[test]
    fn equation_5_by_hand() {
        for (bytes, cycles) in [(0, 1), (1, 2), (4, 2), (5, 3), (1024, 257)] {
            let expected = cycles * 1_000_000_000 / 66_000_000;
            assert_eq!(PCI.time(bytes), Duration::from_nanos(expected), "{bytes}");
        }
        assert_eq!(
            BusSettings { hertz: 0, width: 0, address: u64::MAX / 2 }.time(1).as_nanos(),
            u128::from(u64::MAX)
        );
    }

    #[test]
    fn in_the_order_of_requests() {
        let mut bus = Bus::new(BusSettings { hertz: 1_000_000_000, ..PCI });
        let at = Time::from_nanos;
        assert_eq!(bus.transfer(36, at(100)), at(110));
        assert_eq!(bus.transfer(16, at(103)), at(115));
        assert_eq!(bus.transfer(16, at(200)), at(205));
    }
}
