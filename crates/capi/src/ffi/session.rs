//! The functions of `include/hikyaku.h` whose names begin with `hikyaku_session_`.

use super::{Failure, guarded, text};
use crate::session::{CallError, Session, Verdict};
use hikyaku_mover::{Done, HostState, Kind};
use hikyaku_transfer::FailureKind;
use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Is told the bytes that are there and the bytes of all; another number than 0 ends the transfer.
type OnProgress = Option<unsafe extern "C" fn(*mut c_void, u64, u64) -> c_int>;
/// Is told of a server.
type OnHost = Option<unsafe extern "C" fn(*mut c_void, *const HostStatus)>;

/// What came of a transfer.
#[repr(C)]
pub(crate) struct Outcome {
    files: u64,
    bytes: u64,
    kept: u64,
    lost_hosts: u64,
}

/// A server.
#[repr(C)]
pub(crate) struct HostStatus {
    host: *const c_char,
    error: *const c_char,
    connections: u32,
    is_writable: c_int,
    round_trip_us: u64,
    free_bytes: i64,
    total_bytes: i64,
    bytes_per_second: i64,
}

/// What a call returns after an error, by its kind: the numbers of `HIKYAKU_E_...`.
const fn number(kind: Option<Kind>) -> c_int {
    match kind {
        Some(Kind::UnknownHost) => -2,
        Some(Kind::NoAnswer) => -3,
        Some(Kind::WrongKey) => -4,
        Some(Kind::NotAuthorised) => -5,
        Some(Kind::OtherVersion) => -6,
        Some(Kind::ServerFull | Kind::ServerEnds) => -7,
        Some(Kind::NoFiles) => -8,
        Some(Kind::OutsideRoot) => -9,
        Some(Kind::Stopped) => -10,
        Some(Kind::File(FailureKind::NoSpace | FailureKind::Quota)) => -11,
        Some(Kind::File(FailureKind::NotFound)) => -12,
        Some(Kind::File(FailureKind::Denied | FailureKind::ReadOnly)) => -13,
        Some(Kind::File(_)) => -14,
        None => -1,
    }
}

/// Does what a function does: 0, or the number of the error.
fn called(work: impl FnOnce() -> Result<(), CallOrText>) -> c_int {
    let mut code = -1;
    let done = guarded(-1, || match work() {
        Ok(()) => Ok(0),
        Err(CallOrText::Call(error)) => {
            code = number(error.kind());
            let remedy = error.kind().and_then(Kind::remedy);
            let text = super::told(&error);
            Err(remedy
                .map_or_else(|| text.clone(), |remedy| format!("{text} (try: {remedy})"))
                .into())
        }
        Err(CallOrText::Text(failure)) => Err(failure),
    });
    if done == 0 { 0 } else { code }
}

/// An error of a session, or of an argument.
enum CallOrText {
    Call(CallError),
    Text(Failure),
}

impl From<CallError> for CallOrText {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<Failure> for CallOrText {
    fn from(failure: Failure) -> Self {
        Self::Text(failure)
    }
}

/// The session behind a pointer.
///
/// # Safety
///
/// It is NULL or a session that was not stopped.
unsafe fn session<'a>(session: *const Session) -> Result<&'a Session, Failure> {
    // SAFETY: by the contract of this function.
    unsafe { session.as_ref() }.ok_or_else(|| "the session is NULL".into())
}

/// An array of texts.
///
/// # Safety
///
/// `texts` points at `count` strings that end with a zero byte and live for `'a`.
unsafe fn texts<'a>(texts: *const *const c_char, count: usize) -> Result<Vec<&'a str>, Failure> {
    if texts.is_null() || count == 0 {
        return Err("there are no names".into());
    }
    // SAFETY: by the contract of this function.
    let texts = unsafe { std::slice::from_raw_parts(texts, count) };
    // SAFETY: the same.
    texts.iter().map(|one| unsafe { text(*one) }).collect()
}

/// Names the servers of a session.
///
/// # Safety
///
/// `hosts` points at `count` strings that end with a zero byte.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_session_new(
    hosts: *const *const c_char,
    count: usize,
) -> *mut Session {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the contract of this function.
        let hosts = unsafe { texts(hosts, count)? };
        Ok(Box::into_raw(Box::new(Session::new(&hosts)?)))
    })
}

/// Sets the directory for the logs of a session that was not started.
///
/// # Safety
///
/// `this` is one that `hikyaku_session_new` returned and that was not stopped; `dir` is a string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_session_set_log_dir(
    this: *const Session,
    dir: *const c_char,
) -> c_int {
    called(|| {
        // SAFETY: by the contract of this function.
        let (this, dir) = unsafe { (session(this)?, text(dir)?) };
        Ok(this.set_log_dir(PathBuf::from(OsStr::from_bytes(dir.as_bytes())))?)
    })
}

/// Sets a parameter of a session that was not started.
///
/// # Safety
///
/// `this` is as in `hikyaku_session_set_log_dir`; `name` and `value` are strings.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_session_set_parameter(
    this: *const Session,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    called(|| {
        // SAFETY: by the contract of this function.
        let (this, name, value) = unsafe { (session(this)?, text(name)?, text(value)?) };
        Ok(this.set_parameter(name, value)?)
    })
}

/// Connects to all servers.
///
/// # Safety
///
/// `this` is as in `hikyaku_session_set_log_dir`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_session_start(this: *const Session) -> c_int {
    called(|| {
        // SAFETY: by the contract of this function.
        Ok(unsafe { session(this)? }.start()?)
    })
}

