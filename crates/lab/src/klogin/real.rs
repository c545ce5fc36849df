//! Three cells of Table 1 again in real time: the kernel's TCP over the same modems.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use strait_sim::DialUpSettings;
use strait_testbed::{DialledLine, Transfer};

use super::cipher::FileCipher;
use super::printed::FILE_LEN;
use super::{files, keystroke};
use crate::error::Error;

/// Which: file and way to encrypt, by their places in Table 1; all of them sent.
pub(super) const CELLS: [(usize, usize); 3] = [(1, 0), (1, 2), (2, 0)];
/// How long a transfer may stand still.
const PATIENCE: Duration = Duration::from_secs(60);

/// Their kbytes/s, all at the same time, each over a line of its own.
///
/// # Errors
/// [`Error`] when hosts cannot be made or a transfer stands still.
pub(super) fn measured() -> Result<[f64; 3], Error> {
    thread::scope(|scope| {
        let threads = CELLS.map(|cell| scope.spawn(move || transfer(cell)));
        let mut rates = [0.0; 3];
        for (rate, thread) in rates.iter_mut().zip(threads) {
            *rate = thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why))?;
        }
        Ok(rates)
    })
}

fn transfer((file, cipher): (usize, usize)) -> Result<f64, Error> {
    let content: Arc<[u8]> = FileCipher::PAPERS[cipher].encrypted(files::content(file))?.into();
    let line = DialledLine::new(DialUpSettings::default());
    let (hosts, _relay) = keystroke::dialled(&line, keystroke::MTU)?;
    let address = hosts.address_of_b().0;
    let (from, to) = (&hosts.a, &hosts.b);
    let transfer =
        Transfer { from, to, address, name: "a file of Table 1", content: &content, patience: PATIENCE };
    let took = transfer.run(&mut |_| ())?;
    Ok(FILE_LEN as f64 / 1024.0 / took.as_secs_f64())
}
