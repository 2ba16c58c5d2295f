//! A queue of the kernel's packet filter (NFQUEUE), over netlink: `nfnetlink_queue` of
//! `linux/netfilter/nfnetlink_queue.h`.
//!
//! The crate `nfq` covers the same ground with `unsafe` code and one system call for each verdict.
//! This client has no `unsafe` code, sends the verdicts of all packets that it has read with one
//! call, and reads messages without copying them.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// Options of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueOptions {
    /// Number of the queue, as in `--queue-num` of the rule.
    pub number: u16,
    /// Number of packets that may wait for a verdict. Further ones pass without one.
    pub length: u32,
    /// Receive buffer of the socket in bytes. Packets without room in it pass without a verdict.
    pub buffer: usize,
}

/// A queue of packets that wait for verdicts. Packets pass while no process has the queue open, if
/// the rule says `--queue-bypass`.
#[derive(Debug)]
pub struct Queue {
    socket: OwnedFd,
    number: u16,
    buffer: Box<[u8]>,
    verdicts: Vec<u8>,
}

/// A packet that waits for a verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queued<'a> {
    /// Number of the packet, for its verdict.
    pub id: u32,
    /// Whether the checksum of the transport header is still to be computed by a device. The
    /// content is as its sender wrote it.
    pub checksum_pending: bool,
    /// Whether a device will cut the packet into segments (GSO). It may be longer than an MTU.
    pub is_gso: bool,
    /// The packet, beginning with its IP header. At most 65535 bytes: the end of a longer one is
    /// missing.
    pub packet: &'a [u8],
}

/// What the kernel does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Forward the packet.
    Accept,
    /// Drop the packet.
    Drop,
}

impl Queue {
    /// Opens a queue.
    ///
    /// # Errors
    /// `PermissionDenied`: CAP_NET_ADMIN is missing. `AddrInUse`: another process has this queue
    /// open. `Unsupported`: the kernel has no NFQUEUE.
    pub fn open(options: QueueOptions) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::NETFILTER))?;
        // The privileged call exceeds net.core.rmem_max.
        set_socket_recv_buffer_size_force(&socket, options.buffer)
            .or_else(|_| set_socket_recv_buffer_size(&socket, options.buffer))?;
        let buffer = vec![0; LONGEST_MESSAGE].into_boxed_slice();
        let mut queue = Self { socket, number: options.number, buffer, verdicts: Vec::new() };
        // Of all packets, each as a whole (NFQNL_COPY_PACKET).
        let bind = [CMD_BIND, 0, 0, 0];
        let mut params = u32::from(u16::MAX).to_be_bytes().to_vec();
        params.push(COPY_PACKET);
        queue.configure(&[(CFG_CMD, &bind), (CFG_PARAMS, &params)])?;
        let flags = (FLAG_FAIL_OPEN | FLAG_GSO).to_be_bytes();
        queue.configure(&[(CFG_MASK, &flags), (CFG_FLAGS, &flags)])?;
        queue.configure(&[(CFG_QUEUE_MAXLEN, &options.length.to_be_bytes())])?;
        Ok(queue)
    }

    /// Sends a configuration message and waits for its acknowledgement.
    fn configure(&mut self, attributes: &[(u16, &[u8])]) -> io::Result<()> {
        let mut message = Vec::new();
        begin(&mut message, MSG_CONFIG, FLAG_REQUEST | FLAG_ACK, self.number);
        attributes.iter().for_each(|(kind, value)| attribute(&mut message, *kind, value));
        finish(&mut message, 0);
        send(&self.socket, &message, SendFlags::empty())?;
        // The kernel answers within the call, but packets may precede the answer.
        loop {
            let (_, len) = recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            let message = &self.buffer[..len.min(LONGEST_MESSAGE)];
            // Nothing else would ever decide on that packet.
            if let Some(Queued { id, .. }) = parse(message) {
                decide(&mut self.verdicts, self.number, id, Verdict::Accept);
            }
            let Some(code) = error_code(message) else { continue };
            return match code {
                0 => self.flush(),
                // The kernel also answers EPERM if the queue belongs to another process.
                EPERM if is_open(self.number) => Err(io::ErrorKind::AddrInUse.into()),
                EOPNOTSUPP | EINVAL => Err(io::ErrorKind::Unsupported.into()),
                code => Err(io::Error::from_raw_os_error(code)),
            };
        }
    }

    /// Reads the next message.
    ///
    /// # Errors
    /// The socket fails. `ENOBUFS` says that packets have passed without a verdict, and the caller
    /// can go on.
    pub fn receive(&mut self) -> io::Result<Received<'_>> {
        match recv(&self.socket, &mut self.buffer[..], RecvFlags::empty()) {
            Ok((_, len)) => {
                let queued = parse(&self.buffer[..len.min(LONGEST_MESSAGE)]);
                Ok(queued.map_or(Received::Other, Received::Packet))
            }
            Err(rustix::io::Errno::AGAIN) => Ok(Received::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds the verdict about a packet to those that [`Queue::flush`] sends.
    pub fn decide(&mut self, id: u32, verdict: Verdict) {
        decide(&mut self.verdicts, self.number, id, verdict);
    }

    /// Whether the verdicts that wait should be sent by [`Queue::flush`].
    pub fn is_full(&self) -> bool {
        self.verdicts.len() >= FULL
    }

    /// Sends the verdicts. The kernel then forwards the packets within the call.
    ///
    /// # Errors
    /// The socket fails.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.verdicts.is_empty() {
            return Ok(());
        }
        let sent = send(&self.socket, &self.verdicts, SendFlags::empty());
        self.verdicts.clear();
        sent.map(drop).map_err(io::Error::from)
    }
}

