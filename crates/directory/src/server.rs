//! Connections of nodes: questions in, answers out, each within what its source may cost. Those that watch are in server/watch.rs.

mod watch;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use strait_keying::directory::{Answer, HEAD_LEN, Question};
use strait_scheduler::Rate;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::budget::{self, Budgets, PLACE, Source};
use crate::counters::{Giver, Present, QuestionKind, add};
use crate::keeper::{Keeper, Put};
use crate::now;
use crate::store::{Refusal, RefusalReason, Taken};
use watch::Watched;

/// Connections at once, where the system allows as many files: a thousand nodes that watch, and those that ask. With what they send
/// they have 64 MiB ([`PLACE`]).
const CONNECTIONS: usize = 4096;
/// Files that are not connections: the store, etcd, the log, and connections that are about to end.
const OTHER_FILES: usize = 128;
/// How long a connection may say nothing between two questions.
const IDLE: Duration = Duration::from_secs(60);
/// How long a question may take to come, and an answer to be taken: round trips of a slow link.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes that are read at once: some certificates. A place has room for as many of a message.
const BUFFER: usize = PLACE / 2;
/// Bytes around an answer on the wire: IPv6 and TCP with timestamps (RFC 8200 section 3, RFC 9293 section 3.1, RFC 7323 section 3).
const HEADERS: usize = 40 + 20 + 12;
/// Things that are put in one transaction.
const PUTS: usize = 64;

/// Serves nodes until the process ends, which may have so many files open.
pub(crate) async fn serve(
    listener: TcpListener,
    keeper: Arc<Keeper>,
    up: Option<Rate>,
    files: usize,
) -> io::Result<()> {
    let places = files.saturating_sub(OTHER_FILES).clamp(1, CONNECTIONS);
    let budgets = Arc::new(Mutex::new(Budgets::new(places, up, Instant::now())));
    loop {
        while lock(&budgets).is_crowded() {
            yield_now().await;
        }
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of files, or a connection that was gone already.
                tracing::debug!("a connection was not accepted: {error}");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let source = Source::of(from.ip());
        let counters = &keeper.counters;
        let Some(number) = lock(&budgets).connect(source, Instant::now()) else {
            add(&counters.refused_connections, 1);
            let (ip, port) = (from.ip().to_canonical(), from.port());
            tracing::debug!(
                "refused directory from {ip} port {port}: its network has as many connections as it may"
            );
            continue;
        };
        add(&counters.accepted, 1);
        let mut connection = Connection {
            stream: prepared(stream),
            source,
            number,
            keeper: Arc::clone(&keeper),
            budgets: Arc::clone(&budgets),
        };
        let task = tokio::spawn(async move {
            let keeper = Arc::clone(&connection.keeper);
            let _here = Present::new(&keeper.counters.connections);
            if let Err(error) = connection.serve().await {
                tracing::debug!(%from, "a connection ended: {error}");
            }
        });
        lock(&budgets).begun(number, task.abort_handle());
    }
}

/// Files that this process may have open, as many as it may allow itself.
pub(crate) fn files() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let files = if raised.is_ok() { limit.maximum } else { limit.current };
    files.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

fn lock(budgets: &Mutex<Budgets>) -> std::sync::MutexGuard<'_, Budgets> {
    budgets.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a connection send at once, and read in parts.
fn prepared(stream: TcpStream) -> BufReader<TcpStream> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("{error}");
    }
    BufReader::with_capacity(BUFFER, stream)
}

/// A connection, which gives its places back at its end, whatever ends it.
struct Connection {
    stream: BufReader<TcpStream>,
    source: Source,
    number: u64,
    keeper: Arc<Keeper>,
    budgets: Arc<Mutex<Budgets>>,
}

