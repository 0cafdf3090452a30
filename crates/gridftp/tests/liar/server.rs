//! A server in this process that answers by the book, except for one lie.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// The violation of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lie {
    None,
    /// Its greeting is that of another protocol.
    OtherProtocol,
    /// Its greeting has no end.
    EndlessGreeting,
    /// The reply to FEAT has no end.
    EndlessFeatures,
    /// A block lies beyond the part that was asked for.
    BlockBeyond,
    /// A block's end is beyond all numbers.
    BlockOverflow,
    /// A block comes twice.
    BlockTwice,
    /// A block has the bit for suspected errors.
    BlockErrors,
    /// Half of the part, and then its end.
    HalfPart,
    /// The end announces a million connections.
    EndMillion,
    /// Two connections send the end.
    EndTwice,
    /// Opens twice as many connections as asked for.
    MoreConnections,
    /// Closes a data connection within a block.
    CutBlock,
    /// Confirms the transfer without any data.
    OnlyWords,
    /// Closes the control connection in place of the last reply.
    NoLastReply,
    /// Refuses the transfer.
    Refuses,
    /// No lie: the second half of the first part comes when the next part has been asked for.
    WaitsForNext,
    /// The address for uploads is another host's.
    OtherHost,
    /// The address for uploads is no address.
    NoAddress,
    /// Drops the bytes of paths that are not ASCII.
    DropsNames,
    /// No lie: takes all bytes of paths.
    KeepsNames,
    /// Its data connections come from another address.
    OtherSource,
    /// No lie: it cannot connect to the client, which can connect to it.
    CannotConnect,
    /// The listing has names that lead elsewhere.
    BadNames,
    /// The listing is a long one of another kind.
    NoListing,
}

/// Where the first part of a test begins.
pub(crate) const FIRST_OFFSET: u64 = 1000;

/// The byte at an offset of every file.
pub(crate) fn byte(offset: u64) -> u8 {
    (offset % 251) as u8
}

/// Starts a server for one session.
pub(crate) fn start(lie: Lie) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        // An error means that the client has gone, as it should after a lie.
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let data = Vec::new();
        let (early, port, passive) = (None, None, None);
        let _ = Session { lie, control: stream, lines, early, n: 1, port, passive, data }.run();
    });
    address
}

struct Session {
    lie: Lie,
    control: TcpStream,
    lines: Lines<BufReader<TcpStream>>,
    /// A command that came before its time.
    early: Option<String>,
    n: usize,
    port: Option<SocketAddr>,
    /// Where it listens, and the offset of the next file in stream mode.
    passive: Option<(TcpListener, u64)>,
    data: Vec<TcpStream>,
}

impl Session {
    fn run(mut self) -> std::io::Result<()> {
        match self.lie {
            Lie::OtherProtocol => self.say("SSH-2.0-server")?,
            Lie::EndlessGreeting => loop {
                self.control.write_all(&[b'2'; 4096])?;
            },
            _ => self.say("220 ready")?,
        }
        while let Some(line) = self.line()? {
            let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match verb {
                "USER" => self.say("331 password")?,
                "PASS" => self.say("230 in")?,
                "FEAT" if self.lie == Lie::EndlessFeatures => {
                    self.say("211-Features")?;
                    loop {
                        self.say(" X")?;
                    }
                }
                "FEAT" => self.say("211-Features\r\n SIZE\r\n ERET\r\n211 End")?,
                "OPTS" => {
                    let number = rest.split(['=', ',']).nth(1).unwrap();
                    self.n = number.parse().unwrap();
                    self.say("200 ok")?;
                }
                "PORT" => {
                    let numbers: Vec<u8> = rest.split(',').map(|n| n.parse().unwrap()).collect();
                    let port = u16::from_be_bytes([numbers[4], numbers[5]]);
                    self.port = Some(SocketAddr::from(([127, 0, 0, 1], port)));
                    self.data.clear();
                    self.say("200 ok")?;
                }
                "MLST" => self.say_facts(rest)?,
                "PASV" if self.lie == Lie::OtherHost => self.say("227 (192,0,2,1,9,9)")?,
                "PASV" if self.lie == Lie::CannotConnect => {
                    let listener = TcpListener::bind("127.0.0.1:0")?;
                    let [high, low] = listener.local_addr()?.port().to_be_bytes();
                    self.passive = Some((listener, 0));
                    self.say(&format!("227 (127,0,0,1,{high},{low})"))?;
                }
                "PASV" => self.say("227 nowhere")?,
                "REST" => {
                    let from = rest.parse().unwrap();
                    self.passive.iter_mut().for_each(|(_, at)| *at = from);
                    self.say("350 go on")?;
                }
                "RETR" => {
                    let (listener, from) = self.passive.take().unwrap();
                    self.say("150 begins")?;
                    let (mut data, _) = listener.accept()?;
                    let end = FIRST_OFFSET + 100_000;
                    let content: Vec<u8> = (from..end).map(byte).collect();
                    data.write_all(&content)?;
                    drop(data);
                    self.say("226 done")?;
                }
                "ERET" if self.lie == Lie::CannotConnect => self.say("150 begins")?,
                "ERET" => {
                    let mut words = rest.split(' ').skip(1).map(|word| word.parse().unwrap_or(0));
                    let (offset, length) = (words.next().unwrap(), words.next().unwrap());
                    self.send_part(offset, length)?;
                    if self.lie == Lie::NoLastReply {
                        return Ok(());
                    }
                }
                "MLSD" => self.send_listing()?,
                _ => self.say("200 ok")?,
            }
        }
        Ok(())
    }

