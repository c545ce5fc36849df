//! The writing half of a session: a thread of its own, so that compressing and sending overlap with reading and hashing.
//!
//! File data and all other messages have a compression history each, and a change between them ends a unit. So messages of control
//! wait for each other while the data of files that were announced before go on.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::Duration;

use super::event::{TransferEvent, Watch};
use crate::message::{FileMessage, frame};

/// Where units are made of bytes.
pub(crate) trait UnitOut: Write {
    /// What is written from here on is file data, or control. A change ends the unit.
    fn context(&mut self, data: bool) -> io::Result<()>;

    /// The history of file data begins anew.
    fn begin_history(&mut self) -> io::Result<()>;
}

/// What the thread is told to write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outgoing {
    /// A message.
    Message(FileMessage),
    /// File data that follow have nothing to do with those before.
    NewHistory,
    /// What is so once all that stands before is written.
    Told(TransferEvent),
}

/// Bytes of a batch on its way to the thread: a few blocks of file data, so that both threads have work.
const BATCH: usize = 256 << 10;
/// Batches that wait for the thread: with one in each hand at most 2 MiB.
pub(crate) const BATCHES: usize = 6;
/// Messages of control that wait while data go on: a unit of them compresses well, and a receiver does not wait for long.
const CONTROL: usize = 64 << 10;
/// How often an end that has nothing to say shows that it is there: an end hears many before it gives up ([`SILENCE`]).
///
/// [`SILENCE`]: super::SILENCE
const SIGN: Duration = Duration::from_secs(60);
/// File data between two looks at the control that waits: the longest unit.
const DATA: usize = 1 << 20;

/// The end that fills batches.
#[derive(Debug)]
pub(crate) struct Outbound {
    batch: Vec<Outgoing>,
    weight: usize,
    to: SyncSender<Vec<Outgoing>>,
}

/// The thread that writes has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WriterGone;

impl Outbound {
    pub(crate) fn new(to: SyncSender<Vec<Outgoing>>) -> Outbound {
        Outbound { batch: Vec::new(), weight: 0, to }
    }

    /// Adds a message; it goes with its batch.
    pub(crate) fn put(&mut self, message: FileMessage) -> Result<(), WriterGone> {
        self.weight += match &message {
            FileMessage::Data { bytes, .. } | FileMessage::Patch { bytes, .. } => bytes.len(),
            FileMessage::Entry(entry) => 64 + entry.weight(),
            _ => 64,
        };
        self.batch.push(Outgoing::Message(message));
        if self.weight >= BATCH { self.send() } else { Ok(()) }
    }

    /// Tells of this once all that was put so far is written: what waits here has not moved.
    pub(crate) fn tell(&mut self, event: TransferEvent) {
        self.batch.push(Outgoing::Told(event));
    }

    pub(crate) fn new_history(&mut self) {
        self.batch.push(Outgoing::NewHistory);
    }

    /// Sends the batch now, before the sender waits for something.
    pub(crate) fn send(&mut self) -> Result<(), WriterGone> {
        self.weight = 0;
        if self.batch.is_empty() {
            return Ok(());
        }
        self.to.send(std::mem::take(&mut self.batch)).map_err(|_| WriterGone)
    }
}

/// Writes batches until their sender is gone, and then all that is left. While there are none, it shows every [`SIGN`] that this end
/// is there.
pub(crate) fn write_batches(
    out: impl UnitOut,
    from: &Receiver<Vec<Outgoing>>,
    watch: Watch<'_>,
) -> io::Result<()> {
    write_with_signs(out, (from, watch), SIGN)
}

fn write_with_signs(
    out: impl UnitOut,
    (from, watch): (&Receiver<Vec<Outgoing>>, Watch<'_>),
    sign: Duration,
) -> io::Result<()> {
    let mut mux = Mux { out, control: Vec::new(), data: 0, lowest: None };
    loop {
        let batch = match from.try_recv() {
            Ok(batch) => batch,
            Err(TryRecvError::Empty) => {
                // Nothing to do: what waits is all there is to send now.
                mux.flush()?;
                match from.recv_timeout(sign) {
                    Ok(batch) => batch,
                    Err(RecvTimeoutError::Timeout) => vec![Outgoing::Message(FileMessage::Alive)],
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
            Err(TryRecvError::Disconnected) => return mux.flush(),
        };
        for outgoing in batch {
            match outgoing {
                Outgoing::Message(message) => mux.write(&message)?,
                Outgoing::NewHistory => mux.out.begin_history()?,
                Outgoing::Told(event) => watch.tell(event),
            }
        }
    }
}

/// Puts messages of both kinds into one stream of units.
struct Mux<U> {
    out: U,
    /// Control that waits.
    control: Vec<u8>,
    /// File data since control was written last.
    data: usize,
    /// The first entry that is announced in the control that waits: its data must not come before.
    lowest: Option<u64>,
}

impl<U: UnitOut> Mux<U> {
    fn write(&mut self, message: &FileMessage) -> io::Result<()> {
        match message {
            FileMessage::Data { entry, bytes, .. } | FileMessage::Patch { entry, bytes, .. } => {
                if self.lowest.is_some_and(|lowest| *entry >= lowest) || self.data >= DATA {
                    self.write_control()?;
                }
                self.data += bytes.len();
                let mut framed = Vec::with_capacity(bytes.len() + 32);
                frame(message, &mut framed);
                self.out.context(true)?;
                self.out.write_all(&framed)
            }
            // Order against data matters for everything that is not only an end: a hole goes where its data go.
            FileMessage::Hole { .. } | FileMessage::Again { .. } => {
                frame(message, &mut self.control);
                self.write_control()
            }
            _ => {
                if let FileMessage::Entry(entry) = message {
                    self.lowest = Some(self.lowest.unwrap_or(entry.index));
                }
                frame(message, &mut self.control);
                if self.control.len() >= CONTROL { self.write_control() } else { Ok(()) }
            }
        }
    }

    fn write_control(&mut self) -> io::Result<()> {
        if !self.control.is_empty() {
            self.out.context(false)?;
            self.out.write_all(&self.control)?;
            self.control.clear();
        }
        (self.lowest, self.data) = (None, 0);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_control()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::{Sender, channel, sync_channel};
    use std::thread;

    use super::*;

    /// Hands on what is written.
    struct Told(Sender<u8>);

    impl Write for Told {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            bytes.iter().try_for_each(|byte| self.0.send(*byte)).map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl UnitOut for Told {
        fn context(&mut self, _data: bool) -> io::Result<()> {
            Ok(())
        }

        fn begin_history(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_end_that_has_nothing_to_say_shows_that_it_is_there() {
        let (tell, told) = channel();
        let (to, from) = sync_channel(BATCHES);
        let watch = Watch { event: &|_| (), cancel: &AtomicBool::new(false), hang_up: &|| () };
        thread::scope(|scope| {
            let sign = Duration::from_millis(1);
            let writing = scope.spawn(move || write_with_signs(Told(tell), (&from, watch), sign));
            // The type of the message, and a body of no length.
            let signs: Vec<u8> = told.iter().take(6).collect();
            assert_eq!(signs, [0x31, 0, 0x31, 0, 0x31, 0]);
            drop(to);
            assert!(writing.join().unwrap().is_ok());
        });
    }
}
