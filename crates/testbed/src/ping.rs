//! A train of small datagrams, one each interval whether or not they are answered.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::listener::listen;
use crate::{Error, Namespace};

/// Bytes of each: its number and no more, since hundred a second take their part of a thin link.
const LEN: usize = 8;

/// When each was sent, and when its answer came.
type Times = Arc<Mutex<Vec<(Instant, Option<Instant>)>>>;

/// A train that goes on until it is stopped or dropped.
#[derive(Debug)]
pub struct PingTrain {
    times: Times,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl PingTrain {
    /// From one host to an address of another, which answers there, one each `gap`; port 0 is any.
    ///
    /// # Errors
    /// [`Error::System`] when there is no socket or no thread.
    pub fn start(
        from: &Namespace,
        to: &Namespace,
        address: SocketAddr,
        gap: Duration,
    ) -> Result<PingTrain, Error> {
        let server = to.run("listen for pings", || UdpSocket::bind(address))?;
        let target = server.local_addr().map_err(Error::doing("find the port that was chosen"))?;
        // Not connected: what is late at the end would find no server, and its refusal would be an error here.
        let client = from.run("open a socket for pings", || UdpSocket::bind("0.0.0.0:0"))?;
        let heard = client.try_clone().map_err(Error::doing("share a socket"))?;
        let mut train = PingTrain { times: Times::default(), stop: Arc::default(), threads: Vec::new() };
        let stop = Arc::clone(&train.stop);
        train.threads.push(to.spawn(move || {
            listen(&server, 2 * LEN, &stop, |bytes, from| {
                // Where there is no room, it is lost as on any network.
                let _ = server.send_to(bytes, from);
                Ok(())
            })
        })?);
        let (stop, times) = (Arc::clone(&train.stop), Arc::clone(&train.times));
        train.threads.push(from.spawn(move || {
            listen(&heard, 2 * LEN, &stop, |bytes, _| {
                note(&times, bytes);
                Ok(())
            })
        })?);
        let (stop, times) = (Arc::clone(&train.stop), Arc::clone(&train.times));
        train.threads.push(from.spawn(move || {
            send(&client, target, gap, &times, &stop);
            Ok(())
        })?);
        Ok(train)
    }

    /// Whether one that was sent after `moment` has been answered; and when the first answer came.
    #[must_use]
    pub fn answered_since(&self, moment: Instant) -> Option<Instant> {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.iter().rev().take_while(|(sent, _)| *sent >= moment).filter_map(|(_, answered)| *answered).min()
    }

    /// The longest time without an answer between two moments.
    #[must_use]
    pub fn silence(&self, from: Instant, to: Instant) -> Duration {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answers: Vec<Instant> = times.iter().filter_map(|(_, answered)| *answered).collect();
        answers.retain(|moment| *moment > from && *moment < to);
        answers.extend([from, to]);
        answers.sort();
        let gaps = answers.windows(2).filter_map(|pair| match pair {
            [one, next] => Some(*next - *one),
            _ => None,
        });
        gaps.max().unwrap_or_default()
    }

    /// Milliseconds of each round trip that began between two moments, and how many there are of those that got no answer.
    #[must_use]
    pub fn round_trips(&self, from: Instant, to: Instant) -> (Vec<f64>, usize) {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let within: Vec<_> = times.iter().filter(|(sent, _)| *sent >= from && *sent < to).collect();
        let answered: Vec<f64> = within
            .iter()
            .filter_map(|(sent, answered)| Some((*answered)?.duration_since(*sent).as_secs_f64() * 1000.0))
            .collect();
        let lost = within.len() - answered.len();
        (answered, lost)
    }

    /// Ends it.
    ///
    /// # Errors
    /// [`Error::System`] when a thread panicked or a socket failed.
    pub fn stop(mut self) -> Result<(), Error> {
        self.stop.store(true, Ordering::Relaxed);
        std::mem::take(&mut self.threads).into_iter().try_for_each(|thread| Namespace::join(thread, "ping"))
    }
}

impl Drop for PingTrain {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn send(socket: &UdpSocket, target: SocketAddr, gap: Duration, times: &Times, stop: &AtomicBool) {
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let number = {
            let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
            times.push((Instant::now(), None));
            times.len() as u64 - 1
        };
        let _ = socket.send_to(&number.to_be_bytes(), target);
        due += gap;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// Notes an answer by the number in it.
fn note(times: &Times, bytes: &[u8]) {
    let number = bytes.try_into().map(u64::from_be_bytes).ok().and_then(|it| usize::try_from(it).ok());
    let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, answered)) = number.and_then(|number| times.get_mut(number)) {
        answered.get_or_insert(Instant::now());
    }
}
