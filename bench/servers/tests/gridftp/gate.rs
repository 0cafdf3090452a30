//! A relay of control connections that can hold back the commands of a client: a transfer whose next command the server does not
//! get cannot end before it is interrupted.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Whether commands are held back from now on.
type IsTime = dyn Fn() -> bool + Send + Sync;

/// The relay. It works as long as the test runs.
pub(crate) struct Gate {
    port: u16,
    server: String,
    may_close: Arc<AtomicBool>,
}

impl Gate {
    /// Before the server of this URL. It closes as soon as `is_time`.
    pub(crate) fn before(url: &str, is_time: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        let server = url.split('/').nth(2).unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (may_close, is_time): (_, Arc<IsTime>) =
            (Arc::new(AtomicBool::new(true)), Arc::new(is_time));
        let gate = Self { port, server: server.clone(), may_close: may_close.clone() };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let to = TcpStream::connect(&server).unwrap();
                let (replies, answers) = (to.try_clone().unwrap(), client.try_clone().unwrap());
                thread::spawn(move || relay(replies, answers, &|| false));
                let (may_close, is_time) = (may_close.clone(), is_time.clone());
                thread::spawn(move || {
                    relay(client, to, &|| may_close.load(Ordering::SeqCst) && is_time());
                });
            }
        });
        gate
    }

    /// The URL of a file behind it.
    pub(crate) fn url(&self, url: &str) -> String {
        url.replacen(&self.server, &format!("127.0.0.1:{}", self.port), 1)
    }

    /// Lets all commands through.
    pub(crate) fn open(&self) {
        self.may_close.store(false, Ordering::SeqCst);
    }
}

/// Passes bytes on until their end, or until `is_closed`. The connection stays as long as that is so.
fn relay(mut from: TcpStream, mut to: TcpStream, is_closed: &dyn Fn() -> bool) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if is_closed() {
            while is_closed() {
                thread::sleep(Duration::from_millis(1));
            }
            break;
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
