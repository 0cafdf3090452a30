//! Socket options, set once before binding.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod others;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use others as system;

pub(crate) use system::{bind_device, share_port, steer};

use crate::address::SocketFamily;
use crate::bind::BindError;
use crate::granted::Support;
use crate::options::{Family, Offload, SocketOptions};
use hikyaku_units::DataSize;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use system::{
    coalesce, has_segmentation, recv_buffer, report_arrivals, send_buffer, set_v4, set_v6,
};

/// What the kernel granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Configured {
    pub(crate) recv_buffer: DataSize,
    pub(crate) send_buffer: DataSize,
    pub(crate) gso: Support,
    pub(crate) gro: Support,
    pub(crate) traffic_class: u8,
}

pub(crate) fn configure(
    fd: BorrowedFd<'_>,
    family: SocketFamily,
    address: SocketAddr,
    options: &SocketOptions,
) -> Result<Configured, BindError> {
    let refused = |step| move |source| BindError::Refused { address, step, source };
    if let Some(device) = &options.bind_device {
        bind_device(fd, device)
            .map_err(|source| BindError::Device { device: device.clone(), source })?;
    }
    let traffic_class = options.dscp.map_or(0, |dscp| dscp << 2);
    set_v4(fd, traffic_class).map_err(refused("IPv4 options"))?;
    if family == SocketFamily::V6 {
        let only_v6 = i32::from(options.family == Family::OnlyV6);
        set_v6(fd, traffic_class, only_v6).map_err(refused("IPv6 options"))?;
    }
    report_arrivals(fd);
    let recv_buffer = recv_buffer(fd, options.recv_buffer).map_err(refused("SO_RCVBUF"))?;
    let send_buffer = send_buffer(fd, options.send_buffer).map_err(refused("SO_SNDBUF"))?;
    let gso = offload(options.segmentation, || has_segmentation(fd));
    let gro = offload(options.coalescing, || coalesce(fd));
    Ok(Configured { recv_buffer, send_buffer, gso, gro, traffic_class })
}

fn offload(wanted: Offload, try_it: impl FnOnce() -> io::Result<()>) -> Support {
    match wanted {
        Offload::Off => Support::Absent,
        Offload::WhereSupported => match try_it() {
            Ok(()) => Support::Present,
            Err(_) => Support::Absent,
        },
    }
}
