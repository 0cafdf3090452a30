//! The receiving end: open what comes, and now and then say how far it is.

use crate::args::{RecvArgs, pin};
use crate::cipher::{Aead, Mode, body};
use crate::packet::{Header, Kind, OVERHEAD};
use crate::report::{Counted, Meter};
use anyhow::{Context, Result, ensure};
use hikyaku_udp::{Interest, Poller, RecvBatch, SocketOptions, Transmit, UdpSocket};
use std::net::SocketAddr;
use std::time::Duration;

/// What the payload goes to out of place: larger than the second-level cache, as a file is.
const DESTINATION: usize = 4 << 20;
/// How many bytes may come before the sender hears of them: a fraction of its credit.
const REPORT_AFTER: usize = 256 << 10;
/// A sender that is silent for so long has died.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &RecvArgs) -> Result<()> {
    pin(args.cpu)?;
    let options = SocketOptions::default();
    let socket = UdpSocket::bind(args.bind, &options)?;
    if let Some(advice) = socket.granted().recv_advice(&options) {
        eprintln!("rawloop: the receive buffer is small; {advice}");
    }
    let poller = Poller::new()?;
    let mut batch = RecvBatch::new(args.batch);
    let mut stream: Option<Stream> = None;
    let mut system_calls = 0;
    loop {
        system_calls += 1;
        let count = socket.recv(&mut batch)?;
        for mut message in batch.messages() {
            let from = message.meta.source;
            for packet in message.datagrams() {
                let Some(header) = Header::decode(packet) else { continue };
                let stream = match &mut stream {
                    Some(stream) => stream,
                    none => none.insert(Stream::new(header, from, packet.len())?),
                };
                match header.kind {
                    Kind::Data => stream.take(header, packet)?,
                    Kind::Progress => {}
                    Kind::End => return stream.finish(header.number, system_calls),
                }
            }
        }
        if let Some(stream) = &mut stream {
            system_calls += stream.report_progress(&socket)?;
        }
        if count == 0 {
            let timeout = stream.as_ref().map(|_| PATIENCE);
            let ready = poller.wait(&socket, Interest::Readable, timeout)?;
            ensure!(ready.is_readable() || stream.is_none(), "the sender fell silent");
        }
    }
}

/// What comes from the one sender.
struct Stream {
    first: Header,
    from: SocketAddr,
    datagram: usize,
    aead: Aead,
    destination: Vec<u8>,
    destination_offset: usize,
    packets: u64,
    payload_bytes: u64,
    unreported: usize,
    /// One above the highest packet number seen.
    next: u64,
    meter: Meter,
    last: Duration,
    cpu: Duration,
}

impl Stream {
    fn new(first: Header, from: SocketAddr, datagram: usize) -> Result<Self> {
        Ok(Self {
            first,
            from,
            datagram,
            aead: Aead::new(first.cipher)?,
            destination: vec![0; DESTINATION],
            destination_offset: 0,
            packets: 0,
            payload_bytes: 0,
            unreported: 0,
            next: 0,
            meter: Meter::start(),
            last: Duration::ZERO,
            cpu: Duration::ZERO,
        })
    }

    fn take(&mut self, header: Header, packet: &mut [u8]) -> Result<()> {
        let payload = packet.len().checked_sub(OVERHEAD).context("a packet is too short")?;
        let length = body(packet).len();
        if self.destination_offset + length > self.destination.len() {
            self.destination_offset = 0;
        }
        let plain = &mut self.destination[self.destination_offset..][..length];
        match header.mode {
            Mode::Inplace => self.aead.open_in_place(header.number, packet)?,
            Mode::Copy => {
                self.aead.open_in_place(header.number, packet)?;
                plain.copy_from_slice(body(packet));
            }
            Mode::Outofplace => self.aead.open_into(header.number, packet, plain)?,
        }
        // The next payload begins where this one ends, over its trailer, as in a file.
        self.destination_offset += payload;
        self.packets += 1;
        self.payload_bytes += payload as u64;
        self.unreported += packet.len();
        self.next = self.next.max(header.number + 1);
        Ok(())
    }

    /// Gives the system calls made.
    fn report_progress(&mut self, socket: &UdpSocket) -> Result<u64> {
        if self.unreported < REPORT_AFTER {
            return Ok(0);
        }
        self.unreported = 0;
        self.last = self.meter.elapsed();
        self.cpu = self.meter.cpu();
        let header = Header { kind: Kind::Progress, number: self.next, ..self.first };
        socket.send(&Transmit::to(self.from, &header.encode()))?;
        Ok(1)
    }

    fn finish(&self, sent: u64, system_calls: u64) -> Result<()> {
        Counted {
            end: "recv",
            cipher: self.first.cipher,
            mode: self.first.mode,
            datagram: self.datagram,
            payload_bytes: self.payload_bytes,
            packets: self.packets,
            lost: sent.saturating_sub(self.packets),
            system_calls,
            elapsed: self.last,
            cpu: self.cpu,
        }
        .print()
    }
}
