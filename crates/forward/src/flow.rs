//! The states of a carried flow at one gateway: what the end or the reset of one side means for the other side.
//!
//! Each gateway has a TCP socket and a stream. *Outgoing* bytes go from the socket to the stream, *incoming* bytes from
//! the stream to the socket. The two directions end independently. A direction ends (FIN) or breaks (RST). A gateway
//! passes each event to [`Flow::on`] in the order in which it happens, and performs the [`Step`] that it returns.

use core::fmt;

/// The state of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Direction {
    /// Bytes may come.
    Open,
    /// All bytes have been passed on, and then the end.
    Ended,
    /// No more bytes can be passed on.
    Broken,
}

/// A carried flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flow {
    outgoing: Direction,
    incoming: Direction,
}

/// An event of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// The program has ended its direction (FIN), and all its bytes were read.
    SocketEnd,
    /// The socket was reset: a read failed, or the state of the socket shows it.
    SocketReset,
    /// The socket was reset: a write failed. Bytes that the program sent before may still be read.
    WriteFailed,
    /// The other gateway has ended its direction, and all its bytes were written to the socket.
    StreamEnd,
    /// The other gateway has reset its direction, and all bytes before that were written to the socket.
    StreamReset,
    /// The other gateway takes no more bytes.
    StreamStopped,
    /// The connection to the other gateway is lost.
    Lost,
    /// One direction has ended, and nothing has passed in the other one for too long.
    Forgotten,
}

/// An action of a gateway on one side of the flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Act {
    /// Ends the stream after what was written to it.
    FinishStream,
    /// Resets the stream after what was written to it, and takes no more bytes of the other gateway.
    ResetStream,
    /// Takes no more bytes of the other gateway.
    StopStream,
    /// Ends the socket's direction to the program (`shutdown`).
    ShutSocket,
}

/// How a flow is over, for its socket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// Both directions have ended: the socket is closed in the usual way.
    Clean,
    /// The socket is reset once the kernel has delivered what was written to it.
    Reset,
    /// The socket is reset at once.
    Abort,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "ended",
            Self::Reset => "reset",
            Self::Abort => "reset, because the other gateway is lost",
        })
    }
}

/// The reaction of a gateway to an event: first the act, and then the end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Step {
    /// The action on the other side, if one is needed.
    pub act: Option<Act>,
    /// How the flow is over, if it is.
    pub end: Option<End>,
}

impl Default for Flow {
    fn default() -> Self {
        Self { outgoing: Direction::Open, incoming: Direction::Open }
    }
}

impl Flow {
    /// Whether bytes of the program may come.
    pub fn is_outgoing_open(&self) -> bool {
        self.outgoing == Direction::Open
    }

    /// Whether bytes of the other gateway may come.
    pub fn is_incoming_open(&self) -> bool {
        self.incoming == Direction::Open
    }

    /// Handles an event.
    pub fn on(&mut self, event: Event) -> Step {
        use Direction::{Broken, Ended, Open};
        let act = match event {
            // A write has found the socket reset before, so this end is not one that the program meant.
            Event::SocketEnd if self.incoming == Broken => {
                self.outgoing = Broken;
                Some(Act::ResetStream)
            }
            Event::SocketEnd => {
                self.outgoing = Ended;
                Some(Act::FinishStream)
            }
            Event::SocketReset => {
                let act = if self.outgoing == Open { Act::ResetStream } else { Act::StopStream };
                (self.outgoing, self.incoming) = (Broken, Broken);
                Some(act)
            }
            Event::WriteFailed => {
                self.incoming = Broken;
                Some(Act::StopStream)
            }
            Event::StreamEnd => {
                self.incoming = Ended;
                Some(Act::ShutSocket)
            }
            Event::StreamReset => {
                let act = (self.outgoing == Open).then_some(Act::ResetStream);
                (self.outgoing, self.incoming) = (Broken, Broken);
                act
            }
            Event::StreamStopped => {
                self.outgoing = Broken;
                None
            }
            Event::Lost => {
                (self.outgoing, self.incoming) = (Broken, Broken);
                return Step { act: None, end: Some(End::Abort) };
            }
            Event::Forgotten => {
                let act = if self.outgoing == Open { Act::ResetStream } else { Act::StopStream };
                (self.outgoing, self.incoming) = (Broken, Broken);
                Some(act)
            }
        };
        let end = match (self.outgoing, self.incoming) {
            (Open, _) | (_, Open) => None,
            (Ended, Ended) => Some(End::Clean),
            (Ended | Broken, Ended | Broken) => Some(End::Reset),
        };
        Step { act, end }
    }
}

#[cfg(test)]
mod tests;
