//! The server's part in getting competitors together.

use super::{GATHER_WITHIN, Server};
use crate::compete::{Compete, Kind, Lines, Meet, Meeting, resolve};
use crate::message::Message;
use crate::plan::{Direction, Plan};
use crate::session::Talk;
use crate::trouble;
use crate::wait::Stop;
use anyhow::{Context, Result, ensure};
use hikyaku_net::Connection;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The right to run competitors, which ends when dropped: two tests with some would disturb each other.
pub(super) struct Turn<'a>(&'a AtomicBool);

impl Server {
    /// The connections of the competitors, if there are to be any. `plan` then says what they are.
    pub(super) fn compete(
        &self,
        plan: &mut Plan,
        rivals: Vec<Connection>,
        talk: &mut Talk,
    ) -> Result<Option<(Turn<'_>, Lines)>> {
        let direction = plan.direction;
        let Some(compete) = &mut plan.compete else { return Ok(None) };
        let both = Turn::take(&self.is_competing)
            .and_then(|turn| Ok((turn, self.meet(compete, direction, rivals, talk)?)));
        let both = both.inspect_err(|error| {
            // The client may be gone.
            let _ = talk.sender.send(&Message::Refused { reason: trouble::line(error) });
            let _ = talk.sender.finish(Duration::from_secs(5));
        });
        both.map(Some)
    }

    fn meet(
        &self,
        compete: &mut Compete,
        direction: Direction,
        rivals: Vec<Connection>,
        talk: &mut Talk,
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
        talk.sender.send(&Message::Meet(Meet { port, token, compete: compete.clone() }))?;
        let tcp = match meeting {
            Some(meeting) => meeting.gather(wanted, GATHER_WITHIN, &Stop::default())?,
            None => Vec::new(),
        };
        let lines = Lines::new(compete, tcp, rivals);
        if direction == Direction::Download {
            lines.set_controls(compete)?;
        }
        Ok(lines)
    }

    fn listen_for_tcp(&self) -> Result<Meeting> {
        let addresses = self.args.addresses(self.listener.local_addr().port());
        Meeting::open(&addresses).context("cannot listen for competing TCP flows")
    }
}

impl<'a> Turn<'a> {
    fn take(is_taken: &'a AtomicBool) -> Result<Self> {
        let is_free = !is_taken.swap(true, Ordering::AcqRel);
        ensure!(is_free, "another test with competitors is under way; try again later");
        Ok(Self(is_taken))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
