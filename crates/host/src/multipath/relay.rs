//! Connections of local programs: the dialogues of the proxies, and the bytes between a kernel's
//! socket and a connection of the stack.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anabranch_core::tcp::CloseReason;
use bytes::Bytes;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{sleep, timeout};

use super::engine::{Engine, OpenError, Stream};
use super::proxy::{
    HttpError, LONGEST_HEAD, Parsed, Reply, SOCKS_METHOD, Target, connect_request, socks_greeting,
    socks_request,
};
use super::stack::ConnectError;

/// What a listening socket of this host does with its clients.
#[derive(Clone, Debug)]
pub(super) enum Service {
    /// The client is asked by SOCKS.
    Socks,
    /// The client is asked by HTTP.
    Connect,
    /// All clients have this destination.
    Forward(Target),
}

impl Service {
    /// What the log calls it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Socks => "SOCKS".to_owned(),
            Self::Connect => "HTTP CONNECT".to_owned(),
            Self::Forward(target) => format!("forwarding to {target}"),
        }
    }
}

/// The clients of a listener whose connection is not open yet.
pub(super) struct Entrants {
    /// Room for further ones.
    room: Arc<Semaphore>,
    /// Those that have not said their destination, the oldest first.
    silent: RefCell<BTreeMap<u64, AbortHandle>>,
}

impl Entrants {
    /// At most `number` at the same time.
    pub(super) fn new(number: usize) -> Rc<Self> {
        Rc::new(Self { room: Arc::new(Semaphore::new(number)), silent: RefCell::default() })
    }

    /// Room for one more. The oldest client that has not said its destination gives way.
    async fn admit(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(entrant) = Arc::clone(&self.room).try_acquire_owned() {
            return Some(entrant);
        }
        if let Some((_, oldest)) = self.silent.borrow_mut().pop_first() {
            oldest.abort();
        }
        Arc::clone(&self.room).acquire_owned().await.ok()
    }
}