/// Outcome of [`Queue::receive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received<'a> {
    /// A packet, which needs a verdict.
    Packet(Queued<'a>),
    /// A message that is not a packet's.
    Other,
    /// No message is waiting.
    Nothing,
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Queue {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Whether a process has the queue open, in this network namespace.
fn is_open(number: u16) -> bool {
    let list = fs::read_to_string("/proc/self/net/netfilter/nfnetlink_queue").unwrap_or_default();
    list.lines().any(|line| line.split_whitespace().next() == Some(number.to_string().as_str()))
}

/// Parses one message of the kernel; `None` if it is not a packet.
fn parse(message: &[u8]) -> Option<Queued<'_>> {
    let kind = u16::from_ne_bytes(message.get(4..6)?.try_into().ok()?);
    if kind != SUBSYSTEM << 8 | MSG_PACKET {
        return None;
    }
    let mut queued = Queued { id: 0, checksum_pending: false, is_gso: false, packet: &[] };
    let mut is_numbered = false;
    let mut rest = message.get(HEADERS..)?;
    while let Some(head) = rest.first_chunk::<ATTRIBUTE_HEADER>() {
        let len = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let kind = u16::from_ne_bytes([head[2], head[3]]) & KIND_MASK;
        let value = rest.get(ATTRIBUTE_HEADER..len)?;
        match (kind, value.first_chunk()) {
            (PACKET_HDR, Some(id)) => {
                queued.id = u32::from_be_bytes(*id);
                is_numbered = true;
            }
            (SKB_INFO, Some(info)) => {
                let info = u32::from_be_bytes(*info);
                queued.checksum_pending = info & INFO_CHECKSUM_PENDING != 0;
                queued.is_gso = info & INFO_GSO != 0;
            }
            (PAYLOAD, _) => queued.packet = value,
            _ => {}
        }
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    is_numbered.then_some(queued)
}

/// The code of an acknowledgement or error message (netlink(7)); `None` for other messages.
fn error_code(message: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(message.get(4..6)?.try_into().ok()?);
    let code = i32::from_ne_bytes(message.get(16..20)?.try_into().ok()?);
    (kind == NLMSG_ERROR).then_some(code.wrapping_neg())
}

fn decide(out: &mut Vec<u8>, queue: u16, id: u32, verdict: Verdict) {
    let at = out.len();
    begin(out, MSG_VERDICT, FLAG_REQUEST, queue);
    let code = match verdict {
        Verdict::Accept => NF_ACCEPT,
        Verdict::Drop => NF_DROP,
    };
    let mut value = [0; 8];
    value[..4].copy_from_slice(&code.to_be_bytes());
    value[4..].copy_from_slice(&id.to_be_bytes());
    attribute(out, VERDICT_HDR, &value);
    finish(out, at);
}

/// Writes the headers of a message: `nlmsghdr`, then `nfgenmsg`.
fn begin(out: &mut Vec<u8>, kind: u16, flags: u16, queue: u16) {
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(SUBSYSTEM << 8 | kind).to_ne_bytes());
    out.extend_from_slice(&flags.to_ne_bytes());
    // No sequence number, and the port that the kernel assigns.
    out.extend_from_slice(&[0; 8]);
    // Any family, version 0, then the queue's number.
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&queue.to_be_bytes());
}

/// Writes the length of the message that begins at `at`.
fn finish(out: &mut [u8], at: usize) {
    let len = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&len.to_ne_bytes());
}

