//! The applications of a test: one thread for each stream, which writes or reads and counts.

use crate::plan::{Handling, Kind, Plan, Stall};
use crate::session::Event;
use crate::wait::{Stop, Worker, wait};
use hikyaku_net::{
    Bytes, Connection, ObjectReceiver, ObjectSender, OpenError, ReadError, ReceiveHalf, Run,
    SendHalf, WriteError,
};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a reader has counted.
#[derive(Default)]
pub(crate) struct Counter {
    bytes: AtomicU64,
    /// Nanoseconds from time zero to the last byte.
    last: AtomicU64,
}

/// Random bytes, which nothing on the path can compress.
const BLOCK: usize = 1 << 20;
/// A reader that copies reads at most so much at once, as iperf3 does.
const READ: usize = 128 << 10;
/// Told to the sender when the reader has had enough.
const ENOUGH: u64 = hikyaku_net::code::APPLICATION;

impl Counter {
    pub(crate) fn add(&self, zero: Instant, bytes: u64) {
        self.last.store(zero.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Release);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Seconds from time zero to the last byte.
    pub(crate) fn last(&self) -> f64 {
        Duration::from_nanos(self.last.load(Ordering::Relaxed)).as_secs_f64()
    }
}

/// The block that all writers send clones of.
pub(crate) fn random_block() -> Bytes {
    let mut block = vec![0; BLOCK];
    fastrand::fill(&mut block);
    block.into()
}

/// Writes stream `index` of the plan until told to stop or until its share is delivered.
pub(crate) fn writer(
    connection: Connection,
    plan: &Plan,
    index: usize,
    block: Bytes,
    events: Sender<Event>,
) -> Worker {
    let (plan, quota) = (plan.clone(), plan.quota(index));
    Worker::spawn(&format!("write-{index}"), move |stop| {
        let work = async {
            let mut out = Out::open(&connection, plan.kind).await?;
            let mut left = quota.unwrap_or(u64::MAX);
            let mut at = 0;
            while left > 0 && !stop.is_set() {
                let length = (plan.length as usize).min(left as usize);
                if at + length > block.len() {
                    at = 0;
                }
                let piece = block.slice(at..at + length);
                at += length;
                left -= out.write(piece, plan.handling).await? as u64;
            }
            if quota.is_some() && left == 0 { out.deliver().await } else { Ok(()) }
        };
        let event = match wait(work, stop, None) {
            Ok(Err(WriteFailure::Write(WriteError::Stopped(_)))) | Err(_) | Ok(Ok(())) => {
                Event::WriterDone
            }
            Ok(Err(other)) => Event::DataLost(other.to_string()),
        };
        // Nobody listens after the end.
        let _ = events.send(event);
    })
}

/// Reads stream `index` and counts until told to stop or to the end of the stream.
pub(crate) fn reader(
    connection: Connection,
    plan: &Plan,
    index: usize,
    counter: Arc<Counter>,
    zero: Instant,
    events: Sender<Event>,
) -> Worker {
    let plan = plan.clone();
    Worker::spawn(&format!("read-{index}"), move |stop| {
        let work = async {
            let mut input = In::accept(&connection, plan.kind).await?;
            let mut buffer = vec![0; if plan.handling == Handling::Copy { READ } else { 0 }];
            let mut stall = plan.stall;
            while !stop.is_set() {
                let bytes = match plan.handling {
                    Handling::ZeroCopy => input.take().await?.map(|run| run.len()),
                    Handling::Copy => input.copy(&mut buffer).await?,
                };
                let Some(bytes) = bytes else { break };
                counter.add(zero, bytes as u64);
                rest(&mut stall, zero, stop);
            }
            input.stop();
            Ok(())
        };
        let event = match wait(work, stop, None) {
            Ok(Ok(())) | Err(_) => Event::ReaderDone,
            Ok(Err(ReadFailure(text))) => Event::DataLost(text),
        };
        let _ = events.send(event);
    })
}

/// Reads nothing for a while, if it is time for that.
fn rest(stall: &mut Option<Stall>, zero: Instant, stop: &Stop) {
    if let Some(due) = stall.take_if(|due| zero.elapsed().as_secs_f64() >= due.at) {
        stop.sleep(Duration::from_secs_f64(due.seconds));
    }
}

enum Out {
    Stream(SendHalf),
    Object(ObjectSender),
}

#[derive(Debug, thiserror::Error)]
enum WriteFailure {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Out {
    async fn open(connection: &Connection, kind: Kind) -> Result<Self, WriteFailure> {
        Ok(match kind {
            Kind::Ordered => Self::Stream(connection.open_stream().await?.split().0),
            Kind::Object => Self::Object(connection.open_object().await?),
        })
    }

    async fn write(&mut self, piece: Bytes, handling: Handling) -> Result<usize, WriteFailure> {
        match (self, handling) {
            (Self::Stream(half), Handling::Copy) => {
                let write = poll_fn(|context| Pin::new(&mut *half).poll_write(context, &piece));
                return match write.await {
                    Ok(written) => Ok(written),
                    // The reader has had enough, or the connection is over: said again by `error`.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        Err(WriteError::Stopped(ENOUGH).into())
                    }
                    Err(error) => Err(error.into()),
                };
            }
            (Self::Stream(half), Handling::ZeroCopy) => half.write_chunk(piece.clone()).await?,
            (Self::Object(object), Handling::Copy) => {
                object.write_chunk(Bytes::copy_from_slice(&piece)).await?;
            }
            (Self::Object(object), Handling::ZeroCopy) => object.write_chunk(piece.clone()).await?,
        }
        Ok(piece.len())
    }

    async fn deliver(&mut self) -> Result<(), WriteFailure> {
        match self {
            Self::Stream(half) => {
                half.finish();
                half.delivered().await?;
            }
            Self::Object(object) => {
                object.finish();
                object.delivered().await?;
            }
        }
        Ok(())
    }
}

enum In {
    Stream(ReceiveHalf),
    Object(ObjectReceiver, Option<Run>),
}

struct ReadFailure(String);

impl<E: std::error::Error> From<E> for ReadFailure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl In {
    async fn accept(connection: &Connection, kind: Kind) -> Result<Self, ReadFailure> {
        Ok(match kind {
            Kind::Ordered => {
                let (mut send, receive) = connection.accept_stream().await?.split();
                send.finish();
                Self::Stream(receive)
            }
            Kind::Object => Self::Object(connection.accept_object().await?, None),
        })
    }

    /// The next run; `None` at the end.
    async fn take(&mut self) -> Result<Option<Run>, ReadError> {
        match self {
            Self::Stream(half) => half.read_chunk().await,
            Self::Object(object, _) => Ok(object.next().await?.map(|(_, run)| run)),
        }
    }

    /// Copies what is there into `buffer`, and says how much that was; `None` at the end.
    async fn copy(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ReadFailure> {
        let copied = match self {
            Self::Stream(half) => {
                let mut buffer = ReadBuf::new(buffer);
                poll_fn(|context| Pin::new(&mut *half).poll_read(context, &mut buffer)).await?;
                buffer.filled().len()
            }
            Self::Object(object, rest) => {
                if rest.is_none() {
                    *rest = object.next().await?.map(|(_, run)| run);
                }
                let copied = rest.as_mut().map_or(0, |run| run.copy_to(buffer));
                rest.take_if(|run| run.is_empty());
                copied
            }
        };
        Ok((copied > 0).then_some(copied))
    }

    fn stop(&mut self) {
        match self {
            Self::Stream(half) => half.stop(ENOUGH),
            Self::Object(object, _) => object.stop(ENOUGH),
        }
    }
}
