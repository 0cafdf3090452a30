//! Files of a node on the machine of the client: gfsd hands out their descriptors.
//!
//! gfsd listens on a Unix socket for programs of its own machine. Whoever has logged in there can have the descriptor of a
//! file that is open at gfmd (`SCM_RIGHTS`, unix(7)), and reads the replica without gfsd.

use crate::account::Account;
use crate::config::Address;
use crate::error::{CallError, Code, ConnectError};
use crate::link::Link;
use crate::metadata::OpenFile;
use crate::process::Process;
use crate::request::gfsd;
use crate::spool::Spool;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

impl Spool {
    /// Connects to the gfsd of a node through the socket of this machine. `None` if the node is not on this machine.
    ///
    /// # Errors
    ///
    /// The node does not accept the user, or the connection fails.
    pub fn connect_local(
        server: &Address,
        account: &Account,
        process: &Process,
    ) -> Result<Option<Self>, ConnectError> {
        let Some(socket) = socket_of(server) else { return Ok(None) };
        let Ok(link) = Link::connect_local(&socket, account.dial) else { return Ok(None) };
        Self::begin(link, server, account, process).map(Some)
    }

    /// The descriptor of a file that is open at gfmd. It is to be closed at the node ([`Spool::close`]) and at gfmd, and the
    /// descriptor stays good after that.
    ///
    /// # Errors
    ///
    /// The node refuses the file, or the connection was not made by [`Spool::connect_local`] or has ended.
    pub fn descriptor(&mut self, file: &OpenFile) -> Result<File, CallError> {
        self.send(|ask| ask.int(gfsd::OPEN_LOCAL).int(file.number()))?;
        let stream = self.link.unbuffered().ok_or(CallError::Protocol("no local connection"))?;
        // Read without a buffer: the byte that carries the descriptor must come alone.
        let mut answer = [0; 4];
        let mut reading = stream;
        reading.read_exact(&mut answer)?;
        match i32::from_be_bytes(answer) {
            0 => {}
            number => {
                self.is_usable = true;
                return Err(CallError::Refused(Code(number)));
            }
        }
        let file = receive(stream)?;
        self.is_usable = true;
        Ok(file)
    }
}

/// Whether a node is on this machine.
pub fn is_local(server: &Address) -> bool {
    socket_of(server).is_some()
}

/// The socket of a node on this machine. gfsd makes one for each address that it listens at.
fn socket_of(server: &Address) -> Option<PathBuf> {
    let addresses = (server.host.as_str(), server.port).to_socket_addrs().ok()?;
    let mut sockets = addresses.map(|address| socket(address.ip(), server.port));
    sockets.find(|socket| socket.exists())
}

fn socket(address: IpAddr, port: u16) -> PathBuf {
    Path::new("/tmp").join(format!(".gfarm-gfsd{address}-{port}")).join("sock")
}

/// The descriptor that comes with one byte.
fn receive(stream: &UnixStream) -> Result<File, CallError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut into = [IoSliceMut::new(&mut byte)];
    let got = recvmsg(stream, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC);
    let got = got.map_err(std::io::Error::from)?;
    let descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    match (got.bytes, descriptors.flatten().next()) {
        (1, Some(descriptor)) => Ok(File::from(descriptor)),
        _ => Err(CallError::Protocol("no descriptor")),
    }
}
