//! The far side: it starts the `sftp-server` of its machine and hands its bytes to the near side and back.

use anyhow::{Context, Result};
use hikyaku_reach::{Arrival, Connection, Stream, StreamReader, StreamWriter};
pub use hikyaku_stores::SFTP as SERVICE;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Where distributions put the program.
const SERVERS: [&str; 6] = [
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/libexec/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/lib/misc/sftp-server",
    "/run/current-system/sw/libexec/sftp-server",
];
/// Bytes that are taken from a pipe at once: what it holds.
const PIPE_BYTES: usize = 64 << 10;
/// Why a connection ends if there is no server.
const NO_SERVER: u64 = 1;
/// How long a program that ends waits until ssh has taken its last word.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Serves one near side that has come through ssh.
///
/// # Errors
///
/// The server cannot be started.
pub fn attend(arrival: Arrival) -> Result<()> {
    let (connection, stream, _door) = arrival.split();
    let Some(server) = SERVERS.into_iter().find(|path| Path::new(path).exists()) else {
        connection.close(NO_SERVER, "no sftp-server is installed");
        connection.flush(LAST_WORD);
        return Ok(());
    };
    let served = serve(Path::new(server), stream);
    end(&connection);
    served
}

fn end(connection: &Connection) {
    connection.close(hikyaku_net::code::DONE, "");
    connection.flush(LAST_WORD);
}

fn serve(server: &Path, stream: Stream) -> Result<()> {
    let mut command = Command::new(server);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child =
        command.spawn().with_context(|| format!("cannot start {}", server.display()))?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (input, output) = pipes.context("the server has no pipes")?;
    let (send, receive) = stream.split();
    let requests = thread::Builder::new().name("sftp-requests".to_owned());
    // It ends with the stream; the server ends with its input then.
    let requests = requests.spawn(move || carry(StreamReader::new(receive), input))?;
    let mut to = StreamWriter::new(send);
    // If the near side is gone, the server is told so by the end of its input.
    if carry_to(output, &mut to).is_ok() {
        let _ = to.finish();
    }
    let _ = child.wait();
    let _ = requests.join();
    Ok(())
}

fn carry(from: impl Read, mut to: impl Write) -> io::Result<()> {
    carry_to(from, &mut to)
}

fn carry_to(mut from: impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; PIPE_BYTES];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            length => to.write_all(&buffer[..length])?,
        }
    }
}