impl Connection {
    async fn serve(&mut self) -> io::Result<()> {
        loop {
            let waited = timeout(IDLE, self.stream.fill_buf()).await.map_err(|_| late())?;
            if waited?.is_empty() {
                return Ok(());
            }
            let question = self.question().await?;
            self.number = lock(&self.budgets).asked(self.number);
            let (kind, asked) = (QuestionKind::of(&question), Instant::now());
            self.keeper.counters.asked(kind);
            let answer = match question {
                Question::Watch { certificates: false } => return self.watch(Watched::Lists).await,
                Question::Watch { certificates: true } => return self.watch(Watched::Certificates).await,
                Question::WatchAll => return self.watch(Watched::All).await,
                Question::FindDailyKeys(name) => {
                    let found = self.keeper.with_store(move |store| store.find_daily_keys(name, now())).await;
                    answer_found(found, Answer::DailyKeys)
                }
                Question::Find(name) => {
                    let found = self.keeper.with_store(move |store| store.find(name, now())).await;
                    answer_found(found, Answer::Certificate)
                }
                Question::List(known) => {
                    let list = self.keeper.store.list().filter(|(number, _)| *number != known);
                    list.map_or(Answer::NoNews, |(_, bytes)| Answer::List(bytes))
                }
                Question::PutCertificate(bytes) => {
                    self.puts(Put::Certificate(bytes), asked).await?;
                    continue;
                }
                Question::PutList(bytes) => {
                    self.puts(Put::List(bytes), asked).await?;
                    continue;
                }
                Question::PutDailyKeys(bytes) => {
                    self.puts(Put::DailyKeys(bytes), asked).await?;
                    continue;
                }
            };
            self.keeper.counters.answered(kind, asked.elapsed(), 1);
            self.answer(&answer).await?;
        }
    }

    /// Returns the next question. Its kind bounds its length; memory for it grows with what has come of it, and is the connection's
    /// while it is read.
    async fn question(&mut self) -> io::Result<Question> {
        let read = async {
            let mut head = [0; HEAD_LEN + 1];
            self.stream.read_exact(&mut head).await?;
            let [a, b, c, d, kind] = head;
            let len = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
            if !(1..=Question::most(kind)).contains(&len) {
                return Err(malformed());
            }
            // In pieces of one size, so that what is freed fits what comes next.
            let (mut pieces, mut come, mut held): (Vec<Vec<u8>>, usize, usize) = (Vec::new(), 1, 1);
            while come < len {
                if pieces.last().is_none_or(|piece| piece.len() == piece.capacity()) {
                    // One fits beside the buffer.
                    let places = 1 + (pieces.len() * BUFFER).div_ceil(PLACE);
                    if places > held {
                        self.hold(places).await?;
                        held = places;
                    }
                    pieces.push(Vec::with_capacity(BUFFER.min(len - come)));
                }
                let Some(piece) = pieces.last_mut() else { return Err(malformed()) };
                let rest = u64::try_from(len - come).unwrap_or(u64::MAX);
                match (&mut self.stream).take(rest).read_buf(piece).await? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    more => come += more,
                }
            }
            let body: Vec<u8> = std::iter::once(&[kind][..])
                .chain(pieces.iter().map(Vec::as_slice))
                .flatten()
                .copied()
                .collect();
            if held > 1 {
                self.hold(1).await?;
            }
            Question::from_body(&body).map_err(|_| malformed())
        };
        timeout(PATIENCE, read).await.map_err(|_| late())?
    }

    /// Waits until the connection has so many places.
    async fn hold(&self, places: usize) -> io::Result<()> {
        while !lock(&self.budgets).hold(self.number, places, Instant::now()).ok_or_else(full)? {
            yield_now().await;
        }
        Ok(())
    }

    /// Keeps what is put, with what has arrived behind it, in one transaction.
    async fn puts(&mut self, first: Put, asked: Instant) -> io::Result<()> {
        let mut puts = vec![first];
        while puts.len() < PUTS && self.has_whole_put() {
            let question = self.question().await?;
            self.keeper.counters.asked(QuestionKind::of(&question));
            puts.push(match question {
                Question::PutCertificate(bytes) => Put::Certificate(bytes),
                Question::PutList(bytes) => Put::List(bytes),
                Question::PutDailyKeys(bytes) => Put::DailyKeys(bytes),
                _ => return Err(malformed()),
            });
        }
        let kinds: Vec<QuestionKind> = puts.iter().map(kind_of).collect();
        let taken = self.keeper.put(puts).await.unwrap_or_else(|error| {
            let taken = vec![Taken::Refused(self.keeper.failed(&error)); kinds.len()];
            self.keeper.counters.taken(Giver::Client, &taken);
            taken
        });
        kinds.iter().for_each(|kind| self.keeper.counters.answered(*kind, asked.elapsed(), 1));
        let cost = taken.iter().zip(kinds).map(|(taken, kind)| cost(taken, kind)).sum();
        let answers: Vec<u8> = taken.into_iter().flat_map(|taken| answer(taken).to_bytes()).collect();
        self.pay(cost).await;
        self.write(&answers).await
    }

    /// Whether the next message is here, all of it, and puts something.
    fn has_whole_put(&self) -> bool {
        match self.stream.buffer() {
            [a, b, c, d, 4..=6, rest @ ..] => {
                usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).is_ok_and(|len| len <= rest.len() + 1)
            }
            _ => false,
        }
    }

    async fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        let (head, body) = answer.parts();
        self.pay(budget::cost(head.len() + body.len())).await;
        self.tell(answer).await
    }

    /// Sends an answer. A long one, which is the list that all share, is not copied, however long that takes.
    async fn tell(&mut self, answer: &Answer) -> io::Result<()> {
        let (head, body) = answer.parts();
        if body.len() <= BUFFER {
            return self.write(&answer.to_bytes()).await;
        }
        self.write(&head).await?;
        self.write(body).await
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let piece = lock(&self.budgets).piece();
        for piece in bytes.chunks(piece) {
            loop {
                let wait = lock(&self.budgets).send(self.source, piece.len() + HEADERS, Instant::now());
                if wait.is_zero() {
                    break;
                }
                sleep(wait).await;
            }
            timeout(PATIENCE, self.stream.get_mut().write_all(piece)).await.map_err(|_| late())??;
        }
        Ok(())
    }

    /// Waits until the source may go on.
    async fn pay(&self, cost: f64) {
        let wait = lock(&self.budgets).take(self.source, cost, Instant::now());
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        lock(&self.budgets).leave(self.number, Instant::now());
    }
}

