//! What a far side does, by name.

/// A service, and what it needs of its connection. Both ends give the same values for one name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    /// Its name: letters, digits and `-`.
    pub name: &'static str,
    /// Streams and objects that the other end may have open at once.
    pub streams_max: u32,
    /// Who reads its streams.
    pub readers: Readers,
    /// Whether it starts at the rate that an earlier connection had on the same path.
    pub path_memory: PathMemory,
    /// What a lost connection means.
    pub loss: Loss,
}

/// What a lost connection means for a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The work begins anew over another one. Where UDP is silent for 6 s and the far side answers by TCP, the connection is
    /// given up for that.
    BeginsAnew,
    /// What it carried is lost: it is kept as long as there is hope.
    Ends,
}

/// Who reads the streams of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readers {
    /// One application, which reads all of them: each stream has the window of the connection from its beginning.
    One,
    /// Programs that know nothing of each other: a stream that nobody reads must not keep the others from being sent. So
    /// each begins with a small window, which grows as it is read, and the one unread for longest is stopped when
    /// unread bytes fill three quarters of the receive window.
    Many,
}

/// Whether the rates of paths are remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathMemory {
    /// They are, in the user's file: the next connection on a path starts at the rate of this one.
    OfUser,
    /// They are not: no file is read or written.
    Off,
}
