//! Shared parts of the commands that use this host's network: a runtime, signals, systemd, and
//! socket errors.

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

/// Creates a runtime with one thread: a push, a gateway and a node each consist of a few tasks that
/// mostly wait.
///
/// # Errors
/// The kernel refuses the descriptors that it needs.
pub fn runtime() -> Result<Runtime, Error> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::missing(format!("cannot wait for sockets: {e}")))
}

/// Why a program was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The user interrupted it: SIGINT.
    Interrupted,
    /// The service manager ended it: SIGTERM, or SIGHUP where SIGHUP does not reload keys.
    Asked,
}

/// Signals of the process, caught from its creation on.
#[derive(Debug)]
pub struct Signals(Vec<(Signal, Stop)>);

impl Signals {
    /// Catches SIGINT, SIGTERM and SIGHUP. Must be called on a runtime.
    ///
    /// # Errors
    /// The signals cannot be caught.
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

    /// Catches the signals of a service, for which SIGHUP means to read the keys again.
    ///
    /// # Errors
    /// The signals cannot be caught.
    pub fn of_service() -> Result<(Self, Hangup), Error> {
        let Self(mut caught) = Self::catch()?;
        let (hangup, _) = caught.pop().expect("SIGHUP is the last");
        Ok((Self(caught), Hangup(hangup)))
    }

    /// Waits for the first signal.
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
    /// Calls `reload` at each SIGHUP. If it fails, the error is logged and the old keys stay in
    /// use.
    pub async fn each(&mut self, reload: impl Fn() -> Result<(), Error>) {
        while self.0.recv().await.is_some() {
            // After RELOADING=1 systemd waits for READY=1, so it is sent whether the reload
            // succeeds or fails.
            notify("RELOADING=1");
            match reload() {
                Ok(()) => Entry::info("reloaded", "keys were read again").write(),
                Err(error) => {
                    let (message, hint) = error.parts();
                    let entry =
                        Entry::new(Level::Error, "not reloaded", format!("keys unchanged: error: {message}"));
                    hint.into_iter().fold(entry, Entry::hinted).write();
                }
            }
            notify("READY=1");
        }
    }
}

impl Stop {
    /// The result of a service that was stopped.
    pub fn verdict(self) -> Result<(), Error> {
        notify("STOPPING=1");
        match self {
            Self::Interrupted => Err(Error::Interrupted),
            Self::Asked => Ok(()),
        }
    }
}

/// Prints that the options passed `--check`.
pub fn checked(program: &str) -> Result<(), Error> {
    output::text(&format!("{program}: the options are valid\n"))
}

/// Tells systemd, if it started this process, that the service answers from now on.
pub fn ready() {
    notify("READY=1");
}

/// Sends one datagram to the socket in NOTIFY_SOCKET (sd_notify(3)). Without the variable nothing
/// is sent. A failure is ignored, since the service manager has a time-out of its own.
fn notify(state: &str) {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else { return };
    let _ = tell(&path, state);
}

fn tell(path: &OsStr, state: &str) -> io::Result<()> {
    let address = match path.as_bytes() {
        // A leading `@` marks an abstract socket name.
        [b'@', name @ ..] => net::SocketAddr::from_abstract_name(name)?,
        _ => net::SocketAddr::from_pathname(path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

/// Error for an address at which the program cannot listen.
pub fn cannot_listen(address: SocketAddr, error: &io::Error) -> Error {
    let message = format!("cannot listen on {address}: {error}");
    match error.kind() {
        io::ErrorKind::PermissionDenied => Error::missing(message)
            .with_hint("ports below 1024 need CAP_NET_BIND_SERVICE; choose a higher port"),
        io::ErrorKind::AddrInUse => Error::input(message)
            .with_hint("another program listens on this port; stop it or choose another port"),
        io::ErrorKind::AddrNotAvailable => {
            Error::input(message).with_hint("use an address of this host, or 0.0.0.0 or [::] for all")
        }
        _ => Error::input(message),
    }
}
