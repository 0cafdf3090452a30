//! Reaching a server, and logging in.

use crate::base64;
use crate::command::Command;
use crate::control::{Control, refused};
use crate::error::FtpError;
use crate::features::Features;
use crate::gsi::Shield;
use crate::guard::{Guard, Privacy};
use crate::settings::Settings;
use hikyaku_tcp::{addresses, connect_first, in_turn};
use std::fmt;
use std::time::Duration;

/// How long a server may take to accept a connection. A SYN that is lost twice is sent a third time after 3 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The buffer for what is protected at once (PBSZ of RFC 2228). TLS has records of its own.
const PROTECTED_BYTES: u32 = 1 << 20;

/// Tokens of a handshake. TLS needs three.
const TOKENS_MAX: usize = 16;

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
    /// As the user `anonymous`.
    Anonymous,
    /// By the certificate of the settings (GSI). Commands and replies are encrypted; data according to the settings' guard.
    Certificate,
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
            Self::Certificate => f.write_str("Certificate"),
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
        Login::Certificate => {
            show_certificate(&mut control, &server.host, settings)?;
            // The server maps the certificate to a user.
            (":globus-mapping:", "dummy")
        }
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

/// Sends the commands for the authentication and encryption of data connections.
pub(crate) fn guard(
    control: &mut Control,
    features: &Features,
    guard: Option<&Guard>,
) -> Result<(), FtpError> {
    let Some(guard) = guard else { return control.demand(&Command::new("DCAU N")).map(drop) };
    if !features.has("DCSC") {
        return Err(FtpError::Unguarded);
    }
    let pem = base64::encode(guard.pem().as_bytes());
    control.demand(&Command::with("DCSC P", pem.as_bytes())?.secret())?;
    let level = match guard.privacy() {
        Privacy::Clear => None,
        Privacy::Safe => Some("PROT S"),
        Privacy::Private => Some("PROT P"),
    };
    control.demand(&Command::new("DCAU A"))?;
    if let Some(level) = level {
        control.demand(&Command::new(format!("PBSZ {PROTECTED_BYTES}")))?;
        control.demand(&Command::new(level))?;
    }
    Ok(())
}

/// The handshake of GSI.
fn show_certificate(
    control: &mut Control,
    host: &str,
    settings: &Settings,
) -> Result<(), FtpError> {
    let credentials = settings.credentials.as_ref();
    let credentials =
        credentials.ok_or(FtpError::Lacks("be shown a certificate: there is none"))?;
    let mut shield = Shield::new(host, credentials)?;
    let auth = Command::new("AUTH GSSAPI");
    let reply = control.ask(&auth)?;
    if reply.code != 334 {
        return Err(refused(&auth, &reply));
    }
    for _ in 0..TOKENS_MAX {
        let adat = Command::with("ADAT", shield.token()?.as_bytes())?.secret();
        let reply = control.ask(&adat)?;
        let text = reply.lines.first().and_then(|line| line.strip_prefix(b"ADAT="));
        if let Some(text) = text {
            shield.open(text)?;
        }
        match reply.code {
            235 if shield.is_up() => {
                control.shield(shield);
                return Ok(());
            }
            335 => {}
            _ => return Err(refused(&adat, &reply)),
        }
    }
    Err(FtpError::Lie("does not end the handshake of the login"))
}

/// Addresses of a host that are tried.
const ADDRESSES_MAX: usize = 16;

/// Connects to the first address of the host that accepts.
fn connect(server: &Server, settings: &Settings) -> Result<Control, FtpError> {
    let Server { host, port, .. } = server;
    let no_address = |source| FtpError::NoAddress { host: host.clone(), source };
    let found = addresses(host, *port, settings.tcp.family);
    let found = found.map_err(|error| no_address(Some(error)))?;
    let goes_on = || !settings.is_stopped();
    let found = in_turn(&found, ADDRESSES_MAX);
    match connect_first(&found, &settings.tcp, CONNECT_TIMEOUT, &goes_on) {
        Ok(won) => Control::new(won.stream, settings.clone()),
        Err(_) if settings.is_stopped() => Err(FtpError::Stopped),
        Err(source) => Err(match found.last() {
            Some(address) => FtpError::Connect { address: *address, told: None, source },
            None => no_address(None),
        }),
    }
}
