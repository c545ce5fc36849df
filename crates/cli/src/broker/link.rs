//! A stream to a broker, over the daemon that runs or a node of this command's own.

use std::sync::Arc;

use strait_scheduler::Rate;
use strait_transfer::broker::BROKER;
use strait_transfer::broker::client::{BrokerClient, BrokerError};
use strait_transfer::broker::message::FaultKind;

use crate::failure::{Code, Failure};
use crate::files::{Limited, NoStream, PeerStream, StreamHalf, StreamTarget};
use crate::flags::FilePriority;
use crate::silence::AnswerLine;

/// How often a stream is opened that ends before the broker said anything: a peer that was restarted has lost the first.
const ATTEMPTS: usize = 2;

type Client = BrokerClient<Limited<StreamHalf>, Limited<StreamHalf>>;

/// A broker that has said its first word.
pub(crate) struct BrokerLink {
    /// What is said and heard.
    pub(crate) client: Client,
    /// What carries it: to end it from another thread, and the link's rate.
    pub(crate) stream: Arc<PeerStream>,
}

impl BrokerLink {
    /// Opens a stream to the peer of this name over the daemon that runs; without one, over a node of this command's own.
    pub(crate) fn open(
        tunnel: Option<&str>,
        broker: &str,
        priority: FilePriority,
        limit: Option<Rate>,
    ) -> Result<BrokerLink, NoStream> {
        let line = AnswerLine::new();
        BrokerLink::begin(broker, limit, Some(&line), || PeerStream::open(tunnel, target(broker), priority))
    }

    /// Opens a stream over the daemon of `interface`.
    pub(crate) fn over(
        interface: &str,
        broker: &str,
        priority: FilePriority,
        limit: Option<Rate>,
    ) -> Result<BrokerLink, NoStream> {
        BrokerLink::begin(broker, limit, None, || PeerStream::over(interface, target(broker), priority))
    }

    /// Begins a visit; with a `line`, a silence of the broker is said.
    fn begin(
        broker: &str,
        limit: Option<Rate>,
        line: Option<&AnswerLine>,
        open: impl Fn() -> Result<PeerStream, NoStream>,
    ) -> Result<BrokerLink, NoStream> {
        let mut attempt = 1;
        loop {
            let stream = Arc::new(open()?);
            let half = || Limited::new(StreamHalf(Arc::clone(&stream)), limit);
            let begin = || BrokerClient::begin(half(), half());
            match line.map_or_else(begin, |line| stream.awaiting(line, begin)) {
                Ok(client) => return Ok(BrokerLink { client, stream }),
                Err(BrokerError::NoBroker) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(failed(broker, &error).into()),
            }
        }
    }

    /// Does `work` with what is said and heard, and says meanwhile if nothing comes.
    pub(crate) fn awaiting<T>(&mut self, work: impl FnOnce(&mut Client) -> T) -> T {
        let client = &mut self.client;
        self.stream.awaiting(&AnswerLine::new(), || work(client))
    }
}

fn target(broker: &str) -> StreamTarget<'_> {
    StreamTarget { peer: broker, service: BROKER, name: &[] }
}

/// Why something at this broker did not come to its end.
pub(crate) fn failed(broker: &str, error: &BrokerError) -> Failure {
    let failure = Failure::new(format!("{broker}: {error}"));
    match error {
        BrokerError::NoBroker => failure
            .remedy("it is no broker if its configuration has no [broker]; else run the same command again")
            .code(Code::Interrupted),
        BrokerError::Closed | BrokerError::Stream(_) | BrokerError::Silent => {
            failure.remedy("run the same command again: it goes on where it stopped").code(Code::Interrupted)
        }
        BrokerError::Protocol(_) | BrokerError::Message(_) => {
            failure.remedy("update the older of the two programs")
        }
        BrokerError::Local(_) => failure,
        BrokerError::Refused { fault, .. } => {
            let failure = if fault.kind.is_transient() { failure.code(Code::Interrupted) } else { failure };
            match remedy(fault.kind) {
                Some(remedy) => failure.remedy(remedy),
                None => failure,
            }
        }
    }
}

fn remedy(kind: FaultKind) -> Option<&'static str> {
    Some(match kind {
        FaultKind::Forbidden | FaultKind::Receiver => {
            "ask who runs the broker: its [[broker.access]] says who may put, fetch and receive"
        }
        FaultKind::SenderQuota | FaultKind::SenderLetters => {
            "remove what is not needed with `strait rm --sent`, or ask who runs the broker"
        }
        FaultKind::ReceiverQuota | FaultKind::ReceiverLetters => {
            "the receiver has to fetch or remove what is there"
        }
        FaultKind::SenderShare => {
            "the receiver has to fetch what this node sent; or send many files in one transfer"
        }
        FaultKind::TooLarge => "send it in parts, or straight to the peer",
        FaultKind::Store | FaultKind::Full => {
            "run the same command again later: it goes on where it stopped; if it stays so, ask who runs the broker"
        }
        FaultKind::TooMany | FaultKind::Ending => {
            "run the same command again later: it goes on where it stopped"
        }
        FaultKind::Expired | FaultKind::NotFound | FaultKind::Exists | FaultKind::Mismatch => return None,
    })
}
