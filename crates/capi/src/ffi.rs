//! The functions of `include/hikyaku.h`.

mod session;

use crate::socket::{Listener, Socket};
use hikyaku_net::{Fingerprint, Target};
use hikyaku_units::Rate;
use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

thread_local! {
    /// Why the last function failed that failed on this thread.
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

type Failure = Box<dyn Error>;

/// What `work` returns; `otherwise` after an error, which is kept for `hikyaku_error`.
fn guarded<T>(otherwise: T, work: impl FnOnce() -> Result<T, Failure>) -> T {
    // A panic must not unwind into C. What it may have left half done is behind locks.
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => return done,
        Ok(Err(failure)) => told(&*failure),
        Err(_) => "a bug in hikyaku: the function panicked".to_owned(),
    };
    let text = CString::new(failure.replace('\0', "?")).unwrap_or_default();
    LAST_ERROR.with(|last| last.replace(text));
    otherwise
}

fn told(failure: &dyn Error) -> String {
    let mut text = failure.to_string();
    let mut source = failure.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}

/// A text of C.
///
/// # Safety
///
/// `text` is NULL or a string that ends with a zero byte and lives for `'a`.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err("a text is NULL".into());
    }
    // SAFETY: by the contract of this function it is a string that ends with a zero byte.
    Ok(unsafe { CStr::from_ptr(text) }.to_str()?)
}

fn patience(milliseconds: c_int) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// Why the last function failed that failed on this thread. The text lives until the next failure on it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hikyaku_error() -> *const c_char {
    LAST_ERROR.with(|last| last.borrow().as_ptr())
}

/// Listens at `address` (`127.0.0.1:0`, `[::]:5300`) with the key in the file `key`, which is made if it does not exist.
///
/// # Safety
///
/// Both are strings that end with a zero byte.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_listen(
    address: *const c_char,
    key: *const c_char,
) -> *mut Listener {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the contract of this function these are strings.
        let (address, key) = unsafe { (text(address)?, text(key)?) };
        let address: SocketAddr = address.parse()?;
        let listener = Listener::bind(address, Path::new(OsStr::from_bytes(key.as_bytes())))?;
        Ok(Box::into_raw(Box::new(listener)))
    })
}

/// The port of a listener.
///
/// # Safety
///
/// `listener` is one that `hikyaku_listen` returned and that was not closed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_port(listener: *const Listener) -> c_int {
    guarded(-1, || {
        // SAFETY: by the contract of this function it is a listener, or NULL.
        let listener = unsafe { listener.as_ref() }.ok_or("the listener is NULL")?;
        Ok(listener.local_addr().port().into())
    })
}

/// Writes the fingerprint of the listener's key, and a zero byte, to `out`, which has `size` bytes.
///
/// # Safety
///
/// `listener` is as in `hikyaku_port`, and `out` has `size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_fingerprint(
    listener: *const Listener,
    out: *mut c_char,
    size: usize,
) -> c_int {
    guarded(-1, || {
        // SAFETY: by the contract of this function it is a listener, or NULL.
        let listener = unsafe { listener.as_ref() }.ok_or("the listener is NULL")?;
        let text = CString::new(listener.fingerprint().to_string())?;
        let bytes = text.as_bytes_with_nul();
        if out.is_null() || size < bytes.len() {
            return Err(format!("a fingerprint needs {} bytes", bytes.len()).into());
        }
        // SAFETY: `out` has at least as many bytes as `bytes`, and is memory of the caller's.
        unsafe { out.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
        Ok(0)
    })
}

/// The next socket of a listener, within so many milliseconds; a negative number waits for ever.
///
/// # Safety
///
/// `listener` is as in `hikyaku_port`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_accept(
    listener: *const Listener,
    milliseconds: c_int,
) -> *mut Socket {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the contract of this function it is a listener, or NULL.
        let listener = unsafe { listener.as_ref() }.ok_or("the listener is NULL")?;
        Ok(Box::into_raw(Box::new(listener.accept(patience(milliseconds))?)))
    })
}

/// Ends a listener, and the sockets that it has accepted.
///
/// # Safety
///
/// `listener` is NULL, or as in `hikyaku_port`; it is not used again.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_listener_close(listener: *mut Listener) {
    guarded((), || {
        if !listener.is_null() {
            // SAFETY: it came from `Box::into_raw` in `hikyaku_listen`, and the caller does not use it again.
            drop(unsafe { Box::from_raw(listener) });
        }
        Ok(())
    });
}

