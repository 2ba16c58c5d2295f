//! The stack between the kernel's TUN devices and the tasks of connections, on one thread.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use anabranch_core::mptcp::PathId;
use anabranch_core::tcp::CloseReason;
use anabranch_core::time::Instant;
use anabranch_net::clock::Clock;
use bytes::Bytes;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, spawn_local, yield_now};
use tun_rs::SyncDevice;

use super::stack::{ConnId, ConnectError, Options, PathConfig, Read, Stack, StackEvent, Status};

/// A connection that a peer has opened: its id, the port, and the peer's address.
pub type Accepted = (ConnId, u16, SocketAddr);

/// A stack with its devices. All of its tasks run on one thread, in a
/// [`LocalSet`](tokio::task::LocalSet).
pub struct Engine {
    stack: RefCell<Stack>,
    devices: RefCell<BTreeMap<PathId, Attached>>,
    wakers: RefCell<HashMap<ConnId, Wakers>>,
    /// Wakes the task that sends and waits for timers.
    kick: Notify,
    /// When that task wakes up by itself.
    alarm: Cell<Option<Instant>>,
    packet: RefCell<Vec<u8>>,
    /// Bytes on their way from a kernel's socket into the stack.
    pub(super) scratch: RefCell<Vec<u8>>,
    accepted: UnboundedSender<Accepted>,
    clock: Clock,
    /// Packets that a device did not take.
    pub(super) unsent: Cell<u64>,
}

struct Attached {
    device: Rc<AsyncFd<SyncDevice>>,
    reader: AbortHandle,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Tasks that wait for a connection.
#[derive(Default)]
struct Wakers {
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Engine {
    /// Creates an engine without devices. Connections that peers open arrive at the receiver.
    pub fn new(options: Options) -> (Rc<Self>, UnboundedReceiver<Accepted>) {
        let (accepted, receiver) = unbounded_channel();
        let this = Self {
            stack: RefCell::new(Stack::new(options)),
            devices: RefCell::default(),
            wakers: RefCell::default(),
            kick: Notify::new(),
            alarm: Cell::new(None),
            packet: RefCell::default(),
            scratch: RefCell::new(vec![0; 1 << 16]),
            accepted,
            clock: Clock::start(),
            unsent: Cell::new(0),
        };
        (Rc::new(this), receiver)
    }

    /// Adds a path, or replaces its device. Must be called in a
    /// [`LocalSet`](tokio::task::LocalSet).
    ///
    /// # Errors
    /// The device cannot be waited for.
    pub fn attach(self: &Rc<Self>, path: PathId, device: SyncDevice, config: PathConfig) -> io::Result<()> {
        #[expect(
            deprecated,
            reason = "its replacement is `unsafe`; a device keeps its descriptor as long as it lives"
        )]
        let device = Rc::new(AsyncFd::new(device)?);
        let (engine, readable) = (Rc::clone(self), Rc::clone(&device));
        let reader = spawn_local(async move { engine.read_device(path, &readable).await });
        let attached = Attached { device, reader: reader.abort_handle() };
        self.devices.borrow_mut().insert(path, attached);
        self.stack.borrow_mut().add_path(path, config);
        self.kick.notify_one();
        Ok(())
    }

    /// Changes the addresses and properties of a path whose device stays.
    pub fn change(&self, path: PathId, config: PathConfig) {
        self.stack.borrow_mut().add_path(path, config);
        self.kick.notify_one();
    }

    /// Notes that a path is lost. Its device stays for [`Engine::change`].
    pub fn suspend(&self, path: PathId) {
        self.stack.borrow_mut().remove_path(path);
        // What takes long may follow, so the peers are told first.
        self.flush();
        self.kick.notify_one();
    }

    /// Notes that a path is lost, and closes its device.
    pub fn detach(&self, path: PathId) {
        self.suspend(path);
        self.devices.borrow_mut().remove(&path);
    }

    /// Access to the stack, for reports and listeners.
    pub fn stack<T>(&self, deed: impl FnOnce(&mut Stack) -> T) -> T {
        deed(&mut self.stack.borrow_mut())
    }

