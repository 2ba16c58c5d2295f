//! A relay between the ends of a connection that flips bits in a way that TCP's checksum would have
//! to detect.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use anabranch_testkit::netns::within;

/// A flipped bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flip {
    /// Index of the connection, in the order of calls.
    pub(crate) connection: u64,
    /// Whether the bit is in the direction from the called to the caller.
    pub(crate) is_answer: bool,
    /// Number of bytes of that direction before the bit.
    pub(crate) at: u64,
    pub(crate) bit: u8,
}

/// Listens in a namespace instead of a program, and forwards all data. Ends when it is dropped.
pub(crate) struct Relay {
    netns: String,
    listens: SocketAddr,
    has_ended: Arc<AtomicBool>,
    flipped: Arc<AtomicU64>,
}

impl Relay {
    pub(crate) fn open(netns: &str, listens: SocketAddr, calls: SocketAddr, flips: Vec<Flip>) -> Self {
        let listener = within(netns, || TcpListener::bind(listens)).expect("the address is free");
        let (has_ended, flipped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let relay = Self { netns: netns.to_owned(), listens, has_ended, flipped };
        let (netns, has_ended, flipped) =
            (netns.to_owned(), Arc::clone(&relay.has_ended), Arc::clone(&relay.flipped));
        thread::spawn(move || {
            // Threads that are started inside the namespace stay there.
            within(&netns, || {
                for (connection, caller) in listener.incoming().flatten().enumerate() {
                    if has_ended.load(Ordering::Relaxed) {
                        return;
                    }
                    let flips = flips.iter().filter(|flip| flip.connection == connection as u64);
                    let (answers, calls_of): (Vec<Flip>, Vec<Flip>) = flips.partition(|flip| flip.is_answer);
                    let flipped = Arc::clone(&flipped);
                    thread::spawn(move || {
                        let Ok(called) = TcpStream::connect(calls) else { return };
                        let (Ok(back), Ok(there)) = (called.try_clone(), caller.try_clone()) else { return };
                        let counter = Arc::clone(&flipped);
                        thread::spawn(move || carry(back, there, &answers, &counter));
                        carry(caller, called, &calls_of, &flipped);
                    });
                }
            });
        });
        relay
    }

    /// Number of bits flipped so far.
    pub(crate) fn flipped(&self) -> u64 {
        self.flipped.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        let _ = within(&self.netns, || TcpStream::connect(self.listens));
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, flips: &[Flip], flipped: &AtomicU64) {
    let (mut octets, mut before) = (vec![0; 16 << 10], 0);
    loop {
        let n = match from.read(&mut octets) {
            Ok(n) if n > 0 => n,
            ended => {
                let _ = to.shutdown(if ended.is_ok() { Shutdown::Write } else { Shutdown::Both });
                return;
            }
        };
        for flip in flips.iter().filter(|flip| (before..before + n as u64).contains(&flip.at)) {
            octets[(flip.at - before) as usize] ^= 1 << flip.bit;
            flipped.fetch_add(1, Ordering::Relaxed);
        }
        before += n as u64;
        if to.write_all(&octets[..n]).is_err() {
            let _ = from.shutdown(Shutdown::Both);
            return;
        }
    }
}
