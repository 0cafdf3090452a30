//! Threads that wait for the transport until they are told to stop.

pub(crate) use hikyaku_net::blocking::{Cut, Stop, wait};

use std::thread::{self, JoinHandle};

/// A thread that can be told to end. Dropping it tells it, and waits.
pub(crate) struct Worker {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(crate) fn spawn(name: &str, work: impl FnOnce(&Stop) + Send + 'static) -> Self {
        let stop = Stop::default();
        let thread = thread::Builder::new().name(format!("perf-{name}")).spawn({
            let stop = stop.clone();
            move || work(&stop)
        });
        Self { stop, thread: Some(thread.expect("a thread can be started")) }
    }

    /// Tells the thread to end.
    pub(crate) fn stop(&self) {
        self.stop.set();
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic in it has been printed.
            let _ = thread.join();
        }
    }
}
