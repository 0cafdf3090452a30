//! Sessions with servers, without C.

use hikyaku_mover::{
    Choice, Destination, Done, Download, HostStatus, Kind, Meter, Modes, Session as Started,
    SessionError, Setup, Streams, Together, Upload, named, remote_path,
};
use hikyaku_net::Fingerprint;
use hikyaku_reach::dial::Via;
use hikyaku_store::StorePath;
use hikyaku_units::{DataSize, counted, parse_duration, parse_limit};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// Progress is told this often.
const LOOK: Duration = Duration::from_millis(100);

/// A session, and how far it has come.
pub(crate) struct Session {
    stage: Mutex<Stage>,
    /// Set by whoever wants the call under way to end.
    stop: AtomicBool,
}

enum Stage {
    /// The servers are named.
    Named(Box<Setup>),
    /// They are connected.
    Started(Arc<Started>),
}

/// Whether a transfer goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    GoOn,
    Stop,
}

/// Why a call of a session fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("the session has not been started")]
    NotStarted,
    #[error("the session has been started")]
    IsStarted,
    #[error(
        "'{0}' is no parameter: there are rate, server-rate, window, streams, pause, stagger, carrier, key"
    )]
    NoParameter(String),
    #[error("{name}: '{value}' {why}")]
    Value { name: &'static str, value: String, why: &'static str },
    #[error("{}", told(.0))]
    Files(Vec<hikyaku_mover::Failed>),
    #[error("a bug in hikyaku: the call panicked")]
    Panicked,
}

