//! Uploads in extended block mode whose number of connections changes while they run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use hikyaku_gridftp::{
    Channel, FtpError, Login, Part, Plan, Progress, Server, Settings, Traffic, Transferred, Upload,
    Wanted,
};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const PART_BYTES: u64 = 200_000;
const PARTS: u64 = 30;

fn byte(offset: u64) -> u8 {
    (offset % 251) as u8
}

/// The observations of the server.
#[derive(Default)]
struct Seen {
    /// Data connections that it has accepted.
    accepted: u64,
    /// Those that were offered between two parts.
    between: u64,
    /// Those that have ended.
    ended: u64,
    bytes: Vec<u8>,
    /// The connections that have carried bytes of each part.
    used: Vec<usize>,
}

/// A piece of a data connection's bytes.
enum Sent {
    Bytes(u64, Vec<u8>),
    /// The end of a part, and the number of all ends if it is the last one.
    End(Option<u64>),
    Closed,
}

/// Starts a server for one session, which takes connections while it stores a part only.
fn start() -> (SocketAddr, Arc<Mutex<Seen>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::<Mutex<Seen>>::default());
    let told = Arc::clone(&seen);
    thread::spawn(move || {
        let (control, _) = listener.accept().unwrap();
        let (tell, events) = channel();
        let data = TcpListener::bind("127.0.0.1:0").unwrap();
        data.set_nonblocking(true).unwrap();
        let queues = HashMap::new();
        // An error means that the client has gone.
        let _ = Session { control, data, tell, events, queues, seen: told }.run();
    });
    (address, seen)
}

struct Session {
    control: TcpStream,
    data: TcpListener,
    tell: Sender<(u64, Sent)>,
    events: Receiver<(u64, Sent)>,
    /// The pieces of each connection that no part has taken.
    queues: HashMap<u64, VecDeque<Sent>>,
    seen: Arc<Mutex<Seen>>,
}

impl Session {
    fn run(mut self) -> std::io::Result<()> {
        self.say("220 ready")?;
        for line in BufReader::new(self.control.try_clone()?).lines() {
            let line = line?;
            let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match verb {
                "USER" => self.say("331 password")?,
                "PASS" => self.say("230 in")?,
                "FEAT" => self.say("211-Features\r\n ESTO\r\n211 End")?,
                "PASV" => {
                    let [high, low] = self.data.local_addr()?.port().to_be_bytes();
                    self.say(&format!("227 (127,0,0,1,{high},{low})"))?;
                }
                "ESTO" => {
                    let offset = rest.split(' ').nth(1).unwrap().parse().unwrap();
                    self.say("125 begins")?;
                    self.store(offset);
                    if self.accept() {
                        self.seen.lock().unwrap().between += 1;
                    }
                    self.say("226 done")?;
                }
                _ => self.say("200 ok")?,
            }
        }
        Ok(())
    }

    fn say(&mut self, line: &str) -> std::io::Result<()> {
        self.control.write_all(format!("{line}\r\n").as_bytes())
    }

    /// Accepts a connection that has been offered, if one has.
    fn accept(&mut self) -> bool {
        let Ok((mut stream, _)) = self.data.accept() else { return false };
        stream.set_nonblocking(false).unwrap();
        let mut seen = self.seen.lock().unwrap();
        let (id, tell) = (seen.accepted, self.tell.clone());
        seen.accepted += 1;
        self.queues.insert(id, VecDeque::new());
        thread::spawn(move || {
            let mut header = [0; 17];
            while stream.read_exact(&mut header).is_ok() {
                let number = |at: usize| u64::from_be_bytes(header[at..at + 8].try_into().unwrap());
                let (descriptor, count, offset) = (header[0], number(1), number(9));
                let mut bytes = vec![0; count as usize];
                if stream.read_exact(&mut bytes).is_err() {
                    break;
                }
                if count > 0 {
                    let _ = tell.send((id, Sent::Bytes(offset, bytes)));
                }
                if descriptor & 0x08 != 0 {
                    let is_last = descriptor & 0x40 != 0;
                    let _ = tell.send((id, Sent::End(is_last.then_some(offset))));
                }
            }
            let _ = tell.send((id, Sent::Closed));
        });
        true
    }

