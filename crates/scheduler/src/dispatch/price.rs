//! What a job costs on an engine: a time to set up and a time a block.

use strait_model::{Bytes, Cost, Seconds};

/// Equation 6: `t_init + t_block * ceil(bytes / block)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// A block's time is what the cost says of its bytes.
    cost: Cost,
    block: u64,
}

impl Price {
    /// Equation 6 as it stands: `set_up` once, and `per_block` for each `block` bytes that were begun; one block at least is
    /// taken for 0.
    #[must_use]
    pub fn new(set_up: Seconds, per_block: Seconds, block: u64) -> Price {
        let block = block.max(1);
        Price { cost: Cost { set_up, per_byte: per_block * (1.0 / block as f64) }, block }
    }

    /// Equation 7: so many times the set-up, and so many times each block.
    #[must_use]
    pub fn ratios(self, set_up: f64, per_block: f64) -> Price {
        let Cost { set_up: once, per_byte } = self.cost;
        Price { cost: Cost { set_up: once * set_up, per_byte: per_byte * per_block }, ..self }
    }

    /// The part that a job takes whatever its bytes.
    pub(super) const fn set_up(&self) -> Seconds {
        self.cost.set_up
    }

    /// The same with blocks' time by the byte.
    pub(super) const fn cost(&self) -> Cost {
        self.cost
    }

    /// What a job of so many bytes takes.
    #[must_use]
    pub fn of(&self, bytes: usize) -> Seconds {
        let bytes = bytes as u64;
        self.cost.of(Bytes(bytes.checked_next_multiple_of(self.block).unwrap_or(bytes)))
    }
}

impl From<Cost> for Price {
    /// What a speed test found, without blocks: [`Cost::through`] two jobs, or a calibration's figures.
    fn from(cost: Cost) -> Price {
        Price { cost, block: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_6_and_7_by_hand() {
        let nanos = |price: Price, bytes| (price.of(bytes).0 * 1e9).round();
        let accelerator = Price::new(Seconds(1e-6), Seconds(500e-9), 16);
        for (bytes, expected) in [(0, 1_000.0), (1, 1_500.0), (16, 1_500.0), (17, 2_000.0), (1024, 33_000.0)]
        {
            assert_eq!(nanos(accelerator, bytes), expected, "{bytes}");
        }
        let cpu = accelerator.ratios(3.0, 5.0);
        assert_eq!((nanos(cpu, 0), nanos(cpu, 17)), (3_000.0, 8_000.0));
        assert!(accelerator.of(usize::MAX).0.is_finite());
    }

    #[test]
    fn price_without_block_size_is_linear_in_bytes() {
        let price = Price::from(Cost::through((Bytes(1000), Seconds(3.0)), (Bytes(3000), Seconds(7.0))));
        assert_eq!(price.of(500), Seconds(2.0));
        assert_eq!(Price::new(Seconds(1.0), Seconds(2.0), 0).of(3), Seconds(7.0));
    }
}
