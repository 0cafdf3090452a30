//! The applications of a test: one thread for each stream, which writes, or reads and counts.

use crate::plan::{Handling, Kind, Plan, Stall};
use crate::session::Event;
use crate::wait::{Stop, Worker, wait};
use hikyaku_net::{
    Bytes, Connection, ObjectReceiver, ObjectSender, OpenError, ReadError, ReceiveHalf, Run,
    SendHalf, StreamCode, WriteError,
};
use hikyaku_units::Rate;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that a reader has received.
#[derive(Default)]
pub(crate) struct Counter {
    bytes: AtomicU64,
    /// Time of the last byte, in nanoseconds since time zero.
    last: AtomicU64,
}

/// Holds writers back until the test begins. The threads are created before that, so that a test
/// for which there are too few threads is refused before it has begun.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<AtomicBool>);

/// The data that writers send, and the gate that they wait at.
#[derive(Clone)]
pub(crate) struct Source {
    block: Bytes,
    gate: Gate,
}

/// How a reader counts: into which counter, since when, and at most at which rate.
pub(crate) struct Tally {
    pub(crate) counter: Arc<Counter>,
    pub(crate) zero: Instant,
    pub(crate) most: Option<Rate>,
}

/// Size of the block of random bytes that writers send, in bytes. Random data cannot be compressed
/// on the path.
const BLOCK_BYTES: usize = 1 << 20;
/// Largest read of a reader that copies, in bytes; the same as iperf3's.
const READ_BYTES: usize = 128 << 10;
/// The application error code with which a reader stops its stream.
const STOP_CODE: StreamCode = StreamCode::new(hikyaku_net::code::APPLICATION);

impl Gate {
    /// A gate that is open already.
    pub(crate) fn open() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    /// Opens the gate for `writers`.
    pub(crate) fn open_for(&self, writers: &[Worker]) {
        self.0.store(true, Ordering::Release);
        writers.iter().for_each(Worker::nudge);
    }

    fn pass(&self, stop: &Stop) {
        while !self.0.load(Ordering::Acquire) && !stop.is_set() {
            thread::park();
        }
    }
}

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

impl Source {
    /// Creates a block of which all writers of a test send clones.
    pub(crate) fn new(gate: Gate) -> Self {
        let mut block = vec![0; BLOCK_BYTES];
        fastrand::fill(&mut block);
        Self { block: block.into(), gate }
    }

    /// The bytes of the block.
    pub(crate) fn block(&self) -> &[u8] {
        &self.block
    }
}

/// Starts a thread that writes stream `index` of the plan until it is told to stop or has delivered
/// its bytes.
pub(crate) fn writer(
    connection: Connection,
    plan: &Plan,
    index: usize,
    source: Source,
    events: Sender<Event>,
) -> io::Result<Worker> {
    let (plan, quota) = (plan.clone(), plan.quota(index));
    let Source { block, gate } = source;
    Worker::spawn(&format!("write-{index}"), move |stop| {
        gate.pass(stop);
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
        // The receiver of events is gone after the test.
        let _ = events.send(event);
    })
}

/// Starts a thread that reads and counts stream `index` until it is told to stop or the stream
/// ends.
pub(crate) fn reader(
    connection: Connection,
    plan: &Plan,
    index: usize,
    tally: Tally,
    events: Sender<Event>,
) -> io::Result<Worker> {
    let plan = plan.clone();
    let Tally { counter, zero, most } = tally;
    Worker::spawn(&format!("read-{index}"), move |stop| {
        let work = async {
            let mut input = In::accept(&connection, plan.kind).await?;
            let mut buffer = vec![0; if plan.handling == Handling::Copy { READ_BYTES } else { 0 }];
            let mut stall = plan.stall;
            while !stop.is_set() {
                let bytes = match plan.handling {
                    Handling::ZeroCopy => input.take().await?.map(|run| run.len()),
                    Handling::Copy => input.copy(&mut buffer).await?,
                };
                let Some(bytes) = bytes else { break };
                counter.add(zero, bytes as u64);
                pause_if_due(&mut stall, zero, stop);
                if let Some(most) = most {
                    keep_to_rate(most, counter.bytes(), zero, stop);
                }
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

/// Sleeps for the length of the pause (`--stall`) once its time has come.
fn pause_if_due(stall: &mut Option<Stall>, zero: Instant, stop: &Stop) {
    if let Some(due) = stall.take_if(|due| zero.elapsed().as_secs_f64() >= due.at) {
        stop.sleep(Duration::from_secs_f64(due.seconds));
    }
}

/// Sleeps while more than rate `most` allows has been read. The receive window then fills and holds
/// the sender back.
fn keep_to_rate(most: Rate, bytes: u64, zero: Instant, stop: &Stop) {
    let due = bytes as f64 * 8.0 / most.bits_per_sec().max(1) as f64;
    let early = due - zero.elapsed().as_secs_f64();
    if early > 0.0 {
        stop.sleep(Duration::from_secs_f64(early));
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
                    // The receiver has stopped the stream, or the connection is lost. In the second
                    // case the control stream reports it.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        Err(WriteError::Stopped(STOP_CODE).into())
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

    /// The next run of bytes, or `None` at the end of the stream.
    async fn take(&mut self) -> Result<Option<Run>, ReadError> {
        match self {
            Self::Stream(half) => half.read_chunk().await,
            Self::Object(object, _) => Ok(object.next().await?.map(|(_, run)| run)),
        }
    }

    /// Copies available bytes into `buffer` and returns how many; `None` at the end of the stream.
    async fn copy(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ReadFailure> {
        let copied = match self {
            Self::Stream(half) => {
                let mut buffer = ReadBuf::new(buffer);
                poll_fn(|context| Pin::new(&mut *half).poll_read(context, &mut buffer)).await?;
                buffer.filled().len()
            }
            Self::Object(object, pause_if_due) => {
                if pause_if_due.is_none() {
                    *pause_if_due = object.next().await?.map(|(_, run)| run);
                }
                let copied = pause_if_due.as_mut().map_or(0, |run| run.copy_to(buffer));
                pause_if_due.take_if(|run| run.is_empty());
                copied
            }
        };
        Ok((copied > 0).then_some(copied))
    }

    fn stop(&mut self) {
        match self {
            Self::Stream(half) => half.stop(STOP_CODE),
            Self::Object(object, _) => object.stop(STOP_CODE),
        }
    }
}