/// Writes an attribute with a short value.
fn attribute(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend_from_slice(&((ATTRIBUTE_HEADER + value.len()) as u16).to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Room for a packet of 65535 bytes and its attributes.
const LONGEST_MESSAGE: usize = 72 << 10;
/// Bytes of verdicts that are sent at once.
const FULL: usize = 4 << 10;
/// Length of `nlmsghdr` and `nfgenmsg`.
const HEADERS: usize = 20;
const ATTRIBUTE_HEADER: usize = 4;
/// Without the flags of nested attributes and of byte order.
const KIND_MASK: u16 = 0x3fff;

// linux/netlink.h
const NLMSG_ERROR: u16 = 2;
const FLAG_REQUEST: u16 = 1;
const FLAG_ACK: u16 = 4;
// linux/netfilter/nfnetlink.h: NFNL_SUBSYS_QUEUE
const SUBSYSTEM: u16 = 3;
// linux/netfilter/nfnetlink_queue.h: NFQNL_MSG_*, NFQNL_CFG_CMD_*, NFQA_CFG_*, NFQA_*
const MSG_PACKET: u16 = 0;
const MSG_VERDICT: u16 = 1;
const MSG_CONFIG: u16 = 2;
const CMD_BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
const CFG_CMD: u16 = 1;
const CFG_PARAMS: u16 = 2;
const CFG_QUEUE_MAXLEN: u16 = 3;
const CFG_MASK: u16 = 4;
const CFG_FLAGS: u16 = 5;
const FLAG_FAIL_OPEN: u32 = 1;
const FLAG_GSO: u32 = 1 << 2;
const PACKET_HDR: u16 = 1;
const VERDICT_HDR: u16 = 2;
const PAYLOAD: u16 = 10;
const SKB_INFO: u16 = 14;
const INFO_CHECKSUM_PENDING: u32 = 1;
const INFO_GSO: u32 = 1 << 1;
// linux/netfilter.h
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;
// asm-generic/errno-base.h
const EPERM: i32 = 1;
const EINVAL: i32 = 22;
const EOPNOTSUPP: i32 = 95;

#[cfg(test)]
mod tests {
    use anabranch_testkit::debian::find_or_install;
    use anabranch_testkit::netns::{self, Broom, done, ip, within};
    use anabranch_testkit::prng::Prng;

    use super::*;

    fn message() -> Vec<u8> {
        let mut message = Vec::new();
        begin(&mut message, MSG_PACKET, 0, 7);
        attribute(&mut message, PACKET_HDR, &[0, 0, 1, 2, 8, 0, 2]);
        attribute(&mut message, SKB_INFO, &(INFO_GSO | INFO_CHECKSUM_PENDING).to_be_bytes());
        attribute(&mut message, PAYLOAD, b"packet");
        finish(&mut message, 0);
        message
    }

    #[test]
    fn a_packet_is_read_and_damaged_messages_are_none() {
        let message = message();
        let packet = &b"packet"[..];
        let queued = Queued { id: 0x102, checksum_pending: true, is_gso: true, packet };
        assert_eq!(parse(&message), Some(queued));
        assert_eq!(error_code(&message), None);
        for len in 0..message.len() - packet.len() {
            assert_ne!(parse(&message[..len]), Some(queued), "{len}");
        }
        let mut prng = Prng::new(3);
        for _ in 0..20_000 {
            let mut damaged = message.clone();
            damaged[prng.below(message.len() as u64) as usize] = prng.bits() as u8;
            // No message makes it panic.
            let _ = (parse(&damaged), error_code(&damaged));
        }
    }

    #[test]
    fn a_packet_before_the_answer_to_a_configuration_passes() {
        let host = netns::name("queue");
        let _broom = Broom::new(std::slice::from_ref(&host));
        if netns::skipped() || find_or_install("iptables", "iptables").is_none() {
            return;
        }
        ip(&["netns", "add", &host]);
        ip(&["-n", &host, "link", "set", "dev", "lo", "up"]);
        let rule = ["iptables", "-w", "-A", "OUTPUT", "-p", "udp", "-j", "NFQUEUE", "--queue-num", "7"];
        done("ip", &[&["netns", "exec", &host], &rule[..]].concat());
        within(&host, || {
            let options = QueueOptions { number: 7, length: 16, buffer: 1 << 16 };
            let mut queue = Queue::open(options).expect("root may open it");
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
            socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("it is not zero");
            socket.send_to(b"early", socket.local_addr().expect("it is bound")).expect("it waits");
            queue.configure(&[(CFG_QUEUE_MAXLEN, &[0, 0, 0, 9])]).expect("the queue is ours");
            assert_eq!(socket.recv(&mut [0; 8]).expect("the packet passes"), 5);
        });
    }

    #[test]
    fn verdicts_follow_each_other() {
        let mut out = Vec::new();
        decide(&mut out, 7, 1, Verdict::Accept);
        decide(&mut out, 7, 2, Verdict::Drop);
        let [first, second] = [&out[..32], &out[32..]];
        assert_eq!((out.len(), first[..4].to_vec()), (64, 32_u32.to_ne_bytes().to_vec()));
        assert_eq!((&first[16..20], &first[24..]), (&[0, 0, 0, 7][..], &[0, 0, 0, 1, 0, 0, 0, 1][..]));
        assert_eq!(&second[24..], [0, 0, 0, 0, 0, 0, 0, 2]);
    }
}