const fn kind_of(put: &Put) -> QuestionKind {
    match put {
        Put::Certificate(_) => QuestionKind::PutCertificate,
        Put::List(_) => QuestionKind::PutList,
        Put::DailyKeys(_) => QuestionKind::PutDailyKeys,
    }
}

/// What a put costs. The authority signs something new once, and it is taken once: that is not for a source to repeat. A node can sign
/// new daily keys as often as it likes.
fn cost(taken: &Taken, kind: QuestionKind) -> f64 {
    match taken {
        Taken::New if kind == QuestionKind::PutDailyKeys => budget::FOREIGN,
        Taken::New => 0.0,
        Taken::Refused(Refusal { reason: RefusalReason::Etcd | RefusalReason::Store, .. }) | Taken::Known => {
            budget::cost(0)
        }
        Taken::Refused(_) => budget::FOREIGN,
    }
}

fn answer_found(found: Result<Option<Vec<u8>>, Refusal>, answer: fn(Box<[u8]>) -> Answer) -> Answer {
    match found {
        Ok(Some(bytes)) => answer(bytes.into()),
        Ok(None) => Answer::NotFound,
        Err(refusal) => Answer::Refused(refusal.words),
    }
}

fn answer(taken: Taken) -> Answer {
    match taken {
        Taken::New | Taken::Known => Answer::Stored,
        Taken::Refused(refusal) => Answer::Refused(refusal.words),
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "what came is not a question")
}

fn full() -> io::Error {
    io::Error::other("its network has sent as much at once as it may")
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the other end is too slow")
}
