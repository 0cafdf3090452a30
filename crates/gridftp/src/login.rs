//! Reaching a server, and logging in.

use crate::command::Command;
use crate::control::{Control, refused};
use crate::error::FtpError;
use crate::settings::Settings;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// How long a server may take to accept a connection. A SYN that is lost twice is sent a third time after 3 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Where a server is, and as whom to log in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    /// A name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// As whom.
    pub login: Login,
}

/// As whom to log in.
#[derive(Clone, PartialEq, Eq)]
pub enum Login {
    /// As nobody in particular.
    Anonymous,
    /// By a password, which is sent in the clear.
    Password {
        /// The user's name.
        user: String,
        /// The password.
        password: String,
    },
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Password { user, .. } => write!(f, "Password({user:?})"),
        }
    }
}

/// Connects and logs in.
pub(crate) fn enter(server: &Server, settings: &Settings) -> Result<Control, FtpError> {
    let mut control = connect(server, settings)?;
    let banner = control.reply()?;
    if !banner.is_done() {
        return Err(refused(&Command::new("the connection"), &banner));
    }
    let (user, password) = match &server.login {
        Login::Anonymous => ("anonymous", "hikyaku@"),
        Login::Password { user, password } => (user.as_str(), password.as_str()),
    };
    let name = Command::with("USER", user.as_bytes())?;
    let reply = control.ask(&name)?;
    if reply.wants_more() {
        control.demand(&Command::with("PASS", password.as_bytes())?.secret())?;
    } else if !reply.is_done() {
        return Err(refused(&name, &reply));
    }
    Ok(control)
}

/// Connects to the first address of the host that accepts.
fn connect(server: &Server, settings: &Settings) -> Result<Control, FtpError> {
    let Server { host, port, .. } = server;
    let no_address = |source| FtpError::NoAddress { host: host.clone(), source };
    let found = (host.as_str(), *port).to_socket_addrs();
    let addresses: Vec<SocketAddr> = found.map_err(|error| no_address(Some(error)))?.collect();
    let mut last = no_address(None);
    for address in addresses {
        if settings.is_stopped() {
            return Err(FtpError::Stopped);
        }
        match hikyaku_tcp::connect(address, &settings.tcp, CONNECT_TIMEOUT) {
            Ok(stream) => return Control::new(stream, settings.clone()),
            Err(source) => last = FtpError::Connect { address, source },
        }
    }
    Err(last)
}
