//! What it means for the user that a daemon cannot be used, for every command alike.

use super::DialError;
use crate::daemon::NoService;
use crate::tcp::TcpError;
use hikyaku_console::ExitCode;
use hikyaku_crypto::{Handshake, SettleTrust, Untrusted};
use hikyaku_net::ConnectError;
use std::io;

impl DialError {
    /// The exit code of the command, where the error itself does not say it.
    pub const fn code(&self) -> Option<ExitCode> {
        Some(match self {
            Self::Service(NoService::Later(_) | NoService::Full(_)) => ExitCode::MayPass,
            Self::Service(NoService::Closed(_) | NoService::Silent(_)) => ExitCode::MayPass,
            Self::Service(_) | Self::Tcp(TcpError::Other { .. }) => ExitCode::WillFail,
            Self::Connect(_) | Self::Tcp(_) => return None,
        })
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
            Self::Connect(_) | Self::Tcp(_) | Self::Service(_) => None,
        }
    }

    /// What the user can do about it. `own_key` is the key of this client.
    pub fn remedy(&self, own_key: &str) -> String {
        const NAME: &str = "check the name of the server, or use its IP address";
        const VERSION: &str = "the same hikyaku at both ends";
        const PORT: &str = "the port at which hikyaku serve listens there";
        const LINE: &str =
            "ask the server's administrator to mend the line of your key in the server's list";
        const AWAY: &str =
            "check that hikyaku serve runs there, and that no firewall drops its port";
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
                "again later, or hikyaku serve --max-clients there"
            }
            Self::Service(NoService::Later(_)) => "again later",
            Self::Service(NoService::Refused(_) | NoService::Malformed) => {
                "hikyaku serve --root DIR there"
            }
            Self::Tcp(TcpError::Other { .. }) => PORT,
            Self::Connect(ConnectError::Name(_) | ConnectError::NotFound { .. })
            | Self::Tcp(TcpError::Name(_)) => NAME,
            Self::Tcp(TcpError::Connect { source, .. }) if is_unknown_name(source) => NAME,
            Self::Connect(_) | Self::Tcp(_) | Self::Service(_) => AWAY,
        };
        text.to_owned()
    }
}

/// The resolver's errors have no number and no kind of their own.
fn is_unknown_name(error: &io::Error) -> bool {
    error.raw_os_error().is_none() && error.to_string().contains("lookup")
}
