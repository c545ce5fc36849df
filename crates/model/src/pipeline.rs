//! Stages that work at the same time on different packets: the slowest sets the pace (section 2 of the paper names this
//! form, section 8 processors and clients in number as future work).

use core::num::NonZeroU32;

use crate::{Seconds, Stages};

/// Where the computing of the two ends is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processors {
    /// Each end has so many of its own.
    Apart {
        /// At the sender.
        sender: NonZeroU32,
        /// At the receiver.
        receiver: NonZeroU32,
    },
    /// Both ends share so many, as two ends on one machine do.
    Shared(NonZeroU32),
}

/// Packets one after another through sender, link and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Who computes.
    pub processors: Processors,
    /// Processors that one packet's work at one end can be spread over; one end's stages never go faster than so many
    /// at once, whatever there is.
    pub threads: NonZeroU32,
    /// Senders alike that share the link and the receiver.
    pub clients: NonZeroU32,
}

/// What a packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PipelineSegment {
    /// *Prepare packet*.
    Sender,
    /// The network.
    Link,
    /// *Interpret packet*.
    Receiver,
    /// The processors that both ends share, when they are what limits.
    Both,
}

impl PipelineSegment {
    /// In a word or two.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PipelineSegment::Sender => "sender",
            PipelineSegment::Link => "link",
            PipelineSegment::Receiver => "receiver",
            PipelineSegment::Both => "processors",
        }
    }
}

impl Pipeline {
    /// One client, and one processor at each end.
    pub const SIMPLE: Pipeline = Pipeline {
        processors: Processors::Apart { sender: NonZeroU32::MIN, receiver: NonZeroU32::MIN },
        threads: NonZeroU32::MIN,
        clients: NonZeroU32::MIN,
    };

    /// Which segment sets the pace, and how much time lies between two packets of one client; of equals, the first.
    #[must_use]
    pub fn slowest(&self, stages: &Stages) -> (PipelineSegment, Seconds) {
        let clients = f64::from(self.clients.get());
        let alone = |work: Seconds, processors: NonZeroU32| {
            work * (1.0 / f64::from(self.threads.min(processors).get()))
        };
        let (sender, receiver) = (stages.at_sender(), stages.at_receiver());
        let link = (PipelineSegment::Link, stages.transmit * clients);
        let segments = match self.processors {
            Processors::Apart { sender: here, receiver: there } => [
                (PipelineSegment::Sender, alone(sender, here)),
                link,
                // However many threads one packet takes, other clients' packets use the others.
                (
                    PipelineSegment::Receiver,
                    longer(alone(receiver, there), receiver * (clients / f64::from(there.get()))),
                ),
                (PipelineSegment::Both, Seconds(0.0)),
            ],
            Processors::Shared(all) => [
                (PipelineSegment::Sender, alone(sender, all)),
                link,
                (PipelineSegment::Receiver, alone(receiver, all)),
                (PipelineSegment::Both, (sender + receiver) * (clients / f64::from(all.get()))),
            ],
        };
        let slower =
            |a: (PipelineSegment, Seconds), b: (PipelineSegment, Seconds)| if b.1 > a.1 { b } else { a };
        segments.into_iter().reduce(slower).unwrap_or(link)
    }

    /// How many times more packets pass with the second stages than with the first.
    #[must_use]
    pub fn gain(&self, without: &Stages, with: &Stages) -> f64 {
        self.slowest(without).1 / self.slowest(with).1
    }
}

fn longer(a: Seconds, b: Seconds) -> Seconds {
    if b > a { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stages(sender: f64, link: f64, receiver: f64) -> Stages {
        Stages {
            encrypt: Seconds(sender),
            transmit: Seconds(link),
            verify: Seconds(receiver),
            ..Stages::default()
        }
    }

    fn count(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).unwrap()
    }

    #[test]
    fn the_slowest_sets_the_pace() {
        for (given, segment, pace) in [
            (stages(3.0, 2.0, 1.0), PipelineSegment::Sender, 3.0),
            (stages(1.0, 2.0, 1.0), PipelineSegment::Link, 2.0),
            (stages(1.0, 2.0, 4.0), PipelineSegment::Receiver, 4.0),
            (stages(2.0, 2.0, 2.0), PipelineSegment::Sender, 2.0),
        ] {
            assert_eq!(Pipeline::SIMPLE.slowest(&given), (segment, Seconds(pace)));
        }
        assert_eq!(Pipeline::SIMPLE.gain(&stages(1.0, 8.0, 1.0), &stages(4.0, 2.0, 1.0)), 2.0);
    }

    #[test]
    fn processors_that_are_shared() {
        let both = |all, threads| Pipeline {
            processors: Processors::Shared(count(all)),
            threads: count(threads),
            ..Pipeline::SIMPLE
        };
        assert_eq!(both(1, 1).slowest(&stages(3.0, 4.0, 2.0)), (PipelineSegment::Both, Seconds(5.0)));
        // Two processors: each end has one, as if they were apart.
        assert_eq!(both(2, 1).slowest(&stages(3.0, 1.0, 2.0)), (PipelineSegment::Sender, Seconds(3.0)));
        assert_eq!(both(2, 2).slowest(&stages(3.0, 1.0, 2.0)), (PipelineSegment::Both, Seconds(2.5)));
    }

    #[test]
    fn clients_share_the_link_and_the_receiver() {
        let three = |receiver| Pipeline {
            processors: Processors::Apart { sender: count(1), receiver: count(receiver) },
            threads: count(1),
            clients: count(3),
        };
        assert_eq!(three(1).slowest(&stages(4.0, 2.0, 1.0)), (PipelineSegment::Link, Seconds(6.0)));
        assert_eq!(three(1).slowest(&stages(4.0, 1.0, 2.0)), (PipelineSegment::Receiver, Seconds(6.0)));
        assert_eq!(three(3).slowest(&stages(4.0, 1.0, 2.0)), (PipelineSegment::Sender, Seconds(4.0)));
        // Three processors, but one packet's work is one thread's.
        assert_eq!(three(3).slowest(&stages(1.0, 0.5, 5.0)), (PipelineSegment::Receiver, Seconds(5.0)));
    }

    proptest! {
        #[test]
        fn a_pipeline_is_at_least_as_fast_as_one_after_the_other(
            sender in 0.0..10.0, link in 0.0..10.0, receiver in 0.0..10.0, processors in 1_u32..9, threads in 1_u32..9,
        ) {
            let given = stages(sender, link, receiver);
            for layout in [
                Processors::Shared(count(processors)),
                Processors::Apart { sender: count(processors), receiver: count(processors) },
            ] {
                let pipeline = Pipeline { processors: layout, threads: count(threads), ..Pipeline::SIMPLE };
                let (_, pace) = pipeline.slowest(&given);
                prop_assert!(pace.0 <= given.total().0 + 1e-9);
                prop_assert!(pace.0 >= given.transmit.0);
                // More processors never slow it down.
                let more = Pipeline { threads: count(threads + 1), ..pipeline };
                prop_assert!(more.slowest(&given).1.0 <= pace.0 + 1e-9);
            }
        }
    }
}
