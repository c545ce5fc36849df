//! What the paper says of its tables, and what it is judged by.

pub(super) mod rules;

use std::sync::Arc;

use super::cipher::FileCipher;
use super::grid::{FtpCell, FtpGrid, ModemCase};
use super::printed::{CIPHERS, FILES, TABLE1, TABLE2, TABLE3};
use super::transfer::FtpWay;

/// Figures that sentences are judged by, as far as a set has them: the paper's, those of virtual time, or those of this machine.
#[derive(Clone, Debug)]
pub(super) struct KloginFigures {
    pub(super) table1: Option<[[[f64; 3]; 2]; 3]>,
    pub(super) table2: Option<[[[Option<f64>; 2]; 3]; 3]>,
    pub(super) table3: Option<[[f64; 3]; 2]>,
    pub(super) grid: Option<Arc<FtpGrid>>,
}

impl KloginFigures {
    pub(super) const PRINTED: KloginFigures =
        KloginFigures { table1: Some(TABLE1), table2: Some(TABLE2), table3: Some(TABLE3), grid: None };

    pub(super) const NONE: KloginFigures =
        KloginFigures { table1: None, table2: None, table3: None, grid: None };

    pub(super) fn computed(grid: &Arc<FtpGrid>) -> KloginFigures {
        let said = |file, way, cipher| {
            grid.said(FtpCell { modem: ModemCase::Compressing, way, file, cipher, before: false })
        };
        let table1 = std::array::from_fn(|file| {
            FtpWay::BOTH.map(|way| FileCipher::PAPERS.map(|cipher| said(file, way, cipher)))
        });
        let table2 = std::array::from_fn(|file| {
            std::array::from_fn(|place| {
                let (gzip, compress) = grid.sizes[file][place];
                [Some(gzip as f64), compress.map(|len| len as f64)]
            })
        });
        KloginFigures {
            table1: Some(table1),
            table2: Some(table2),
            table3: None,
            grid: Some(Arc::clone(grid)),
        }
    }

    /// Table 1's cells of these files and places of ways to encrypt, with how they are named.
    fn throughput(
        &self,
        files: core::ops::Range<usize>,
        ciphers: core::ops::Range<usize>,
    ) -> Option<impl Iterator<Item = ([&'static str; 3], f64, [usize; 2])>> {
        let table = self.table1?;
        let cells = files.flat_map(|file| [0, 1].map(|way| (file, way)));
        Some(cells.flat_map(move |(file, way)| {
            ciphers.clone().map(move |cipher| {
                (
                    [FILES[file], FtpWay::BOTH[way].name(), CIPHERS[cipher]],
                    table[file][way][cipher],
                    [file, way],
                )
            })
        }))
    }
}
