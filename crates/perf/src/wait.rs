//! Threads that wait for the transport and can be told to stop.

pub(crate) use hikyaku_net::blocking::{Cut, Stop, wait};

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::thread::{self, JoinHandle};

/// A thread that can be told to stop. Dropping it tells it to stop and waits for it.
pub(crate) struct Worker {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Fails if the system refuses another thread, because of a process limit or lack of memory.
    pub(crate) fn spawn(name: &str, work: impl FnOnce(&Stop) + Send + 'static) -> io::Result<Self> {
        let stop = Stop::default();
        let thread = thread::Builder::new().name(format!("perf-{name}")).spawn({
            let stop = stop.clone();
            move || work(&stop)
        });
        Ok(Self { stop, thread: Some(thread?) })
    }

    #[cfg(test)]
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Wakes the thread, so that it checks its condition again.
    pub(crate) fn nudge(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Tells the thread to stop.
    pub(crate) fn stop(&self) {
        self.stop.set();
        self.nudge();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // The thread has printed its panic already.
            let _ = thread.join();
        }
    }
}

/// Awaits all futures concurrently.
pub(crate) async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *output = Some(value);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
