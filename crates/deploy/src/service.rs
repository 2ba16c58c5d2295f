//! What the commands over this host's network have in common: a runtime, signals, errors of
//! sockets.

use std::env;
use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{self, UnixDatagram};
use std::task::Poll;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;
use crate::log::{Entry, Level};
use crate::output;

/// One thread: a push, a gateway and a node are each a few tasks that mostly wait.
pub fn runtime() -> Result<Runtime, Error> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::missing(format!("cannot wait for sockets: {e}")))
}

/// Who has had enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The person at the keyboard: SIGINT.
    Interrupted,
    /// The service manager: SIGTERM, or SIGHUP where SIGHUP does not reload keys.
    Asked,
}

/// Signals, caught from the moment when this is made.
#[derive(Debug)]
pub struct Signals(Vec<(Signal, Stop)>);

impl Signals {
    /// To be called on a runtime.
    pub fn catch() -> Result<Self, Error> {
        let catch = |kind, stop| {
            let caught = signal(kind).map_err(|e| Error::missing(format!("cannot catch signals: {e}")))?;
            Ok::<_, Error>((caught, stop))
        };
        Ok(Self(vec![
            catch(SignalKind::interrupt(), Stop::Interrupted)?,
            catch(SignalKind::terminate(), Stop::Asked)?,
            catch(SignalKind::hangup(), Stop::Asked)?,
        ]))
    }

    /// For a service, whose SIGHUP means something else: that keys are to be read again.
    ///
    /// # Errors
    /// Signals cannot be caught.
    pub fn of_service() -> Result<(Self, Hangup), Error> {
        let Self(mut caught) = Self::catch()?;
        let (hangup, _) = caught.pop().expect("SIGHUP is the last");
        Ok((Self(caught), Hangup(hangup)))
    }

    /// The first that comes.
    pub fn first(&mut self) -> impl Future<Output = Stop> {
        std::future::poll_fn(|cx| {
            let come =
                self.0.iter_mut().find_map(|(signal, stop)| signal.poll_recv(cx).is_ready().then_some(*stop));
            come.map_or(Poll::Pending, Poll::Ready)
        })
    }
}

/// SIGHUP, caught.
#[derive(Debug)]
pub struct Hangup(Signal);

impl Hangup {
    /// Reads keys again each time that the signal comes. What cannot be read is said, and all stays
    /// as it was.
    pub async fn each(&mut self, reload: impl Fn() -> Result<(), Error>) {
        while self.0.recv().await.is_some() {
            notify("RELOADING=1");
            match reload() {
                Ok(()) => Entry::info("reloaded", "keys were read again").write(),
                Err(error) => {
                    let (message, hint) = error.parts();
                    let entry = Entry::new(
                        Level::Error,
                        "not reloaded",
                        format!("keys stay as they were: error: {message}"),
                    );
                    hint.into_iter().fold(entry, Entry::hinted).write();
                }
            }
            notify("READY=1");
        }
    }
}

impl Stop {
    /// How a service that was stopped has ended.
    pub fn verdict(self) -> Result<(), Error> {
        notify("STOPPING=1");
        match self {
            Self::Interrupted => Err(Error::Interrupted),
            Self::Asked => Ok(()),
        }
    }
}

/// What `--check` says when nothing is wrong.
pub fn checked(program: &str) -> Result<(), Error> {
    output::text(&format!("{program}: the options are good\n"))
}

/// Tells systemd, if it has started us, that whoever calls is answered from now on.
pub fn ready() {
    notify("READY=1");
}

/// One datagram to where NOTIFY_SOCKET says, as in sd_notify(3). Without the variable nobody wants
/// to know; a service manager that cannot be reached finds out by its own time-out.
fn notify(state: &str) {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else { return };
    let _ = tell(&path, state);
}

fn tell(path: &OsStr, state: &str) -> io::Result<()> {
    let address = match path.as_bytes() {
        // An abstract name.
        [b'@', name @ ..] => net::SocketAddr::from_abstract_name(name)?,
        _ => net::SocketAddr::from_pathname(path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

/// Nobody can call there.
pub fn cannot_listen(address: SocketAddr, error: &io::Error) -> Error {
    let message = format!("cannot listen on {address}: {error}");
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Error::missing(message).with_hint("ports below 1024 need CAP_NET_BIND_SERVICE; take a higher one")
        }
        io::ErrorKind::AddrInUse => {
            Error::input(message).with_hint("another program listens there; take another port")
        }
        io::ErrorKind::AddrNotAvailable => {
            Error::input(message).with_hint("take an address of this host, 0.0.0.0 or [::] for all")
        }
        _ => Error::input(message),
    }
}
