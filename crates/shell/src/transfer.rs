//! `get` and `put`: files and trees in either direction, moved by `hikyaku-mover` and written under their final names as
//! OpenSSH's sftp does.

mod get;
mod progress;
mod put;
mod words;

use crate::command::{Attributes, Begin, Depth, How, Until};
use crate::fault::{Done, Fault, told};
use crate::shell::{Shell, worse};
use hikyaku_mover::{
    Choice, Dress, Fetched, Growth, Job, Landed, LeftOut, Links, Modes, Parameters, Same, Times,
    Why, Writing, fetch,
};
use hikyaku_sftp::{Client, DATA_BYTES_MAX, Limits};
use hikyaku_store::Fetcher;
use hikyaku_store_sftp::{Files, Sftp};
use hikyaku_transfer::{Durable, Verify, Write};
use hikyaku_units::Rate;
use progress::Progress;
use std::io::{Write as _, stdout};
use std::sync::Arc;
use words::{From, Words};

/// How the requests of a transfer follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// The READs and WRITEs.
    requests: hikyaku_store_sftp::Flow,
    /// The most that this end copies in a second.
    limit: Option<Rate>,
}

/// What carries the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carrier {
    /// The transport, or a pipe of this machine.
    Wide,
    /// The channel of ssh.
    Ssh,
}

/// Bytes of a READ or WRITE over a wide carrier: what OpenSSH's server takes.
const WIDE_CHUNK: usize = 255 << 10;
/// Requests of a file that are under way, as in OpenSSH's sftp: over ssh 2 MiB, the window of its channels.
const REQUESTS: usize = 64;
/// Bytes that a message has beyond its data.
const HEAD_BYTES: u64 = 1024;

impl Flow {
    /// What fits a carrier and a server, unless the user says it.
    pub(crate) fn new(
        client: &Client,
        carrier: Carrier,
        (requests, chunk): (Option<usize>, Option<usize>),
        limit: Option<Rate>,
    ) -> Done<Self> {
        let limits = match client.limits() {
            Ok(limits) => limits.unwrap_or_default(),
            Err(error) if error.is_end() => return Err(Fault::Lost(error)),
            Err(_) => Limits::default(),
        };
        let fits = if carrier == Carrier::Wide { WIDE_CHUNK } else { DATA_BYTES_MAX };
        // A server that does not tell must take this much.
        let told = |bytes: u64| if bytes == 0 { DATA_BYTES_MAX as u64 } else { bytes };
        let packet = told(limits.packet).max(HEAD_BYTES + DATA_BYTES_MAX as u64) - HEAD_BYTES;
        let most = told(limits.read).min(told(limits.write)).min(packet).min(WIDE_CHUNK as u64);
        let most = usize::try_from(most).unwrap_or(DATA_BYTES_MAX);
        let bytes = chunk.unwrap_or(fits).clamp(1, most);
        // A request more would wait for many answers, and nothing would be seen of those that come.
        let room = Client::requests_at_once(bytes);
        let files = if requests.is_some() { Files::One } else { Files::Several };
        let requests = requests.unwrap_or(REQUESTS).clamp(1, room);
        let requests = hikyaku_store_sftp::Flow { bytes, requests, files };
        Ok(Self { requests, limit })
    }
}

/// Whether the progress of a transfer is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meter {
    /// On standard error, where that is a terminal.
    Shown,
    /// Not at all.
    Hidden,
}

impl How {
    /// The choice of the mover. Links in a tree are left out.
    const fn choice(self) -> Choice<'static> {
        Choice {
            depth: match self.depth {
                Depth::Tree => hikyaku_mover::Depth::Tree,
                Depth::File => hikyaku_mover::Depth::File,
            },
            named_links: Links::Followed,
            links: Links::Kept,
            same: Same::Never,
            times: self.times(),
            writing: self.writing(),
            ..Choice::FILES
        }
    }

    const fn times(self) -> Times {
        match self.attributes {
            Attributes::Kept => Times::Kept,
            Attributes::New => Times::New,
        }
    }

    const fn writing(self) -> Writing {
        let durable = match self.until {
            Until::Synced => Durable::Disk,
            Until::Written => Durable::Cache,
        };
        Writing { write: Write::Beside, durable, verify: Verify::Arrived }
    }

    fn dress(self) -> Dress {
        match self.attributes {
            Attributes::Kept => Modes::Kept.dress(),
            Attributes::New => Modes::Usual.dress(),
        }
    }

    const fn growth(self) -> Growth {
        match self.begin {
            Begin::Resumed => Growth::Continued,
            Begin::Anew => Growth::Anew,
        }
    }
}

impl Shell {
    /// The files of the server, for one command: the directories that it remembers may have changed before the next one.
    fn store(&self) -> Done<Sftp> {
        let store = Sftp::of_dir(self.client.clone(), b"/");
        let store = store.map_err(|error| told(error.to_string()))?;
        Ok(store.with_flow(self.flow.requests))
    }

    /// Moves the files of a plan. The first failure does not spare the others.
    fn carry(
        &self,
        how: How,
        (servers, landed): (&[Arc<dyn Fetcher>], Landed),
        words: &Words<'_>,
    ) -> Done {
        let Landed { store, taking, mut plan, .. } = landed;
        plan.is_from(servers.len());
        if let (From::Server, Some(server)) = (words.from, servers.first()) {
            plan.measure(&**server).map_err(|_| self.lost())?;
        }
        for (place, _) in std::mem::take(&mut plan.links) {
            words.left_out(&words.source(&plan, &place));
        }
        let mut done = Ok(());
        for LeftOut { path, why } in &plan.left_out {
            self.go_on()?;
            match why {
                Why::Special => words.left_out(&words.at_source(path)),
                _ => done = Err(words.cannot_read(&words.at_source(path), why)),
            }
        }
        for (place, _) in &plan.dirs {
            writeln!(stdout(), "{}", words.enters(&words.source(&plan, place)))?;
        }
        let mut parameters = Parameters::default();
        parameters.client.rate = self.flow.limit;
        let progress = Progress::new((words.name(), self.meter), &plan, servers.len());
        let fetched = progress.shown_while(|meter| {
            fetch(&Job {
                dress: how.dress(),
                times: how.times(),
                taking,
                writing: how.writing(),
                growth: Some(how.growth()),
                parameters,
                ..Job::new(servers, &plan, store, (meter, &self.stop))
            })
        });
        let Fetched { failed, .. } =
            fetched.map_err(|error| told(format!("cannot start a thread: {error}")))?;
        self.go_on()?;
        if let Some(end) = self.client.end() {
            return Err(Fault::Lost(end));
        }
        for (path, error) in &failed {
            let file = plan.files.iter().find(|file| file.path.as_bytes() == path);
            done = worse(done, Err(words.failed((path, file), error)))?;
        }
        done
    }

    /// The connection is lost.
    fn lost(&self) -> Fault {
        match self.client.end() {
            _ if self.go_on().is_err() => Fault::Stopped,
            Some(end) => Fault::Lost(end),
            None => told("the server does not answer"),
        }
    }
}
