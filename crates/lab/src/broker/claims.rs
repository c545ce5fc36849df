//! What the post says of its tests, and what it is judged by.

pub(super) mod rules;

use super::machine::PlaceTable;
use super::printed::{PLACES, TABLE};

/// Figures that sentences are judged by, as far as a set has them.
#[derive(Clone, Debug)]
pub(super) struct BrokerFigures {
    /// Speeds of 100, with data that shrinks 10 to 12 times.
    pub(super) table: PlaceTable,
    /// The same with data that shrinks 3 to 4 times.
    pub(super) less: Option<PlaceTable>,
    /// Parts of a hundred of a core that RC4 adds, on the fast network and on the slow one.
    pub(super) rc4_load: Option<[f64; 2]>,
    /// Nanoseconds a byte, by key from short to long: of RC4 and of AES.
    pub(super) keys: Option<[[f64; 3]; 2]>,
    /// Ratio and nanoseconds a byte of DEFLATE at `BEST_SPEED`, at the default and at the best level.
    pub(super) levels: Option<[(f64, f64); 3]>,
}

impl BrokerFigures {
    /// The post's table. It prints no load of RC4 but in the sentence that is judged; what follows from its row from disk to disk is
    /// computed.
    pub(super) const fn printed() -> BrokerFigures {
        BrokerFigures::of(TABLE)
    }

    /// A table and nothing else.
    pub(super) const fn of(table: PlaceTable) -> BrokerFigures {
        BrokerFigures { table, less: None, rc4_load: None, keys: None, levels: None }
    }
}

/// Cells of a table that are there: names of place and cipher, the plain figure and the compressed one.
fn pairs(
    table: &PlaceTable,
    places: &'static [usize],
) -> impl Iterator<Item = ([&'static str; 2], usize, [f64; 2])> {
    let table = *table;
    places.iter().flat_map(move |place| {
        ["none", "TLS", "RC4", "AES"].into_iter().enumerate().filter_map(move |(cipher, name)| {
            let [plain, compressed] = [0, 1].map(|at| table[*place][2 * cipher + at]);
            Some(([PLACES[*place], name], cipher, [plain?, compressed?]))
        })
    })
}
