//! The client's end of Kerberos at the beginning of a stream.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use strait_kerberos::{
    GssProblem, Initiator, InitiatorOptions, KerberosError, ServiceName, Step, TokenFrame, TokenReader,
};
use strait_node::client::is_closed;
use strait_node::local::KerberosWay;

use super::road::NoRoad;
use crate::failure::{Code, Failure};
use crate::flags::KerberosFlags;

/// How long the peer may take to answer: what its library may take, and round trips of a satellite link.
const PATIENCE: Duration = Duration::from_secs(40);
/// The service of a host whose name is not configured.
const SERVICE: &str = "strait";

/// What the user wants of Kerberos.
#[derive(Clone, Debug, Default)]
pub(crate) struct TicketWish {
    /// The service that a ticket is for; empty for the usual one of the peer. None: only if the configuration says so.
    service: Option<String>,
    /// Whether the peer gets a ticket to act as the user.
    delegate: bool,
}

impl From<&KerberosFlags> for TicketWish {
    fn from(flags: &KerberosFlags) -> TicketWish {
        TicketWish { service: flags.kerberos.clone(), delegate: flags.delegate }
    }
}

impl TicketWish {
    /// What to do on a stream to `peer`; nothing where no ticket is wanted.
    pub(super) fn exchange(&self, peer: &str, way: Option<&KerberosWay>) -> Result<Option<Ready>, NoRoad> {
        let configured = way.and_then(|way| way.service.clone());
        let service = match (&self.service, configured) {
            (Some(named), _) if !named.is_empty() => named.clone(),
            (_, Some(configured)) => configured,
            (Some(_), None) => format!("{SERVICE}@{peer}"),
            (None, None) if self.delegate => {
                let failure = Failure::new("no ticket is passed on to a peer that is shown none");
                return Err(for_good(failure.remedy("add --kerberos, or `kerberos` to its [[peer]]")));
            }
            (None, None) => return Ok(None),
        };
        let Some(way) = way else {
            let failure = Failure::new("the daemon here is of another version, and does not know Kerberos");
            return Err(for_good(failure.remedy("start it again").code(Code::Environment)));
        };
        let options = InitiatorOptions {
            delegate: self.delegate,
            ..InitiatorOptions::new(ServiceName::parse(&service))
        };
        let mut initiator =
            Initiator::new(&options, &way.binding).map_err(|error| failed(&error, &service))?;
        match initiator.step(None).map_err(|refusal| failed(&refusal.error, &service))? {
            Step::GoOn(token) | Step::Done(Some(token)) => Ok(Some(Ready { initiator, token, service })),
            Step::Done(None) => Err(failed(&KerberosError::NotMutual, &service)),
        }
    }
}

/// A ticket is there, and what the peer is told first.
pub(super) struct Ready {
    initiator: Initiator,
    token: Vec<u8>,
    service: String,
}

impl Ready {
    /// Proves who the user is to the peer, and has it prove itself; what the stream carries from here on is the login's. Nothing when the
    /// stream ended before the peer said anything.
    pub(super) fn run(mut self, stream: &mut UnixStream, head: &[u8]) -> Result<Option<()>, NoRoad> {
        let mut first = head.to_vec();
        let token = TokenFrame::Token(std::mem::take(&mut self.token));
        token.write(&mut first).map_err(|error| failed(&error, &self.service))?;
        match stream.write_all(&first) {
            Err(error) if is_closed(&error) => return Ok(None),
            written => written.map_err(broken)?,
        }
        let (begun, mut reader, mut told, mut heard, mut proved) =
            (Instant::now(), TokenReader::default(), None, false, false);
        loop {
            let frame = match read(stream, &mut reader, begun) {
                Err(error) if is_closed(&error) && !heard => return Ok(None),
                frame => frame.map_err(broken)?,
            };
            heard = true;
            match frame {
                TokenFrame::Token(token) if !proved => match self.initiator.step(Some(&token)) {
                    Ok(Step::Done(None)) => proved = true,
                    Ok(Step::GoOn(token) | Step::Done(Some(token))) => {
                        let mut bytes = Vec::new();
                        TokenFrame::Token(token)
                            .write(&mut bytes)
                            .map_err(|error| failed(&error, &self.service))?;
                        stream.write_all(&bytes).map_err(broken)?;
                    }
                    Err(refusal) => return Err(failed(&refusal.error, &self.service)),
                },
                // To say so is no proof.
                TokenFrame::Accepted if proved => {
                    return stream.set_read_timeout(None).map(Some).map_err(broken);
                }
                TokenFrame::Told(_) => told = frame.said(),
                TokenFrame::Refused(token) => return Err(self.refused(&token, told, proved)),
                TokenFrame::Token(_) | TokenFrame::Accepted => {
                    return Err(failed(&KerberosError::NotMutual, &self.service));
                }
            }
        }
    }

