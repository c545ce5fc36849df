//! One QUIC stream from memory to memory, of the library `quinn` as it comes: what a file costs beyond that is Strait's.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use quinn::{
    ClientConfig, Endpoint, EndpointConfig, MtuDiscoveryConfig, ServerConfig, TokioRuntime, TransportConfig,
};
use strait_testbed::Namespace;

use crate::error::Error;

/// The name in the certificate.
const NAME: &str = "receiver";
/// The largest datagram of an Ethernet, which QUIC probes for: Strait's streams have the same.
const DATAGRAM: u16 = 1_472;
/// Bytes that are read at once.
const CHUNK: usize = 1 << 18;
/// The one byte that says that all has arrived.
const DONE: u8 = 1;

/// One stream on its way.
pub(crate) struct BareStream<'a> {
    pub(crate) from: &'a Namespace,
    pub(crate) to: &'a Namespace,
    pub(crate) address: IpAddr,
    pub(crate) content: &'a Arc<[u8]>,
    /// How long all of it may take.
    pub(crate) patience: Duration,
}

impl BareStream<'_> {
    /// How long it takes from the first datagram until the sender knows that all bytes arrived and are right.
    pub(crate) fn run(&self) -> Result<Duration, Error> {
        let (told, port) = mpsc::channel();
        let (address, content, patience) = (self.address, Arc::clone(self.content), self.patience);
        let receiver = self.to.spawn(move || {
            let identity = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(io::Error::other)?;
            let certificate = CertificateDer::from(identity.cert);
            let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der()));
            let mut config =
                ServerConfig::with_single_cert(vec![certificate.clone()], key).map_err(io::Error::other)?;
            config.transport_config(transport());
            driven(patience, async move {
                let socket = UdpSocket::bind((address, 0))?;
                let bound = socket.local_addr()?;
                let endpoint =
                    Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(TokioRuntime))?;
                told.send((bound, certificate)).map_err(io::Error::other)?;
                receive(&endpoint, &content).await
            })
        })?;
        let (to, certificate) = port
            .recv_timeout(patience)
            .map_err(|error| Error::doing("start a QUIC receiver")(io::Error::other(error)))?;
        let content = Arc::clone(self.content);
        let sender = self.from.spawn(move || {
            let mut roots = RootCertStore::empty();
            roots.add(certificate).map_err(io::Error::other)?;
            let mut config =
                ClientConfig::with_root_certificates(Arc::new(roots)).map_err(io::Error::other)?;
            config.transport_config(transport());
            driven(patience, send(to, config, &content))
        })?;
        let ended = |thread: std::thread::JoinHandle<io::Result<Duration>>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
        };
        let took = ended(sender).map_err(Error::doing("send over a QUIC stream"));
        ended(receiver).map_err(Error::doing("receive over a QUIC stream"))?;
        took
    }
}

/// Windows and congestion control of the library's own; the largest datagram as large as Strait's.
fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let mut search = MtuDiscoveryConfig::default();
    search.upper_bound(DATAGRAM);
    config.mtu_discovery_config(Some(search));
    Arc::new(config)
}

/// Runs one end on this thread.
fn driven<T>(patience: Duration, end: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { tokio::time::timeout(patience, end).await.map_err(io::Error::other)? })
}

async fn send(to: SocketAddr, config: ClientConfig, content: &[u8]) -> io::Result<Duration> {
    let any = if to.is_ipv4() { [0; 4].into() } else { IpAddr::from(Ipv6Addr::UNSPECIFIED) };
    let endpoint = Endpoint::client((any, 0).into())?;
    let begun = Instant::now();
    let connection = endpoint.connect_with(config, to, NAME).map_err(io::Error::other)?.await?;
    let (mut writer, mut reader) = connection.open_bi().await?;
    writer.write_all(content).await?;
    writer.finish().map_err(io::Error::other)?;
    let answer = reader.read_to_end(1).await.map_err(io::Error::other)?;
    let took = begun.elapsed();
    connection.close(0_u8.into(), b"");
    endpoint.wait_idle().await;
    if answer == [DONE] { Ok(took) } else { Err(io::Error::other("the receiver did not get all of it")) }
}

async fn receive(endpoint: &Endpoint, content: &[u8]) -> io::Result<Duration> {
    let incoming = endpoint.accept().await.ok_or_else(|| io::Error::other("nothing came"))?;
    let begun = Instant::now();
    let connection = incoming.await?;
    let (mut writer, mut reader) = connection.accept_bi().await?;
    let mut left = content;
    while let Some(chunk) = reader.read_chunk(CHUNK, true).await? {
        left = left.strip_prefix(&chunk.bytes[..]).ok_or_else(|| io::Error::other("other bytes arrived"))?;
    }
    if !left.is_empty() {
        return Err(io::Error::other("not all of it arrived"));
    }
    writer.write_all(&[DONE]).await?;
    writer.finish().map_err(io::Error::other)?;
    connection.closed().await;
    Ok(begun.elapsed())
}
