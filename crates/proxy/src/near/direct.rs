//! Connections that go direct: to a far gateway within this process, which dials from this machine. So programs see the same
//! answers, ends and resets as of carried connections.

use crate::control::{Messages, say_hello};
use crate::far;
use crate::limits::SERVICE;
use anyhow::Result;
use hikyaku_forward::{Answer, Goal, Loopback, Open, Verdict, is_named_loopback};
use hikyaku_reach::{Connection, Reached, here};
use tokio::sync::OnceCell;

/// The gateway within this process. It is started by the first connection that goes direct.
#[derive(Default)]
pub(super) struct Direct(OnceCell<Inner>);

struct Inner {
    reached: Reached,
    /// The end of its stream is the end of the gateway.
    _messages: Messages,
}

impl Direct {
    /// The connection to it.
    pub(super) async fn connection(&self) -> Result<Connection, Answer> {
        let started = self.0.get_or_try_init(start).await;
        let inner = started.map_err(|error| {
            Answer::failed(Verdict::OutOfResources, &format!("nothing goes direct: {error:#}"))
        })?;
        Ok(inner.reached.connection.clone())
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        if let Some(inner) = self.0.get() {
            inner.reached.connection.close(hikyaku_net::code::DONE, "");
        }
    }
}

async fn start() -> Result<Inner> {
    let reached = here(&SERVICE, None, |connection, stream| {
        // Its end is that of the connection, which flows are told.
        let _ = far::attend_here(connection, stream);
    })?;
    let (mut send, receive) = reached.connection.open_stream().await?.split();
    let mut messages = Messages::new(receive);
    say_hello(&mut send).await?;
    messages.keep(send);
    messages.hello().await?;
    Ok(Inner { reached, _messages: messages })
}

/// What is asked of the gateway here in place of the far one.
///
/// # Errors
///
/// The user has named an address of the far host's loopback, which another machine does not reach. The same address of
/// this machine is something else.
pub(super) fn direct(open: &Open) -> Result<Open, Answer> {
    let of_far = match &open.target {
        Goal::Tcp(target) => is_named_loopback(&target.host),
        Goal::Socket(_) => {
            let text = "a Unix socket of the far side is not reached by direct connections";
            return Err(Answer::failed(Verdict::NotAllowed, text));
        }
    };
    if of_far == Loopback::Named {
        let text = "a loopback address of the far side is not reached by direct connections";
        return Err(Answer::failed(Verdict::NotAllowed, text));
    }
    Ok(Open { loopback: Loopback::Refused, ..open.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_forward::{Host, Target};

    #[test]
    fn loopback_of_the_far_side_is_never_loopback_of_this_one() {
        for (host, is_allowed) in [
            ("localhost", false),
            ("127.0.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("10.0.0.1", true),
            ("web", true),
        ] {
            let target = Target { host: Host::parse(host).unwrap(), port: 80 };
            for loopback in [Loopback::Refused, Loopback::Named] {
                let asked = direct(&Open { target: target.clone().into(), loopback });
                assert_eq!(asked.is_ok(), is_allowed, "{host}");
                let is_refused = |open: Open| open.loopback == Loopback::Refused;
                assert!(asked.ok().is_none_or(is_refused), "{host}");
            }
        }
    }
}
