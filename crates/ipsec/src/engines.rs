//! The engines of a node, as the scheduler sees them: the thread that calls, and workers beside it.

use strait_model::{Cost, Seconds};
use strait_scheduler::{Dispatcher, Engine, Price};

/// Jobs for each engine: one in the works, one that waits for it, and one whose result is being taken on.
pub(crate) const JOBS_AN_ENGINE: usize = 3;
/// What it takes to wake a thread with a job and to be woken with the result: two futex calls and two turns of the system's
/// scheduler, measured on one machine at 12 to 25 us.
const HANDING_OVER: Seconds = Seconds(20e-6);

/// The calling thread, engine 0, and so many workers: alike, but that a job has to be brought to a worker and back. `costs`
/// are those of each algorithm on one of them.
pub(crate) fn dispatcher(workers: usize, costs: impl Iterator<Item = Option<Cost>> + Clone) -> Dispatcher {
    let engine = |handing: Seconds| {
        let price = |cost: Option<Cost>| {
            let cost = cost?;
            Some(Price::from(Cost { set_up: cost.set_up + handing, ..cost }))
        };
        Engine { prices: costs.clone().map(price).collect(), jobs: JOBS_AN_ENGINE }
    };
    let alone = core::iter::once(engine(Seconds(0.0)));
    Dispatcher::new(alone.chain(core::iter::repeat_n(engine(HANDING_OVER), workers)).collect())
}
