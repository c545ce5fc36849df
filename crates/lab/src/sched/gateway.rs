//! The paper's machine (section IV-A), and what it leaves open.

use core::time::Duration;

use strait_model::Seconds;
use strait_scheduler::{Limits, Price, WhenFull};
use strait_sim::{BusSettings, MachineSettings, ProcessorSettings};

/// PCI, 32 bits at 66 MHz, with a cycle for the address.
const BUS: BusSettings = BusSettings { hertz: 66_000_000, width: 4, address: 1 };
/// Bits a second of the accelerator.
pub(super) const ACCELERATED: f64 = 230e6;
/// Bytes of a block of AES.
pub(super) const BLOCK: usize = 16;
/// `T_init-ratio`.
const SET_UP_RATIO: f64 = 3.0;
/// `T_enc-ratio`.
pub(super) const RATIOS: [u32; 4] = [1, 3, 5, 7];
/// The place of the one that Figures 4 to 6 are for.
pub(super) const SHOWN_RATIO: usize = 1;
/// W; with 1 there is no window.
pub(super) const WINDOWS: [usize; 3] = [1, 10, 30];
/// The processors' places.
pub(super) const CPU: usize = 0;
pub(super) const ACCELERATOR: usize = 1;

/// A gateway: what the paper leaves open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gateway {
    /// In a few words.
    pub(super) name: &'static str,
    /// The accelerator's `t_init`, in times of its `t_block`.
    pub(super) set_up: f64,
    /// The bytes of a packet that the accelerator does at its rate, set-up included; nothing when the rate is that of blocks
    /// alone.
    pub(super) rated_at: Option<usize>,
    /// Whether the CPU's data crosses the bus too.
    pub(super) cpu_on_bus: bool,
    /// Multi-packets that wait in front of a processor.
    pub(super) depth: usize,
    /// The rule where as many wait as may.
    pub(super) when_full: WhenFull,
}

/// As it is taken here.
///
/// "Each processor loads them in its local memory by using DMA", and the bus goes "to each of the processors": so both are on it.
/// 230 Mbit/s on either side of a `T_enc-ratio` of 1, and 32 at 7, are rates of blocks alone. A FIFO of `SystemC` holds 16
/// unless it is told otherwise (IEEE 1666, `sc_fifo`), and lets its writer wait. Four blocks' time for a set-up is about what
/// some ten accesses to registers across the bus take.
pub(super) const STATED: Gateway = Gateway {
    name: "as taken",
    set_up: 4.0,
    rated_at: None,
    cpu_on_bus: true,
    depth: 16,
    when_full: WhenFull::Wait,
};

/// The same with one choice made otherwise.
pub(super) const VARIED: [Gateway; 8] = [
    Gateway { name: "t_init 1", set_up: 1.0, ..STATED },
    Gateway { name: "t_init 2", set_up: 2.0, ..STATED },
    Gateway { name: "t_init 16", set_up: 16.0, ..STATED },
    Gateway { name: "rated", rated_at: Some(512), ..STATED },
    Gateway { name: "off bus", cpu_on_bus: false, ..STATED },
    Gateway { name: "depth 4", depth: 4, ..STATED },
    Gateway { name: "depth 64", depth: 64, ..STATED },
    Gateway { name: "next", when_full: WhenFull::Next, ..STATED },
];
/// The place of the one with the other rule for full queues.
pub(super) const NEXT: usize = VARIED.len() - 1;

impl Gateway {
    /// Equation 6 for the accelerator.
    pub(super) fn accelerator(&self) -> Price {
        let block_bits = (BLOCK * 8) as f64;
        let per_block = match self.rated_at {
            None => block_bits / ACCELERATED,
            Some(bytes) => (bytes * 8) as f64 / ACCELERATED / (self.set_up + bytes.div_ceil(BLOCK) as f64),
        };
        Price::new(Seconds(per_block * self.set_up), Seconds(per_block), BLOCK as u64)
    }

    /// The machine with a CPU of this `T_enc-ratio` and so many accelerators.
    pub(super) fn machine(&self, ratio: u32, accelerators: usize, window: Limits) -> MachineSettings {
        let price = self.accelerator();
        let accelerator = ProcessorSettings { price, slowdown: 1.0, on_bus: true };
        let slower = price.ratios(SET_UP_RATIO, f64::from(ratio));
        let cpu = ProcessorSettings { price: slower, slowdown: 1.0, on_bus: self.cpu_on_bus };
        let mut processors = vec![accelerator; 1 + accelerators];
        processors[CPU] = cpu;
        MachineSettings {
            bus: BUS,
            processors,
            depth: self.depth,
            when_full: self.when_full,
            in_order: None,
            window,
            tuned: false,
            block: BLOCK,
            source_waits: true,
            learns: false,
        }
    }
}

/// A window of so many packets that knows no other bound.
pub(super) const fn window(packets: usize) -> Limits {
    Limits { packets, bytes: usize::MAX, wait: Duration::MAX }
}
