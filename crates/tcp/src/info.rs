//! `TCP_INFO`: what the kernel knows of a connection.

use hikyaku_units::DataSize;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;
use std::{mem, ptr};

/// `TCP_ESTABLISHED` of the kernel's `tcp_states.h`.
const ESTABLISHED: u8 = 1;

/// The kernel's state of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// Whether both ends may send: neither has closed the connection.
    pub is_open: bool,
    /// Smoothed round-trip time, as the sender of data measures it. Zero before the first measurement.
    pub rtt: Duration,
    /// Smallest round-trip time of late. Zero on kernels that do not report it.
    pub min_rtt: Duration,
    /// Round-trip time as the receiver of data measures it, queues included. Zero before the first measurement.
    pub receive_rtt: Duration,
    /// Congestion window in packets.
    pub window_packets: u32,
    /// Packets that were sent again over the whole connection.
    pub retransmitted_packets: u32,
    /// Bytes sent and not acknowledged, estimated from packets of the full size.
    pub in_flight: DataSize,
    /// Bytes that the other end has acknowledged. Zero on kernels before 4.1.
    pub acknowledged: DataSize,
    /// Bytes that have come in order. Zero on kernels before 4.1.
    pub received: DataSize,
    /// Time for which this end had data that were not acknowledged. Zero on kernels before 4.10.
    pub busy: Duration,
}

/// Reads `TCP_INFO` of `stream`. Fields that the kernel does not know are zero.
///
/// # Errors
/// The kernel's, of getsockopt(2).
pub fn info(stream: &TcpStream) -> io::Result<Info> {
    let raw = raw(stream)?;
    let micros = |micros: u32| Duration::from_micros(micros.into());
    Ok(Info {
        is_open: raw.tcpi_state == ESTABLISHED,
        rtt: micros(raw.tcpi_rtt),
        min_rtt: micros(raw.tcpi_min_rtt),
        receive_rtt: micros(raw.tcpi_rcv_rtt),
        window_packets: raw.tcpi_snd_cwnd,
        retransmitted_packets: raw.tcpi_total_retrans,
        in_flight: DataSize::from_bytes(u64::from(raw.tcpi_unacked) * u64::from(raw.tcpi_snd_mss)),
        acknowledged: DataSize::from_bytes(raw.tcpi_bytes_acked),
        received: DataSize::from_bytes(raw.tcpi_bytes_received),
        busy: Duration::from_micros(raw.tcpi_busy_time),
    })
}

fn raw(stream: &TcpStream) -> io::Result<libc::tcp_info> {
    // SAFETY: the struct has integers only, for which all bits zero are a value.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`, and the length to `length`. Both outlive the call, and
    // any bytes are a valid struct of integers.
    let result = unsafe {
        let pointer = ptr::from_mut(&mut info).cast();
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        libc::getsockopt(stream.as_raw_fd(), level, option, pointer, &raw mut length)
    };
    if result == 0 { Ok(info) } else { Err(io::Error::last_os_error()) }
}