    /// Monotonic time since the start.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Resets all connections, so that the peers learn of the end. The resets are sent several
    /// times, since the queue of a link is often full of what was sent before.
    pub async fn stop(&self) {
        let mut resets = Vec::new();
        let now = self.now();
        self.stack(|stack| {
            stack.abort_all(now);
            let mut packet = Vec::new();
            while let Some(path) = stack.poll_transmit(now, &mut packet) {
                resets.push((path, packet.clone()));
            }
        });
        // Programs whose connections are over learn of it meanwhile.
        self.flush();
        for _ in 0..if resets.is_empty() { 0 } else { RESETS } {
            for (path, packet) in &resets {
                if let Some(to) = self.devices.borrow().get(path) {
                    let _ = to.device.get_ref().send(packet);
                }
            }
            tokio::time::sleep(RESET_PAUSE).await;
        }
    }

    /// Sends what the stack has to send and waits for its timers, forever.
    pub async fn run(&self) {
        loop {
            self.alarm.set(self.flush());
            let wait = self.alarm.get().map(|at| at.saturating_since(self.now()));
            let alarm = async {
                match wait {
                    Some(wait) => tokio::time::sleep(std::time::Duration::from_nanos(wait.as_nanos())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.kick.notified() => {}
                () = alarm => {}
            }
        }
    }

    /// Passes packets of a device to the stack until the device is gone.
    async fn read_device(&self, path: PathId, device: &AsyncFd<SyncDevice>) {
        // The MTU may grow while the device stays, so there is room for the longest packet.
        let mut packet = vec![0; 1 << 16];
        loop {
            let Ok(mut ready) = device.readable().await else { return };
            match self.receive(path, device.get_ref(), &mut packet) {
                Ok(Received::All) => ready.clear_ready(),
                Ok(Received::Batch) => {}
                Err(_) => return,
            }
            let next = self.flush();
            if next.is_some() && (self.alarm.get().is_none() || next < self.alarm.get()) {
                self.kick.notify_one();
            }
            // Another device, and the tasks of connections, have their turn.
            yield_now().await;
        }
    }

    /// Passes packets to the stack, at most [`BATCH`].
    fn receive(&self, path: PathId, device: &SyncDevice, packet: &mut [u8]) -> io::Result<Received> {
        let mut stack = self.stack.borrow_mut();
        let now = self.now();
        for _ in 0..BATCH {
            match device.recv(packet) {
                Ok(len) => stack.handle_packet(now, path, packet.get(..len).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Received::All),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Received::Batch)
    }

    /// Sends all packets and reports all events of the stack. Returns when its next timer expires.
    pub(super) fn flush(&self) -> Option<Instant> {
        let mut stack = self.stack.borrow_mut();
        let devices = self.devices.borrow();
        let mut packet = self.packet.borrow_mut();
        let now = self.now();
        if stack.next_timeout().is_some_and(|at| at <= now) {
            stack.handle_timeout(now);
        }
        while let Some(path) = stack.poll_transmit(now, &mut packet) {
            let sent = devices.get(&path).is_some_and(|to| to.device.get_ref().send(&packet).is_ok());
            self.unsent.set(self.unsent.get() + u64::from(!sent));
        }
        let mut wakers = self.wakers.borrow_mut();
        while let Some(event) = stack.poll_event() {
            match event {
                StackEvent::Accepted { id, port, peer } => {
                    // Without a receiver the program ends.
                    let _ = self.accepted.send((id, port, peer));
                }
                StackEvent::Changed(id) => {
                    let waiting = wakers.get_mut(&id);
                    let woken = waiting.map(|tasks| [tasks.reader.take(), tasks.writer.take()]);
                    woken.into_iter().flatten().flatten().for_each(Waker::wake);
                }
            }
        }
        stack.next_timeout()
    }

    /// Opens a connection and waits until it is open.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn connect(self: &Rc<Self>, remote: SocketAddr) -> Result<Stream, OpenError> {
        let id = self.stack.borrow_mut().connect(self.now(), remote)?;
        let stream = Stream { engine: Rc::clone(self), id };
        self.kick.notify_one();
        poll_fn(|cx| match self.stack.borrow().status(id) {
            Status::Opening => {
                self.wakers.borrow_mut().entry(id).or_default().reader = Some(cx.waker().clone());
                Poll::Pending
            }
            Status::Open => Poll::Ready(Ok(())),
            Status::Closed(reason) => Poll::Ready(Err(OpenError::Closed(reason))),
        })
        .await?;
        Ok(stream)
    }

    /// A connection that a peer has opened.
    pub fn accept(self: &Rc<Self>, id: ConnId) -> Stream {
        Stream { engine: Rc::clone(self), id }
    }
}

enum Received {
    /// The device has no more packets.
    All,
    /// More packets may wait.
    Batch,
}

/// Why a connection is not open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// The stack refuses it.
    #[error(transparent)]
    Refused(#[from] ConnectError),
    /// It was closed: by the peer, or because there was no answer.
    #[error("{0:?}")]
    Closed(CloseReason),
}

/// A connection of an [`Engine`]. Dropping this aborts the connection, unless both directions are
/// closed.
pub struct Stream {
    engine: Rc<Engine>,
    id: ConnId,
}

impl Stream {
    /// Waits for data, and returns what has arrived, up to `pieces` pieces. Empty at the end.
    ///
    /// # Errors
    /// The connection has failed.
    pub async fn read(&self, into: &mut Vec<Bytes>, pieces: usize) -> Result<(), CloseReason> {
        let outcome = poll_fn(|cx| {
            let mut stack = self.engine.stack.borrow_mut();
            let now = self.engine.now();
            while into.len() < pieces {
                match stack.read(now, self.id, usize::MAX) {
                    Read::Data(data) => into.push(data),
                    _ if !into.is_empty() => break,
                    Read::Nothing => return self.wait(cx, |tasks| &mut tasks.reader),
                    Read::End => break,
                    Read::Failed(reason) => return Poll::Ready(Err(reason)),
                }
            }
            Poll::Ready(Ok(()))
        })
        .await;
        // Reading may have opened the window.
        self.engine.kick.notify_one();
        outcome
    }

    /// Waits until data can be written, and returns the number of bytes, at least 1.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn writable(&self) -> Result<usize, CloseReason> {
        poll_fn(|cx| {
            let mut stack = self.engine.stack.borrow_mut();
            match (stack.status(self.id), stack.space(self.id)) {
                (Status::Closed(reason), _) => Poll::Ready(Err(reason)),
                (_, 0) => self.wait(cx, |tasks| &mut tasks.writer),
                (_, space) => Poll::Ready(Ok(space)),
            }
        })
        .await
    }

    /// Waits until the connection is over.
    pub async fn closed(&self) -> CloseReason {
        poll_fn(|cx| match self.engine.stack.borrow().status(self.id) {
            Status::Closed(reason) => Poll::Ready(reason),
            _ => self.wait(cx, |tasks| &mut tasks.writer),
        })
        .await
    }

    /// Queues data, for which [`Stream::writable`] has found room.
    pub fn write(&self, mut data: Bytes) -> Result<(), CloseReason> {
        let now = self.engine.now();
        let written = self.engine.stack.borrow_mut().write(now, self.id, &mut data);
        self.engine.kick.notify_one();
        match written {
            Ok(_) if data.is_empty() => Ok(()),
            _ => Err(CloseReason::Aborted),
        }
    }

    /// A buffer that all connections share, for one step.
    pub(super) fn scratch(&self) -> std::cell::RefMut<'_, Vec<u8>> {
        self.engine.scratch.borrow_mut()
    }

    /// Closes the sending direction after the queued data.
    pub fn close(&self) {
        self.engine.stack.borrow_mut().close(self.engine.now(), self.id);
        self.engine.kick.notify_one();
    }

    /// Ends the use of a connection whose directions are both closed.
    pub fn release(self) {
        self.engine.stack.borrow_mut().release(self.engine.now(), self.id);
    }

    fn wait<T>(&self, cx: &Context<'_>, place: impl Fn(&mut Wakers) -> &mut Option<Waker>) -> Poll<T> {
        let mut wakers = self.engine.wakers.borrow_mut();
        *place(wakers.entry(self.id).or_default()) = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.engine.wakers.borrow_mut().remove(&self.id);
        let mut stack = self.engine.stack.borrow_mut();
        // Nothing happens to a connection that was released.
        stack.abort(self.engine.now(), self.id);
        drop(stack);
        self.engine.kick.notify_one();
    }
}

/// Number of times that the resets at the end are sent, and the time between them.
const RESETS: u32 = 3;
const RESET_PAUSE: std::time::Duration = std::time::Duration::from_millis(30);
/// Packets read from a device before the others have their turn.
const BATCH: usize = 256;
