//! Bytes come in order, a reader can be stopped, and the end of a writer that was stopped is not that of the data.

use super::*;
use rustix::fs::{CWD, mknodat};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

struct Scratch(PathBuf);

impl Scratch {
    fn fifo(name: &str) -> Self {
        let name = format!("hikyaku-incoming-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        Self(path)
    }

    /// Writes from another thread, which ends then.
    fn write(&self, bytes: Vec<u8>) -> thread::JoinHandle<()> {
        let path = self.0.clone();
        thread::spawn(move || {
            OpenOptions::new().write(true).open(path).unwrap().write_all(&bytes).unwrap();
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn all(file: &mut File, goes_on: &dyn Fn() -> bool) -> io::Result<Vec<u8>> {
    let (mut all, mut bytes) = (Vec::new(), vec![0; 70_000]);
    loop {
        match read_incoming(file, &mut bytes, goes_on)? {
            0 => return Ok(all),
            length => all.extend_from_slice(&bytes[..length]),
        }
    }
}

#[test]
fn a_fifo_is_read_to_its_end_and_a_file_is_none() {
    let fifo = Scratch::fifo("whole");
    let wanted: Vec<u8> = (0..500_000_u32).map(|n| (n ^ (n >> 8)) as u8).collect();
    let mut file = Incoming::of(&fifo.0).unwrap().open().unwrap();
    let writer = fifo.write(wanted.clone());
    assert!(all(&mut file, &|| true).unwrap() == wanted);
    writer.join().unwrap();
    assert_eq!(Incoming::of(Path::new("/dev/stdin")), Some(Incoming::Descriptor(0)));
    assert_eq!(Incoming::of(Path::new("/dev/null")), None);
    assert_eq!(Incoming::of(&std::env::temp_dir()), None);
    assert!(Incoming::Descriptor(1 << 20).open().is_err());
    let other = Incoming::Fifo(fifo.0.clone(), (0, 0));
    assert!(other.open().is_err(), "another file of the name");
}

#[test]
fn a_stop_ends_a_wait_and_is_not_the_end_of_the_data() {
    let fifo = Scratch::fifo("stopped");
    let mut file = Incoming::of(&fifo.0).unwrap().open().unwrap();
    let canceled = |error: io::Error| Errno::from_io_error(&error) == Some(Errno::CANCELED);
    // The FIFO has no writer.
    assert!(canceled(all(&mut file, &|| false).unwrap_err()));
    // The writer ends first, and the stop is seen a moment later.
    fifo.write(b"begun".to_vec()).join().unwrap();
    let asked = AtomicBool::new(false);
    let mut bytes = [0; 100];
    assert_eq!(read_incoming(&mut file, &mut bytes, &|| true).unwrap(), 5);
    let ended = read_incoming(&mut file, &mut bytes, &|| !asked.swap(true, Ordering::Relaxed));
    assert!(canceled(ended.unwrap_err()));
}