/// Serves the clients of a listener, forever. If other hosts can be `remote` clients of a proxy, it
/// leads to none of this host's own addresses: what its firewall keeps from them would be open.
///
/// A client counts as one of the listener's `entrants` until its connection is open. One client
/// more has a descriptor: the one that waits for its admission.
pub(super) async fn serve(
    engine: Rc<Engine>,
    listener: TcpListener,
    service: Service,
    entrants: Rc<Entrants>,
    remote: bool,
) {
    for number in 0.. {
        let client = match listener.accept().await {
            Ok((client, _)) => client,
            // For example when the process has no descriptors left.
            Err(_) => {
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(entrant) = entrants.admit().await else { return };
        let asks = !matches!(service, Service::Forward(_));
        let (engine, service, known) = (Rc::clone(&engine), service.clone(), Rc::clone(&entrants));
        let task = spawn_local(async move {
            let asked = ask(&client, &service).await;
            // From now on it gives way to no other.
            known.silent.borrow_mut().remove(&number);
            if let Some(asked) = asked {
                serve_client(&engine, &client, &service, asked, entrant, remote).await;
            }
        });
        if asks {
            entrants.silent.borrow_mut().insert(number, task.abort_handle());
        }
    }
}

/// Passes a connection that a peer has opened to a local server.
pub(super) async fn pass(stream: Stream, target: Target) {
    let connected = async {
        for address in resolve(&target).await {
            if let Ok(server) = TcpStream::connect(address).await {
                return Some(server);
            }
        }
        None
    };
    if let Ok(Some(server)) = timeout(OPENING, connected).await {
        relay(&server, stream).await;
    }
}

/// The destination of a client, and bytes that follow its request. `None` if it requests none.
async fn ask(client: &TcpStream, service: &Service) -> Option<(Target, Vec<u8>)> {
    let _ = client.set_nodelay(true);
    match service {
        Service::Forward(target) => Some((target.clone(), Vec::new())),
        Service::Socks => timeout(DIALOGUE, ask_socks(client)).await.ok().flatten(),
        Service::Connect => timeout(DIALOGUE, ask_http(client)).await.ok().flatten(),
    }
}

async fn serve_client(
    engine: &Rc<Engine>,
    client: &TcpStream,
    service: &Service,
    (target, first): (Target, Vec<u8>),
    entrant: OwnedSemaphorePermit,
    remote: bool,
) {
    let guarded = remote && !matches!(service, Service::Forward(_));
    let opened = open(engine, &target, guarded).await;
    drop(entrant);
    let reply = opened.as_ref().map_or_else(|reply| *reply, |_| Reply::Succeeded);
    let answered = match service {
        Service::Socks => say(client, &reply.encode()).await,
        Service::Connect => say(client, reply.http().as_bytes()).await,
        Service::Forward(_) => Some(()),
    };
    match (opened, answered) {
        // The send buffer of a new connection has room for what followed the request.
        (Ok(stream), Some(())) if first.is_empty() || stream.write(Bytes::from(first)).is_ok() => {
            relay(client, stream).await;
        }
        // The client of a forward learns of the failure by a reset.
        (Err(_), _) if matches!(service, Service::Forward(_)) => reset(client),
        _ => {}
    }
}

/// Opens a connection to the first address of a destination that answers.
async fn open(engine: &Rc<Engine>, target: &Target, guarded: bool) -> Result<Stream, Reply> {
    let connecting = async {
        let mut reply = Reply::HostUnreachable;
        for address in resolve(target).await {
            if guarded && is_own(address) {
                reply = Reply::NotAllowed;
                continue;
            }
            match timeout(ATTEMPT, engine.connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => reply = reply_to(error),
                Err(_) => reply = Reply::HostUnreachable,
            }
        }
        Err(reply)
    };
    timeout(OPENING, connecting).await.unwrap_or(Err(Reply::HostUnreachable))
}

/// Whether an address is one of this host, which a socket can have. Without a free descriptor it
/// may be. With `net.ipv4.ip_nonlocal_bind` all are.
fn is_own(address: SocketAddr) -> bool {
    let bound = UdpSocket::bind((address.ip(), 0));
    !bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

fn reply_to(error: OpenError) -> Reply {
    match error {
        OpenError::Refused(ConnectError::NoPath) => Reply::NetworkUnreachable,
        OpenError::Refused(ConnectError::Destination) => Reply::HostUnreachable,
        OpenError::Refused(ConnectError::TooMany) => Reply::Failure,
        OpenError::Closed(CloseReason::Refused | CloseReason::Reset) => Reply::Refused,
        OpenError::Closed(_) => Reply::HostUnreachable,
    }
}

async fn resolve(target: &Target) -> Vec<SocketAddr> {
    match target {
        Target::Address(address) => vec![*address],
        Target::Name(name, port) => {
            lookup_host((name.as_str(), *port)).await.map(Iterator::collect).unwrap_or_default()
        }
    }
}

/// The destination that a client of SOCKS requests, and bytes that follow its request.
async fn ask_socks(client: &TcpStream) -> Option<(Target, Vec<u8>)> {
    let mut said = Vec::new();
    let mut greeted = false;
    loop {
        let (refused, next) = if greeted {
            match socks_request(&said) {
                Ok(Parsed::Done(target, len)) => return Some((target, said.split_off(len))),
                Ok(Parsed::More) => (None, None),
                Err(error) => (Some(error), None),
            }
        } else {
            match socks_greeting(&said) {
                Ok(Parsed::Done((), len)) => (None, Some(len)),
                Ok(Parsed::More) => (None, None),
                Err(error) => (Some(error), None),
            }
        };
        if let Some(error) = refused {
            say(client, &error.answer()).await;
            return None;
        }
        if let Some(len) = next {
            said.drain(..len);
            greeted = true;
            say(client, &SOCKS_METHOD).await?;
        } else {
            hear(client, &mut said).await?;
        }
    }
}

/// The destination that a client of HTTP requests, and bytes that follow its request.
async fn ask_http(client: &TcpStream) -> Option<(Target, Vec<u8>)> {
    let mut said = Vec::new();
    loop {
        match connect_request(&said) {
            Ok(Parsed::Done(target, len)) => return Some((target, said.split_off(len))),
            Ok(Parsed::More) => hear(client, &mut said).await?,
            Err(error) => {
                let error: HttpError = error;
                say(client, error.answer().as_bytes()).await;
                return None;
            }
        }
    }
}

/// Appends what a client says next. `None` at its end, or if it says too much.
async fn hear(client: &TcpStream, said: &mut Vec<u8>) -> Option<()> {
    let mut octets = [0; 1024];
    loop {
        client.readable().await.ok()?;
        match client.try_read(&mut octets) {
            Ok(0) => return None,
            Ok(len) => {
                said.extend_from_slice(&octets[..len]);
                return (said.len() <= 2 * LONGEST_HEAD).then_some(());
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

async fn say(client: &TcpStream, octets: &[u8]) -> Option<()> {
    write_all(client, &[Bytes::copy_from_slice(octets)]).await.ok()
}

/// Moves bytes in both directions until both have ended, or the connection fails.
async fn relay(client: &TcpStream, stream: Stream) {
    // From the start, so that a program that is stopped or killed does not end the data cleanly.
    reset(client);
    // The stack resets its connection when the stream is dropped.
    if tokio::try_join!(upload(client, &stream), download(client, &stream)).is_ok() {
        let _ = SockRef::from(client).set_linger(None);
        stream.release();
    }
}

/// One of the two connections has failed.
struct Broken;

impl From<CloseReason> for Broken {
    fn from(_: CloseReason) -> Self {
        Self
    }
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self
    }
}

async fn upload(client: &TcpStream, stream: &Stream) -> Result<(), Broken> {
    loop {
        let space = stream.writable().await?;
        // A client that is silent learns of a failure too.
        tokio::select! {
            ready = client.readable() => ready?,
            reason = stream.closed() => return Err(reason.into()),
        }
        let data = {
            let mut scratch = stream.scratch();
            let room = space.min(scratch.len());
            match client.try_read(&mut scratch[..room]) {
                Ok(len) => Bytes::copy_from_slice(&scratch[..len]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            }
        };
        if data.is_empty() {
            stream.close();
            return Ok(());
        }
        stream.write(data)?;
    }
}

async fn download(client: &TcpStream, stream: &Stream) -> Result<(), Broken> {
    loop {
        // Made anew, so that a connection that waits keeps no memory.
        let mut pieces = Vec::new();
        stream.read(&mut pieces, PIECES).await?;
        if pieces.is_empty() {
            return Ok(SockRef::from(client).shutdown(Shutdown::Write)?);
        }
        write_all(client, &pieces).await?;
    }
}

async fn write_all(client: &TcpStream, pieces: &[Bytes]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        match client.try_write_vectored(rest) {
            Ok(len) => IoSlice::advance_slices(&mut rest, len),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => client.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Lets the kernel reset the connection when the socket is closed.
fn reset(client: &TcpStream) {
    let _ = SockRef::from(client).set_linger(Some(Duration::ZERO));
}

/// Time for a client's request.
const DIALOGUE: Duration = Duration::from_secs(10);
/// Time for one address of a destination, and for all.
const ATTEMPT: Duration = Duration::from_secs(15);
const OPENING: Duration = Duration::from_secs(40);
/// Pause after an error of a listener.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Pieces of data that are written to a kernel's socket at once.
const PIECES: usize = 64;
