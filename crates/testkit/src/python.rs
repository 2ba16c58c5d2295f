//! A program with sockets that knows nothing of the test: Python, which evaluates lines.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The program. Its sockets `a` and `b` have different addresses and one peer, `c` is idle, and `d`
/// has a send buffer of its own choice, 60,000 bytes.
#[derive(Debug)]
pub struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The other ends, in this order.
    pub far: Vec<TcpStream>,
}

/// Names of the sockets.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

const LOOP: &str = "import socket, sys, threading
def fill(socket):
    try:
        while True: socket.send(bytes(100_000))
    except BlockingIOError:
        pass
def flood(socket):
    socket.setblocking(True)
    def send():
        while True: socket.sendall(bytes(100_000))
    threading.Thread(target=send, daemon=True).start()
for line in sys.stdin:
    try:
        print(eval(line), flush=True)
    except SyntaxError:
        exec(line)
        print(flush=True)";

impl Program {
    /// Starts it, and connects its sockets to a listener of the loopback device.
    pub fn start(listener: &TcpListener) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", LOOP]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 is here");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut program = Self { child, input, output: BufReader::new(output), far: Vec::new() };
        let port = listener.local_addr().expect("it is bound").port();
        for (name, local) in NAMES.iter().zip([2, 3, 2, 2]) {
            let address = format!("('127.0.0.1', {port}), None, ('127.0.0.{local}', 0)");
            program.say(&format!("{name} = socket.create_connection({address})"));
            program.say(&format!("{name}.setblocking(False)"));
            program.far.push(listener.accept().expect("it has connected").0);
        }
        program.say("d.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 30_000)");
        program
    }

    /// Number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Evaluates a line of Python.
    pub fn say(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").expect("it reads");
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("it answers");
        answer.trim().to_owned()
    }

    /// SO_SNDBUF, SO_BUF_LOCK and TCP_NOTSENT_LOWAT of a socket.
    pub fn settings(&mut self, name: &str) -> [u64; 3] {
        let options = "((socket.SOL_SOCKET, socket.SO_SNDBUF), (socket.SOL_SOCKET, 72), (6, 25))";
        let said = self.say(&format!("[{name}.getsockopt(*o) for o in {options}]"));
        let numbers = said.trim_matches(['[', ']']).split(", ").map(|word| word.parse().expect("a number"));
        numbers.collect::<Vec<_>>().try_into().expect("three options")
    }

    /// The settings of all sockets.
    pub fn all_settings(&mut self) -> [[u64; 3]; 4] {
        NAMES.map(|name| self.settings(name))
    }

    /// Sends as much as the buffer of a socket takes.
    pub fn fill(&mut self, name: &str) {
        self.say(&format!("fill({name})"));
    }

    /// Sends without end from now on.
    pub fn flood(&mut self, name: &str) {
        self.say(&format!("flood({name})"));
    }

    /// Ends it.
    pub fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}