    fn line(&mut self) -> std::io::Result<Option<String>> {
        match self.early.take() {
            Some(line) => Ok(Some(line)),
            None => self.lines.next().transpose(),
        }
    }

    fn say(&mut self, line: &str) -> std::io::Result<()> {
        self.control.write_all(format!("{line}\r\n").as_bytes())
    }

    /// Opens the data connections, unless those of the last part are open.
    fn connect(&mut self) -> std::io::Result<()> {
        let n = if self.lie == Lie::MoreConnections { 2 * self.n } else { self.n };
        while self.data.len() < n {
            let local = (self.lie == Lie::OtherSource).then_some([127, 0, 0, 2].into());
            let options = hikyaku_tcp::Options { local, ..Default::default() };
            let port = self.port.unwrap();
            let stream = hikyaku_tcp::connect(port, &options, Duration::from_secs(5));
            self.data.push(stream.map_err(std::io::Error::other)?);
        }
        Ok(())
    }

    fn send_part(&mut self, offset: u64, length: u64) -> std::io::Result<()> {
        if self.lie == Lie::Refuses {
            return self.say("550 no such file");
        }
        self.say("150 begins")?;
        if self.lie == Lie::OnlyWords {
            return self.say("226 done");
        }
        self.connect()?;
        let length = if self.lie == Lie::HalfPart { length / 2 } else { length };
        let half = length / 2;
        let content = |at: u64, length: u64| -> Vec<u8> {
            (offset + at..offset + at + length).map(byte).collect()
        };
        let last = self.data.len() - 1;
        block(&mut self.data[0], 0, 0, &content(0, half))?;
        match self.lie {
            Lie::BlockBeyond => block(&mut self.data[0], 0, length, &[1; 10])?,
            Lie::BlockOverflow => header(&mut self.data[0], 0, 100, u64::MAX - 5)?,
            Lie::BlockTwice => block(&mut self.data[0], 0, 0, &content(0, half))?,
            Lie::BlockErrors => header(&mut self.data[0], 0x20, 0, 0)?,
            Lie::CutBlock => {
                header(&mut self.data[0], 0, length - half, half)?;
                self.data.clear();
                return self.say("226 done");
            }
            Lie::WaitsForNext if offset == FIRST_OFFSET => self.early = self.line()?,
            _ => {}
        }
        block(&mut self.data[last], 0, half, &content(half, length - half))?;
        let connections = if self.lie == Lie::EndMillion { 1_000_000 } else { self.data.len() };
        for at in 0..self.data.len() {
            let is_end = at == 0 || self.lie == Lie::EndTwice;
            let (descriptor, number) = if is_end { (0x48, connections) } else { (0x08, 0) };
            header(&mut self.data[at], descriptor, 0, number as u64)?;
        }
        if self.lie == Lie::NoLastReply { Ok(()) } else { self.say("226 done") }
    }

    /// Only the directory `/d/` and its file `/d/\u{e9}` exist.
    fn say_facts(&mut self, path: &str) -> std::io::Result<()> {
        let path: String = match self.lie {
            Lie::DropsNames => path.chars().filter(char::is_ascii).collect(),
            _ => path.to_owned(),
        };
        match path.as_str() {
            "/d/" | "./" => self.say(&format!("250-Listing\r\n Type=dir; {path}\r\n250 End")),
            "/d/\u{e9}" => self.say(&format!("250-Listing\r\n Type=file; {path}\r\n250 End")),
            _ => self.say("500-GlobusError: v=1 c=PATH_NOT_FOUND\r\n500 End"),
        }
    }

    fn send_listing(&mut self) -> std::io::Result<()> {
        let text = match self.lie {
            Lie::BadNames => "Type=file;Size=1; ../a\r\nType=file;Size=1; /b\r\nType=dir; ..\r\n",
            Lie::NoListing => "-rw-r--r-- 1 a b 5 c\r\n",
            _ => "Type=cdir; .\r\nType=file;Size=5; a\r\nType=dir; b\r\n",
        };
        self.say("150 begins")?;
        self.connect()?;
        block(&mut self.data[0], 0, 0, text.as_bytes())?;
        header(&mut self.data[0], 0x48, 0, 1)?;
        self.say("226 done")
    }
}

fn block(stream: &mut TcpStream, descriptor: u8, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
    header(stream, descriptor, bytes.len() as u64, offset)?;
    stream.write_all(bytes)
}

fn header(stream: &mut TcpStream, descriptor: u8, count: u64, offset: u64) -> std::io::Result<()> {
    let header = [&[descriptor][..], &count.to_be_bytes(), &offset.to_be_bytes()].concat();
    stream.write_all(&header)
}
