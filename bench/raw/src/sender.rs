//! The sending end: fill a super-packet, seal its packets, send it, mind the credit.

use crate::args::{SendArgs, pin};
use crate::cipher::{Aead, Mode, body};
use crate::packet::{Header, Kind, OVERHEAD, TRAILER};
use crate::report::{Counted, Meter};
use anyhow::{Context, Result, ensure};
use hikyaku_udp::{
    Interest, Poller, RecvBatch, SendOutcome, SocketOptions, Transmit, UdpSocket, largest_payload,
    segments_in_batch,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// What the payload comes from: larger than the second-level cache, as a file's pages are.
const SOURCE: usize = 4 << 20;
/// How long to wait for progress before what is under way counts as lost.
const PATIENCE: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &SendArgs) -> Result<()> {
    pin(args.cpu)?;
    let mut sender = Sender::new(args)?;
    let meter = Meter::start();
    while meter.elapsed() < args.seconds {
        sender.wait_for_credit()?;
        sender.send_super()?;
    }
    let (elapsed, cpu) = (meter.elapsed(), meter.cpu());
    let granted = sender.socket.granted();
    sender.finish()?;
    if let Some(advice) = granted.recv_advice(&SocketOptions::default()) {
        eprintln!("rawloop: the receive buffer is small; {advice}");
    }
    Counted {
        end: "send",
        cipher: args.cipher,
        mode: args.mode,
        datagram: sender.datagram,
        payload_bytes: sender.next * (sender.datagram - OVERHEAD) as u64,
        packets: sender.next,
        lost: sender.lost,
        system_calls: sender.system_calls,
        elapsed,
        cpu,
    }
    .print()
}

struct Sender<'a> {
    args: &'a SendArgs,
    socket: UdpSocket,
    poller: Poller,
    aead: Aead,
    inbox: RecvBatch,
    source: Vec<u8>,
    source_offset: usize,
    packets: Vec<u8>,
    datagram: usize,
    /// The number of the next packet.
    next: u64,
    /// Every packet below has arrived or is lost.
    done: u64,
    lost: u64,
    system_calls: u64,
}

impl<'a> Sender<'a> {
    fn new(args: &'a SendArgs) -> Result<Self> {
        let any = match args.to.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0), &SocketOptions::default())?;
        let datagram = largest_payload(args.mtu, args.to.ip());
        ensure!(datagram > OVERHEAD, "an MTU of {} leaves no room for a payload", args.mtu);
        let segments = segments_in_batch(datagram);
        Ok(Self {
            args,
            socket,
            poller: Poller::new()?,
            aead: Aead::new(args.cipher)?,
            inbox: RecvBatch::new(4),
            source: (0..SOURCE).map(|i| ((i * 31) >> 3) as u8).collect(),
            source_offset: 0,
            packets: vec![0; segments * datagram],
            datagram,
            next: 0,
            done: 0,
            lost: 0,
            system_calls: 0,
        })
    }

    /// Seals and sends one batch.
    fn send_super(&mut self) -> Result<()> {
        let Self { args, aead, source, source_offset, packets, next, .. } = self;
        for packet in packets.chunks_exact_mut(self.datagram) {
            let header =
                Header { kind: Kind::Data, cipher: args.cipher, mode: args.mode, number: *next };
            let encoded = header.encode();
            packet[..encoded.len()].copy_from_slice(&encoded);
            let length = packet.len() - OVERHEAD;
            if *source_offset + length > source.len() {
                *source_offset = 0;
            }
            let payload = &source[*source_offset..*source_offset + length];
            match args.mode {
                // The payload is what the last round left: its bytes matter to no cipher.
                Mode::Inplace => aead.seal_in_place(*next, packet)?,
                Mode::Copy => {
                    body(packet)[..length].copy_from_slice(payload);
                    aead.seal_in_place(*next, packet)?;
                }
                Mode::Outofplace => aead.seal_from(*next, payload, &[0; TRAILER], packet)?,
            }
            *source_offset += length;
            *next += 1;
        }
        self.send_all()
    }

    fn send_all(&mut self) -> Result<()> {
        let mut from = 0;
        loop {
            let transmit = Transmit {
                segment_size: Some(self.datagram),
                ..Transmit::to(self.args.to, &self.packets[from..])
            };
            self.system_calls += 1;
            match self.socket.send(&transmit).context("sending")? {
                SendOutcome::Sent => return Ok(()),
                SendOutcome::Stopped { sent } => from += sent,
            }
            self.poller.wait(&self.socket, Interest::Writable, Some(PATIENCE))?;
        }
    }

    fn wait_for_credit(&mut self) -> Result<()> {
        let window = (self.args.credit.bytes() / self.datagram as u64).max(1);
        while self.next - self.done >= window {
            if self.take_progress()? == 0 {
                let wait = self.poller.wait(&self.socket, Interest::Readable, Some(PATIENCE))?;
                if !wait.is_readable() {
                    self.lost += self.next - self.done;
                    self.done = self.next;
                }
            }
        }
        Ok(())
    }

    fn take_progress(&mut self) -> Result<usize> {
        self.system_calls += 1;
        let count = self.socket.recv(&mut self.inbox)?;
        for mut message in self.inbox.messages() {
            for packet in message.datagrams() {
                if let Some(Header { kind: Kind::Progress, number, .. }) = Header::decode(packet) {
                    self.done = self.done.max(number.min(self.next));
                }
            }
        }
        Ok(count)
    }

    /// Tells the receiver that this was all. More than once, because packets get lost.
    fn finish(&self) -> Result<()> {
        let (cipher, mode) = (self.args.cipher, self.args.mode);
        let header = Header { kind: Kind::End, cipher, mode, number: self.next };
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(20));
            self.socket.send(&Transmit::to(self.args.to, &header.encode()))?;
        }
        Ok(())
    }
}