impl Session {
    /// Names the servers.
    pub(crate) fn new(hosts: &[&str]) -> Result<Self, CallError> {
        let setup = Setup::of_user(&named(hosts)?)?;
        let stage = Mutex::new(Stage::Named(Box::new(setup)));
        Ok(Self { stage, stop: AtomicBool::new(false) })
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Setup) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        match &mut *self.stage() {
            Stage::Named(setup) => change(setup),
            Stage::Started(_) => Err(CallError::IsStarted),
        }
    }

    pub(crate) fn set_log_dir(&self, dir: PathBuf) -> Result<(), CallError> {
        self.change(|setup| {
            setup.log_dir = Some(dir);
            Ok(())
        })
    }

    pub(crate) fn set_parameter(&self, name: &str, value: &str) -> Result<(), CallError> {
        let wrong = |name, why| CallError::Value { name, value: value.to_owned(), why };
        let rate = |name| parse_limit(value).map_err(|_| wrong(name, "is no rate, such as 300m"));
        let time = |name| parse_duration(value).map_err(|_| wrong(name, "is no time, such as 5s"));
        self.change(|setup| {
            let (client, servers) = (&mut setup.parameters.client, &mut setup.parameters.servers);
            match name {
                "rate" => client.rate = Some(rate("rate")?),
                "server-rate" => servers.rate = Some(rate("server-rate")?),
                "window" => {
                    let size = value.parse::<DataSize>();
                    let size = size.map_err(|_| wrong("window", "is no size, such as 64MB"))?;
                    client.window = Some(size);
                }
                "streams" => {
                    let count = value.parse().ok().filter(|count| (1..=4).contains(count));
                    client.streams = count.ok_or_else(|| wrong("streams", "is not 1 to 4"))?;
                }
                "pause" => client.pause = time("pause")?,
                "stagger" => client.stagger = time("stagger")?,
                "carrier" => {
                    setup.client.via = match value {
                        "auto" => Via::Auto,
                        "tcp" => Via::Tcp,
                        _ => return Err(wrong("carrier", "is neither auto nor tcp")),
                    }
                }
                "key" => {
                    let key = value.parse::<Fingerprint>();
                    setup.keys.push(key.map_err(|_| wrong("key", "is no fingerprint"))?);
                }
                other => return Err(CallError::NoParameter(other.to_owned())),
            }
            Ok(())
        })
    }

    /// Connects to all servers.
    pub(crate) fn start(&self) -> Result<(), CallError> {
        let mut stage = self.stage();
        let Stage::Named(setup) = &*stage else { return Err(CallError::IsStarted) };
        let started = Setup::clone(setup).start()?;
        *stage = Stage::Started(Arc::new(started));
        Ok(())
    }

    fn started(&self) -> Result<Arc<Started>, CallError> {
        match &*self.stage() {
            Stage::Started(started) => Ok(started.clone()),
            Stage::Named(_) => Err(CallError::NotStarted),
        }
    }

    pub(crate) fn download(
        &self,
        sources: &[&[u8]],
        target: PathBuf,
        progress: impl FnMut(u64, u64) -> Verdict,
    ) -> Result<Done, CallError> {
        let session = self.started()?;
        let sources: Vec<StorePath> =
            sources.iter().map(|source| remote_path(source)).collect::<Result<_, _>>()?;
        let meter = Meter::new(session.met().len());
        let work = || {
            session.download(&Download {
                sources: &sources,
                target: Destination::Here(&target),
                together: Together { others: 0, claims: &Mutex::default() },
                choice: &Choice::TREES,
                modes: Modes::Usual,
                streams: &Streams::Refused,
                meter: &meter,
                stop: &self.stop,
            })
        };
        self.wait(&meter, progress, work)
    }

    pub(crate) fn upload(
        &self,
        sources: &[PathBuf],
        target: &[u8],
        progress: impl FnMut(u64, u64) -> Verdict,
    ) -> Result<Done, CallError> {
        let (session, target) = (self.started()?, remote_path(target)?);
        let meter = Meter::new(session.met().len());
        let work = || {
            session.upload(&Upload {
                sources,
                target: &target,
                together: Together { others: 0, claims: &Mutex::default() },
                choice: &Choice::TREES,
                modes: Modes::Usual,
                meter: &meter,
                stop: &self.stop,
            })
        };
        self.wait(&meter, progress, work)
    }

    /// Does the work on another thread, and tells progress on this one.
    fn wait(
        &self,
        meter: &Meter,
        mut progress: impl FnMut(u64, u64) -> Verdict,
        work: impl FnOnce() -> Result<Done, SessionError> + Send,
    ) -> Result<Done, CallError> {
        self.stop.store(false, Ordering::Relaxed);
        let mut tell = || progress(meter.written() + meter.kept(), meter.found().1);
        let done = thread::scope(|scope| {
            let (say, done) = mpsc::channel();
            let named = thread::Builder::new().name("hikyaku-call".to_owned());
            // The receiver outlives the thread, so `send` cannot fail.
            let spawned = named.spawn_scoped(scope, move || drop(say.send(work())));
            spawned.map_err(SessionError::from)?;
            loop {
                match done.recv_timeout(LOOK) {
                    Ok(done) => break done.map_err(CallError::from),
                    Err(mpsc::RecvTimeoutError::Disconnected) => break Err(CallError::Panicked),
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                }
                if tell() == Verdict::Stop {
                    self.interrupt();
                }
            }
        })?;
        let _ = tell();
        match done.failed.is_empty() {
            true => Ok(done),
            false => Err(CallError::Files(done.failed)),
        }
    }

    pub(crate) fn status(&self) -> Result<Vec<HostStatus>, CallError> {
        Ok(self.started()?.status())
    }

    /// Ends the transfer that is under way.
    pub(crate) fn interrupt(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the session.
    pub(crate) fn stop(self) {
        let stage = self.stage.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Stage::Started(started) = stage
            && let Ok(started) = Arc::try_unwrap(started)
        {
            started.stop();
        }
    }
}

impl CallError {
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Session(error) => error.kind(),
            Self::Files(failed) => failed.first().map(|failed| failed.kind),
            _ => None,
        }
    }
}

fn told(failed: &[hikyaku_mover::Failed]) -> String {
    let Some(first) = failed.first() else { return "nothing failed".to_owned() };
    let path = hikyaku_fs::Shown::new(&first.path).to_string();
    let text = match first.text.strip_prefix(&format!("{path}: ")) {
        Some(_) => first.text.clone(),
        None => format!("{path}: {}", first.text),
    };
    match failed.len() {
        1 => text,
        count => format!("{text}; {} failed too", counted(count - 1, "file")),
    }
}
