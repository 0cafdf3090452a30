//! The server's part in connecting competing flows.

use super::{REFUSAL_TIMEOUT, Server, TCP_CONNECT_TIMEOUT};
use crate::compete::{Compete, Kind, Lines, Meet, Meeting, resolve};
use crate::message::{Message, RefusalKind};
use crate::plan::{Direction, Plan};
use crate::session::ControlChannel;
use crate::wait::Stop;
use anyhow::{Context, Result};
use hikyaku_net::Connection;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// The right to run a test with competing flows, returned on drop. Only one test at a time has it,
/// because two would disturb each other's figures.
pub(super) struct Turn<'a>(&'a AtomicBool);

#[derive(Debug, Error)]
#[error("another test with competitors is under way; try again later")]
struct Taken;

impl Server {
    /// Connects the competing flows of the plan, if it has any, and fills in their congestion
    /// controls.
    pub(super) fn compete(
        &self,
        plan: &mut Plan,
        rivals: Vec<Connection>,
        control_channel: &mut ControlChannel,
    ) -> Result<Option<(Turn<'_>, Lines)>> {
        let direction = plan.direction;
        let Some(compete) = &mut plan.compete else { return Ok(None) };
        let both = Turn::take(&self.is_competing)
            .and_then(|turn| Ok((turn, self.meet(compete, direction, rivals, control_channel)?)));
        let both = both.inspect_err(|error| {
            // The client may have disconnected; then nobody needs the message.
            let lasts = if error.is::<Taken>() { RefusalKind::ForNow } else { RefusalKind::Always };
            let _ = control_channel
                .sender
                .send(&Message::Refused { reason: hikyaku_console::causes(error), lasts });
            let _ = control_channel.sender.finish(REFUSAL_TIMEOUT);
        });
        both.map(Some)
    }

    fn meet(
        &self,
        compete: &mut Compete,
        direction: Direction,
        rivals: Vec<Connection>,
        control_channel: &mut ControlChannel,
    ) -> Result<Lines> {
        if direction == Direction::Download {
            resolve(compete, &self.args.policy())?;
        }
        let wanted = compete.count(Kind::Tcp);
        let meeting = match wanted {
            0 => None,
            _ => Some(self.listen_for_tcp()?),
        };
        let port = meeting.as_ref().map(Meeting::port).transpose()?;
        let token = meeting.as_ref().map(|meeting| meeting.token().to_owned()).unwrap_or_default();
        control_channel.sender.send(&Message::Meet(Meet {
            port,
            token,
            compete: compete.clone(),
        }))?;
        let tcp = match meeting {
            Some(meeting) => meeting.gather(wanted, TCP_CONNECT_TIMEOUT, &Stop::default())?,
            None => Vec::new(),
        };
        let lines = Lines::new(compete, tcp, rivals);
        if direction == Direction::Download {
            lines.set_controls(compete)?;
        }
        Ok(lines)
    }

    fn listen_for_tcp(&self) -> Result<Meeting> {
        let addresses = self.args.addresses(self.socket.local.port());
        Meeting::open(&addresses).context("cannot listen for competing TCP flows")
    }
}

impl<'a> Turn<'a> {
    fn take(is_taken: &'a AtomicBool) -> Result<Self> {
        let is_free = !is_taken.swap(true, Ordering::AcqRel);
        if is_free { Ok(Self(is_taken)) } else { Err(Taken.into()) }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