    /// What the peer said, and what the library makes of its token.
    fn refused(mut self, token: &[u8], told: Option<String>, proved: bool) -> NoRoad {
        let cause = match told {
            Some(told) => format!("the peer refuses: {told}"),
            None => "the peer refuses the Kerberos ticket".to_owned(),
        };
        let refusal =
            (!token.is_empty() && !proved).then(|| self.initiator.step(Some(token)).err()).flatten();
        let failure = Failure::new(cause);
        let problem = refusal.and_then(|refusal| refusal.error.problem());
        for_good(match problem.and_then(remedy) {
            Some(remedy) => failure.remedy(remedy),
            None => failure,
        })
    }
}

/// The next frame, and nothing behind it.
fn read(stream: &mut UnixStream, reader: &mut TokenReader, begun: Instant) -> io::Result<TokenFrame> {
    let mut bytes = vec![0; strait_kerberos::TOKEN_MAX];
    loop {
        let left = PATIENCE.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        let room = bytes.get_mut(..reader.wanted()).ok_or(io::ErrorKind::InvalidData)?;
        let length = match stream.read(room) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            read => read?,
        };
        let read = reader.read(&mut bytes.get(..length).unwrap_or_default()).map_err(io::Error::other)?;
        if let Some(frame) = read {
            return Ok(frame);
        }
    }
}

/// What to do about a problem, where that is known.
fn remedy(problem: GssProblem) -> Option<&'static str> {
    match problem {
        GssProblem::NoCredentials => Some("get a ticket with `kinit`"),
        GssProblem::Expired => Some("get a new ticket with `kinit`"),
        GssProblem::ClockSkew => {
            Some("set the clocks of both hosts; Kerberos takes five minutes of difference")
        }
        GssProblem::BadBinding => {
            Some("a node between this one and the peer is not who it says, or the programs differ")
        }
        _ => None,
    }
}

/// This end has no ticket, or does not believe the peer.
fn failed(error: &KerberosError, service: &str) -> NoRoad {
    let failure = Failure::new(format!("{error} (for the service {service})"));
    match error {
        KerberosError::NoLibrary(_) => for_good(
            Failure::new(error)
                .remedy("install MIT Kerberos: libgssapi-krb5-2 (Debian), krb5-libs (Fedora)")
                .code(Code::Environment),
        ),
        error => match error.problem() {
            // The KDC may be out of reach as the peer was.
            Some(GssProblem::Other) => NoRoad { failure, may_return: true },
            problem => for_good(match problem.and_then(remedy) {
                Some(remedy) => failure.remedy(remedy),
                None => failure,
            }),
        },
    }
}

fn for_good(failure: Failure) -> NoRoad {
    NoRoad { failure, may_return: false }
}

/// The stream is lost.
fn broken(error: io::Error) -> NoRoad {
    let failure = match error.kind() {
        io::ErrorKind::TimedOut => Failure::new("the peer does not answer"),
        _ => Failure::new(format!("the stream to the peer broke off in the exchange of Kerberos: {error}")),
    };
    NoRoad { failure, may_return: true }
}
