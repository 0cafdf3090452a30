//! What it means for the user that a daemon cannot be used, for every command alike.

use super::{Address, DialError};
use crate::daemon::NoService;
use crate::tcp::TcpError;
use anyhow::Error;
use hikyaku_console::{ExitCode, causes_of, with_remedy};
use hikyaku_crypto::{Handshake, SettleTrust, Untrusted};
use hikyaku_fs::words;
use hikyaku_net::ConnectError;

impl DialError {
    /// The error of a command that needs the daemon at `address`, with its exit code and with what the user can do.
    /// `own_key` is the key of this client.
    pub fn explained(self, address: &Address, own_key: &str) -> Error {
        let remedy = self.remedy(own_key);
        self.at(address, remedy)
    }

    /// The same with another remedy.
    pub fn at(self, address: &Address, remedy: String) -> Error {
        let (code, text) = (self.code(), self.cause());
        let error = code.error(text);
        with_remedy(error.context(address.to_string()), Some(remedy))
    }

    /// Why, where the daemon's address is named already.
    pub fn cause(&self) -> String {
        match self {
            Self::Connect(ConnectError::NotFound { source, .. }) => words(source),
            error => causes_of(error),
        }
    }

    /// The exit code of the command.
    pub fn code(&self) -> ExitCode {
        match self {
            Self::Service(NoService::Later(_) | NoService::Full(_)) => ExitCode::MayPass,
            Self::Service(NoService::Closed(_) | NoService::Silent(_)) => ExitCode::MayPass,
            Self::Service(_) | Self::Tcp(TcpError::Other { .. }) => ExitCode::WillFail,
            Self::Refused { .. } => ExitCode::MayPass,
            Self::Connect(error) => of_connect(error),
            Self::Tcp(error) => of_tcp(error),
        }
    }

    /// Why the server's key was refused, if it was.
    pub const fn refusal(&self) -> Option<&Untrusted> {
        match self {
            Self::Connect(
                ConnectError::Untrusted(refusal)
                | ConnectError::Trust(SettleTrust::Untrusted(refusal)),
            )
            | Self::Tcp(
                TcpError::Handshake(Handshake::Untrusted(refusal))
                | TcpError::Trust(SettleTrust::Untrusted(refusal)),
            ) => Some(refusal),
            Self::Connect(_) | Self::Tcp(_) | Self::Service(_) | Self::Refused { .. } => None,
        }
    }

    /// What the user can do about it. `own_key` is the key of this client.
    pub fn remedy(&self, own_key: &str) -> String {
        const NAME: &str = "check the name of the server, or use its IP address";
        const VERSION: &str = "the same hikyaku at both ends";
        const PORT: &str = "the port at which hikyaku serve listens";
        const LINE: &str =
            "ask the server's administrator to mend the line of your key in the server's list";
        const AWAY: &str =
            "check that hikyaku serve runs on the host, and that no firewall drops its port";
        if let Some(refusal) = self.refusal() {
            return refusal.remedy();
        }
        let text = match self {
            Self::Service(NoService::NotAuthorised(_)) => {
                return format!(
                    "let the server's administrator put this line into its list of keys: {own_key}"
                );
            }
            Self::Service(NoService::NotServed(_)) => LINE,
            Self::Service(NoService::OtherVersion(_))
            | Self::Connect(ConnectError::Version { .. }) => VERSION,
            Self::Service(NoService::Full(_)) => {
                "again later, or a higher --max-clients of hikyaku serve on the host"
            }
            Self::Service(NoService::Later(_)) => "again later",
            Self::Service(NoService::Refused(_) | NoService::Malformed) => {
                "hikyaku serve --root DIR on the host"
            }
            Self::Refused { .. } => "hikyaku serve --root DIR on the host, or its other port",
            Self::Tcp(TcpError::Other { .. }) => PORT,
            Self::Connect(ConnectError::Name(_) | ConnectError::NotFound { .. })
            | Self::Tcp(TcpError::Name(_)) => NAME,
            Self::Connect(_) | Self::Tcp(_) | Self::Service(_) => AWAY,
        };
        text.to_owned()
    }
}

/// The exit code of a command that gets no connection over UDP.
pub fn of_connect(error: &ConnectError) -> ExitCode {
    match error {
        ConnectError::NotFound { source, .. } => ExitCode::of_lookup(source),
        ConnectError::Name(_)
        | ConnectError::WrongFamily { .. }
        | ConnectError::Untrusted(_)
        | ConnectError::Trust(SettleTrust::Untrusted(_))
        | ConnectError::Version { .. } => ExitCode::WillFail,
        _ => ExitCode::MayPass,
    }
}

/// The same over TCP.
fn of_tcp(error: &TcpError) -> ExitCode {
    match error {
        TcpError::Name(_)
        | TcpError::Handshake(Handshake::Untrusted(_))
        | TcpError::Trust(SettleTrust::Untrusted(_)) => ExitCode::WillFail,
        _ => ExitCode::MayPass,
    }
}