/// Fetches files and directories of the servers.
///
/// # Safety
///
/// `this` is as in `hikyaku_session_set_log_dir`; `files` points at `count` strings; `target` is a string; `progress` may be
/// called with `user` on this thread; `outcome` is NULL or may be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_session_download(
    this: *const Session,
    files: *const *const c_char,
    count: usize,
    target: *const c_char,
    progress: OnProgress,
    user: *mut c_void,
    outcome: *mut Outcome,
) -> c_int {
    called(|| {
        // SAFETY: by the contract of this function.
        let (this, files, target) =
            unsafe { (session(this)?, texts(files, count)?, text(target)?) };
        let files: Vec<&[u8]> = files.into_iter().map(str::as_bytes).collect();
        let target = PathBuf::from(OsStr::from_bytes(target.as_bytes()));
        // SAFETY: by the contract of this function.
        let done =
            this.download(&files, target, |done, all| unsafe { tell(progress, user, done, all) })?;
        // SAFETY: by the contract of this function.
        unsafe { note(outcome, &done) };
        Ok(())
    })
}

/// Sends files and directories to the servers.
///
/// # Safety
///
/// As `hikyaku_session_download`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_session_upload(
    this: *const Session,
    files: *const *const c_char,
    count: usize,
    target: *const c_char,
    progress: OnProgress,
    user: *mut c_void,
    outcome: *mut Outcome,
) -> c_int {
    called(|| {
        // SAFETY: by the contract of this function.
        let (this, files, target) =
            unsafe { (session(this)?, texts(files, count)?, text(target)?) };
        let path = |file: &str| PathBuf::from(OsStr::from_bytes(file.as_bytes()));
        let files: Vec<PathBuf> = files.into_iter().map(path).collect();
        let target = target.as_bytes();
        // SAFETY: by the contract of this function.
        let done =
            this.upload(&files, target, |done, all| unsafe { tell(progress, user, done, all) })?;
        // SAFETY: by the contract of this function.
        unsafe { note(outcome, &done) };
        Ok(())
    })
}

/// Asks all servers how they are, and tells `each` of them.
///
/// # Safety
///
/// `this` is as in `hikyaku_session_set_log_dir`; `each` may be called with `user` on this thread.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_session_status(
    this: *const Session,
    each: OnHost,
    user: *mut c_void,
) -> c_int {
    called(|| {
        // SAFETY: by the contract of this function.
        let this = unsafe { session(this)? };
        let each = each.ok_or_else(|| Failure::from("the function is NULL"))?;
        for status in this.status()? {
            let host = CString::new(status.address.to_string()).unwrap_or_default();
            let (up, error) = match status.state {
                HostState::Up(up) => (Some(up), None),
                HostState::Away(why) => (None, Some(CString::new(why).unwrap_or_default())),
            };
            let space = up.as_ref().and_then(|up| up.space);
            let rate = up.as_ref().and_then(|up| up.rate);
            let whole = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
            let told = HostStatus {
                host: host.as_ptr(),
                error: error.as_ref().map_or(std::ptr::null(), |error| error.as_ptr()),
                connections: up.as_ref().map_or(0, |up| up.connections),
                is_writable: up.as_ref().is_some_and(|up| up.is_writable).into(),
                round_trip_us: up.as_ref().map_or(0, |up| up.round_trip.as_micros() as u64),
                free_bytes: space.map_or(-1, |space| whole(space.free)),
                total_bytes: space.map_or(-1, |space| whole(space.total)),
                bytes_per_second: rate.map_or(-1, |rate| whole(rate.bytes_per_sec() as u64)),
            };
            // SAFETY: by the contract of this function; what it is told lives until it returns.
            unsafe { each(user, &raw const told) };
        }
        Ok(())
    })
}

/// Ends the transfer that is under way on another thread. A signal handler may call it.
///
/// # Safety
///
/// `this` is as in `hikyaku_session_set_log_dir`, or NULL.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_session_interrupt(this: *const Session) {
    // SAFETY: by the contract of this function.
    if let Some(this) = unsafe { this.as_ref() } {
        this.interrupt();
    }
}

/// Ends a session.
///
/// # Safety
///
/// `this` is NULL, or as in `hikyaku_session_set_log_dir`; no other thread uses it, and it is not used again.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_session_stop(this: *mut Session) {
    guarded((), || {
        if !this.is_null() {
            // SAFETY: it came from `Box::into_raw` in `hikyaku_session_new`, and the caller does not use it again.
            unsafe { Box::from_raw(this) }.stop();
        }
        Ok(())
    });
}

/// Tells the caller of progress.
///
/// # Safety
///
/// `progress` may be called with `user`.
unsafe fn tell(progress: OnProgress, user: *mut c_void, done: u64, all: u64) -> Verdict {
    // SAFETY: by the contract of this function.
    match progress.map(|progress| unsafe { progress(user, done, all) }) {
        None | Some(0) => Verdict::GoOn,
        Some(_) => Verdict::Stop,
    }
}

/// Tells the caller what came of a transfer.
///
/// # Safety
///
/// `outcome` is NULL or may be written to.
unsafe fn note(outcome: *mut Outcome, done: &Done) {
    if !outcome.is_null() {
        let lost_hosts = done.lost.len() as u64;
        let told = Outcome { files: done.files, bytes: done.bytes, kept: done.kept, lost_hosts };
        // SAFETY: by the contract of this function.
        unsafe { outcome.write(told) };
    }
}