/// Connects to `host` at `port`. `fingerprint` is that of the listener's key; with NULL, the key of the first use is
/// remembered and another one refused later. A negative number of milliseconds is the usual time-out.
///
/// # Safety
///
/// `host` is a string that ends with a zero byte, and `fingerprint` is one or NULL.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_connect(
    host: *const c_char,
    port: u16,
    fingerprint: *const c_char,
    milliseconds: c_int,
) -> *mut Socket {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the contract of this function it is a string.
        let host = unsafe { text(host)? };
        let key: Option<Fingerprint> = match fingerprint.is_null() {
            true => None,
            // SAFETY: by the contract of this function it is a string.
            false => Some(unsafe { text(fingerprint)? }.parse()?),
        };
        let target = Target::new(host.to_owned(), port);
        let socket = Socket::connect(target, key, patience(milliseconds))?;
        Ok(Box::into_raw(Box::new(socket)))
    })
}

/// Sends all `length` bytes; 0 or -1.
///
/// # Safety
///
/// `socket` is one that was returned here and not closed; `bytes` has `length` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_send(
    socket: *const Socket,
    bytes: *const c_void,
    length: usize,
) -> c_int {
    guarded(-1, || {
        // SAFETY: by the contract of this function it is a socket, or NULL.
        let socket = unsafe { socket.as_ref() }.ok_or("the socket is NULL")?;
        if length == 0 {
            return Ok(0);
        }
        if bytes.is_null() {
            return Err("the bytes are NULL".into());
        }
        // SAFETY: by the contract of this function there are `length` bytes, which the call does not outlive.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast(), length) };
        socket.send(bytes)?;
        Ok(0)
    })
}

/// Receives from 1 to `size` bytes; returns how many, 0 at the peer's end, -1 after an error.
///
/// # Safety
///
/// `socket` is as in `hikyaku_send`; `out` has `size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_recv(
    socket: *const Socket,
    out: *mut c_void,
    size: usize,
) -> isize {
    guarded(-1, || {
        // SAFETY: by the contract of this function it is a socket, or NULL.
        let socket = unsafe { socket.as_ref() }.ok_or("the socket is NULL")?;
        if out.is_null() || size == 0 {
            return Err("there is no room for bytes".into());
        }
        // SAFETY: a byte of any value is a valid `u8`, so memory that C has not set is zeroed first.
        unsafe { out.cast::<u8>().write_bytes(0, size) };
        // SAFETY: by the contract of this function there are `size` bytes, which were set above.
        let out = unsafe { std::slice::from_raw_parts_mut(out.cast(), size) };
        Ok(isize::try_from(socket.receive(out)?)?)
    })
}

/// Tells the peer that nothing more comes, and waits until it has everything; 0 or -1.
///
/// # Safety
///
/// `socket` is as in `hikyaku_send`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_finish(socket: *const Socket) -> c_int {
    guarded(-1, || {
        // SAFETY: by the contract of this function it is a socket, or NULL.
        unsafe { socket.as_ref() }.ok_or("the socket is NULL")?.finish()?;
        Ok(0)
    })
}

/// Sends at most so many bits a second from now on; 0 for no limit.
///
/// # Safety
///
/// `socket` is as in `hikyaku_send`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_set_rate(
    socket: *const Socket,
    bits_per_second: u64,
) -> c_int {
    guarded(-1, || {
        // SAFETY: by the contract of this function it is a socket, or NULL.
        let socket = unsafe { socket.as_ref() }.ok_or("the socket is NULL")?;
        let rate = (bits_per_second > 0).then(|| Rate::from_bits_per_sec(bits_per_second));
        socket.set_rate(rate);
        Ok(0)
    })
}

/// Ends a socket. What was sent and not finished (`hikyaku_finish`) may be lost.
///
/// # Safety
///
/// `socket` is NULL, or as in `hikyaku_send`; no other thread uses it, and it is not used again.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hikyaku_close(socket: *mut Socket) {
    guarded((), || {
        if !socket.is_null() {
            // SAFETY: it came from `Box::into_raw` here, and the caller does not use it again.
            unsafe { Box::from_raw(socket) }.close();
        }
        Ok(())
    });
}