    /// Stores a part: until as many connections have sent its end as the last one announces.
    fn store(&mut self, begin: u64) {
        let (mut ended, mut all, mut used) = (BTreeSet::new(), None, BTreeSet::new());
        while all != Some(ended.len() as u64) {
            self.accept();
            if let Ok((id, sent)) = self.events.recv_timeout(Duration::from_millis(5)) {
                self.queues.entry(id).or_default().push_back(sent);
            }
            for (id, queue) in &mut self.queues {
                while !ended.contains(id)
                    && let Some(sent) = queue.pop_front()
                {
                    let mut seen = self.seen.lock().unwrap();
                    match sent {
                        Sent::Bytes(offset, bytes) => {
                            let at = (begin + offset) as usize;
                            let end = at + bytes.len();
                            if seen.bytes.len() < end {
                                seen.bytes.resize(end, 0);
                            }
                            seen.bytes[at..end].copy_from_slice(&bytes);
                            used.insert(*id);
                        }
                        Sent::End(last) => {
                            all = all.or(last);
                            ended.insert(*id);
                        }
                        Sent::Closed => seen.ended += 1,
                    }
                }
            }
        }
        self.seen.lock().unwrap().used.push(used.len());
    }
}

/// Parts of one file, three of which are under way at once.
struct Steered {
    asked: u64,
    done: u64,
    /// The numbers of connections: from how many complete parts on, and how many.
    numbers: &'static [(u64, u32)],
}

impl<'a> Plan<'a, Upload<'a>> for Steered {
    fn next(&mut self, _: Option<&Progress>) -> Option<Wanted<'a, Upload<'a>>> {
        if self.asked == PARTS || self.asked - self.done == 3 {
            return None;
        }
        let offset = self.asked * PART_BYTES;
        self.asked += 1;
        let supply = |at: u64, bytes: &mut [u8]| {
            // A path that takes some time.
            thread::sleep(Duration::from_millis(1));
            bytes.iter_mut().zip(at..).for_each(|(place, at)| *place = byte(at));
            Ok(())
        };
        let part = Part { path: b"/f", offset, length: PART_BYTES };
        Some(Wanted { part, connections: self.numbers[0].1, with: Arc::new(supply) })
    }

    fn done(&mut self, _: &Transferred) {
        self.done += 1;
    }

    fn steer(&mut self, traffic: &Traffic<'_>) -> Option<u32> {
        let now = self.numbers.iter().rfind(|(from, _)| *from <= self.done);
        assert!(traffic.connections.len() <= 5, "{traffic:?}");
        now.map(|(_, connections)| *connections)
    }
}

fn upload(numbers: &'static [(u64, u32)]) -> Result<Arc<Mutex<Seen>>, FtpError> {
    let (address, seen) = start();
    let server =
        Server { host: address.ip().to_string(), port: address.port(), login: Login::Anonymous };
    let patience = Duration::from_secs(10);
    let settings = Settings { patience, block_bytes: 4096, ..Settings::default() };
    let mut channel = Channel::open(&server, &settings)?;
    let counted = AtomicU64::new(0);
    // The connections stay open between two uploads as well.
    for _ in 0..2 {
        counted.store(0, Ordering::Relaxed);
        channel.upload(&mut Steered { asked: 0, done: 0, numbers }, &counted)?;
        assert_eq!(counted.load(Ordering::Relaxed), PARTS * PART_BYTES);
    }
    Ok(seen)
}

#[test]
fn a_change_of_the_number_keeps_the_open_connections() {
    let seen = upload(&[(0, 2), (8, 5), (16, 1), (24, 4)]).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!((seen.accepted, seen.between, seen.ended), (5, 0, 0));
    assert_eq!(seen.bytes.len() as u64, PARTS * PART_BYTES);
    assert!(seen.bytes.iter().zip(0..).all(|(got, at)| *got == byte(at)));
    let most = |parts: std::ops::Range<usize>| *seen.used[parts].iter().max().unwrap();
    // A few parts are under way when the number changes.
    assert!(most(0..8) <= 2 && most(12..16) > 2, "{:?}", seen.used);
    assert_eq!(most(20..24), 1, "{:?}", seen.used);
    assert!(most(28..30) > 1, "{:?}", seen.used);
}
