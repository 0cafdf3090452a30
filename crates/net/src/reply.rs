//! One answer from the driver to one question of an application.

use crate::sync::{ArrayQueue, AtomicBool, AtomicWaker};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

struct Shared<T> {
    answer: ArrayQueue<T>,
    over: AtomicBool,
    waker: AtomicWaker,
}

/// The driver's end. Dropping it without an answer completes the request with `None`.
pub(crate) struct Reply<T>(Arc<Shared<T>>);

/// The application's end: a future of the answer, `None` if the driver has ended.
pub(crate) struct Question<T>(Arc<Shared<T>>);

/// A question and the way to answer it.
pub(crate) fn ask<T>() -> (Reply<T>, Question<T>) {
    let shared = Arc::new(Shared {
        answer: ArrayQueue::new(1),
        over: AtomicBool::new(false),
        waker: AtomicWaker::new(),
    });
    (Reply(shared.clone()), Question(shared))
}

impl<T> Reply<T> {
    pub(crate) fn send(self, answer: T) {
        // The only answer has room.
        let _ = self.0.answer.push(answer);
    }

    /// Whether a task still waits for the answer.
    pub(crate) fn is_wanted(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Release);
        self.0.waker.wake();
    }
}

impl<T> Future for Question<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.waker.register(context.waker());
        if self.0.over.load(Ordering::Acquire) {
            return Poll::Ready(self.0.answer.pop());
        }
        Poll::Pending
    }
}
