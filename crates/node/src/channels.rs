//! What the threads of a node say to each other.
//!
//! Orders go to a packet thread, which is woken for them; notices and control datagrams come from
//! the packet threads, which never wait to say them.

mod control;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};

use crate::wake::Wake;

pub use control::{ControlReceiver, ControlSender, ToControl, to_control};

/// Orders that may wait for one packet thread: ten times what a start with a hundred peers gives.
pub(crate) const ORDERS: usize = 1024;

/// The packet thread has ended, so it takes no orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the packet thread has ended")]
pub struct Gone;

/// Where orders for one packet thread are left.
#[derive(Debug)]
pub struct Orders<T> {
    sender: SyncSender<T>,
    // After the sender: fields are dropped in this order, and the thread has to look after the last sender went.
    wake: WakeOnDrop,
}

#[derive(Debug)]
struct WakeOnDrop(Arc<Wake>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.raise();
    }
}

impl<T> Clone for Orders<T> {
    fn clone(&self) -> Orders<T> {
        Orders { sender: self.sender.clone(), wake: WakeOnDrop(Arc::clone(&self.wake.0)) }
    }
}

/// Where a packet thread finds its orders: readable (as a descriptor) when there are some.
#[derive(Debug)]
pub struct OrderQueue<T> {
    receiver: Receiver<T>,
    wake: Arc<Wake>,
    /// Orders that may still be taken in this turn; without limit before the first.
    left: Cell<usize>,
}

/// A queue of orders: the giver's end and the thread's end.
///
/// # Errors
/// When the process has no file descriptor left.
pub fn orders<T>() -> io::Result<(Orders<T>, OrderQueue<T>)> {
    let wake = Arc::new(Wake::new()?);
    let (sender, receiver) = sync_channel(ORDERS);
    Ok((
        Orders { sender, wake: WakeOnDrop(Arc::clone(&wake)) },
        OrderQueue { receiver, wake, left: Cell::new(usize::MAX) },
    ))
}

impl<T> Orders<T> {
    /// Gives an order and wakes the thread; waits for room, so a packet thread must not call it.
    ///
    /// # Errors
    /// [`Gone`] when the thread has ended.
    pub fn send(&self, order: T) -> Result<(), Gone> {
        // Woken first when the queue is full, or a sleeping thread would never make room.
        let sent = match self.sender.try_send(order) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(order)) => {
                self.wake.0.raise();
                self.sender.send(order).map_err(|_| Gone)
            }
            Err(TrySendError::Disconnected(_)) => Err(Gone),
        };
        self.wake.0.raise();
        sent
    }

    /// Gives an order if there is room and wakes the thread; says whether it did. For packet threads.
    #[must_use]
    pub fn offer(&self, order: T) -> bool {
        let sent = self.sender.try_send(order).is_ok();
        self.wake.0.raise();
        sent
    }
}

/// What a packet thread found when it looked for orders.
#[derive(Debug, PartialEq, Eq)]
pub enum NextOrder<T> {
    /// An order.
    Order(T),
    /// Nothing more for now.
    Nothing,
    /// Nothing more for ever: all givers are gone and the thread should end.
    End,
}

impl<T> OrderQueue<T> {
    /// Begins a turn of at most `most` orders, which [`OrderQueue::next`] gives, and quiets the descriptor.
    pub fn begin_turn(&self, most: usize) {
        self.left.set(most);
        self.wake.clear();
    }

    /// Whether there are orders that no turn has taken; costs no system call.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.wake.is_raised()
    }

    /// Wakes the thread for something else, from any thread.
    pub fn wake(&self) -> impl Fn() + Clone + Send + 'static {
        let wake = Arc::clone(&self.wake);
        move || wake.raise()
    }

    /// The next order; nothing also once a turn's orders are taken, and then the descriptor stays readable.
    #[must_use]
    pub fn next(&self) -> NextOrder<T> {
        let Some(left) = self.left.get().checked_sub(1) else {
            self.wake.raise();
            return NextOrder::Nothing;
        };
        self.left.set(left);
        match self.receiver.try_recv() {
            Ok(order) => NextOrder::Order(order),
            Err(TryRecvError::Empty) => NextOrder::Nothing,
            Err(TryRecvError::Disconnected) => NextOrder::End,
        }
    }
}

impl<T> AsFd for OrderQueue<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{PollFd, wait};
    use std::time::Duration;

    #[test]
    fn orders_arrive_in_order_and_wake() {
        let (orders, queue) = orders().unwrap();
        orders.send(1).unwrap();
        assert!(orders.offer(2));
        let mut fds = [PollFd::readable(queue.as_fd())];
        assert_eq!(wait(&mut fds, Some(Duration::ZERO)).unwrap(), 1);
        queue.begin_turn(ORDERS);
        assert_eq!(
            [queue.next(), queue.next(), queue.next()],
            [NextOrder::Order(1), NextOrder::Order(2), NextOrder::Nothing]
        );
        assert_eq!(wait(&mut fds, Some(Duration::ZERO)).unwrap(), 0);
        drop(orders);
        assert_eq!(wait(&mut fds, Some(Duration::ZERO)).unwrap(), 1, "the thread must look to see the end");
        assert_eq!(queue.next(), NextOrder::End);
    }

    #[test]
    fn a_flood_of_orders_ends_the_turn_and_wakes_the_thread_again() {
        let (orders, queue) = orders().unwrap();
        assert!((0..100).all(|order| orders.offer(order)));
        let mut taken = Vec::new();
        for turn in [64, 36, 0] {
            assert_eq!(
                wait(&mut [PollFd::readable(queue.as_fd())], Some(Duration::ZERO)).unwrap(),
                usize::from(turn > 0)
            );
            queue.begin_turn(64);
            let before = taken.len();
            while let NextOrder::Order(order) = queue.next() {
                taken.push(order);
            }
            assert_eq!(taken.len() - before, turn);
        }
        assert!(taken.into_iter().eq(0..100));
    }

    #[test]
    fn full_queue_refuses_packet_thread_and_blocks_control() {
        let (orders, queue) = orders().unwrap();
        assert!((0..ORDERS).all(|order| orders.offer(order)));
        assert!(!orders.offer(ORDERS));
        let giver = std::thread::spawn(move || orders.send(ORDERS));
        let taken = (0..=ORDERS).map(|_| {
            loop {
                match queue.next() {
                    NextOrder::Order(order) => break order,
                    NextOrder::Nothing => std::thread::yield_now(),
                    NextOrder::End => panic!("ended early"),
                }
            }
        });
        assert!(taken.eq(0..=ORDERS));
        assert_eq!(giver.join().unwrap(), Ok(()));
    }

    #[test]
    fn a_dead_thread_is_noticed() {
        let (orders, queue) = orders().unwrap();
        drop(queue);
        assert_eq!(orders.send(1), Err(Gone));
        assert!(!orders.offer(1));
    }
}
