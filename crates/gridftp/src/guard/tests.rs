//! Two ends of a data connection, with the same key and with two.

use super::*;
use crate::data::Data;
use crate::settings::Settings;
use std::net::TcpListener;
use std::sync::atomic::AtomicU64;
use std::thread;

const TEXT: &[u8] = b"what is on the wire";

/// Connects two ends with these keys. Returns the bytes that the accepting end read, and the results of the two ends.
fn meet(accepting: &Guard, connecting: &Guard) -> (Vec<u8>, [Result<(), FtpError>; 2]) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let settings = Settings::default();
    let counted = AtomicU64::new(0);
    thread::scope(|scope| {
        let client = scope.spawn(|| {
            let flow = Flow::new(&settings, &counted);
            let stream = TcpStream::connect(address).unwrap();
            let mut data = Data::connected((stream, 0), Some(connecting), &flow)?;
            data.write_all(TEXT).and_then(|()| data.flush()).map_err(FtpError::Data)
        });
        let flow = Flow::new(&settings, &counted);
        let mut read = Vec::new();
        let served = listener.accept().unwrap().0;
        let served = Data::accepted((served, 0), Some(accepting), &flow).and_then(|mut data| {
            let mut bytes = [0; TEXT.len()];
            data.read_exact(&mut bytes).map_err(FtpError::Data)?;
            read.extend(bytes);
            Ok(())
        });
        (read, [served, client.join().unwrap()])
    })
}

#[test]
fn both_ends_have_the_key_and_bytes_arrive() {
    for privacy in [Privacy::Clear, Privacy::Safe, Privacy::Private] {
        let guard = Guard::new(privacy).unwrap();
        let (read, said) = meet(&guard, &guard);
        assert!(said.iter().all(Result::is_ok), "{privacy:?}: {said:?}");
        assert_eq!(read, TEXT, "{privacy:?}");
    }
}

#[test]
fn another_key_is_refused_by_either_end() {
    let (one, other) =
        (Guard::new(Privacy::Private).unwrap(), Guard::new(Privacy::Private).unwrap());
    let (read, said) = meet(&one, &other);
    assert!(read.is_empty());
    assert!(matches!(said[0], Err(FtpError::DataTls(_) | FtpError::Data(_))), "{:?}", said[0]);
}

#[test]
fn only_private_bytes_are_hidden() {
    for (privacy, is_seen) in [(Privacy::Clear, true), (Privacy::Private, false)] {
        let guard = Guard::new(privacy).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let outer = TcpListener::bind("127.0.0.1:0").unwrap();
        let (inner_at, outer_at) = (listener.local_addr().unwrap(), outer.local_addr().unwrap());
        let (settings, counted) = (Settings::default(), AtomicU64::new(0));
        let seen = thread::scope(|scope| {
            // Between the two ends: it sees what goes from the connecting one to the other.
            let wire = scope.spawn(|| {
                let (mut from, _) = outer.accept().unwrap();
                let mut to = TcpStream::connect(inner_at).unwrap();
                let (mut back, mut home) = (to.try_clone().unwrap(), from.try_clone().unwrap());
                scope.spawn(move || io::copy(&mut back, &mut home));
                let (mut seen, mut bytes) = (Vec::<u8>::new(), [0; 4096]);
                while let Ok(read) = from.read(&mut bytes)
                    && read > 0
                {
                    seen.extend(&bytes[..read]);
                    to.write_all(&bytes[..read]).unwrap();
                }
                seen
            });
            scope.spawn(|| {
                let flow = Flow::new(&settings, &counted);
                let stream = TcpStream::connect(outer_at).unwrap();
                let mut data = Data::connected((stream, 0), Some(&guard), &flow).unwrap();
                data.write_all(TEXT).and_then(|()| data.flush()).unwrap();
            });
            let flow = Flow::new(&settings, &counted);
            let served = listener.accept().unwrap().0;
            let mut data = Data::accepted((served, 0), Some(&guard), &flow).unwrap();
            let mut bytes = [0; TEXT.len()];
            data.read_exact(&mut bytes).unwrap();
            drop(data);
            wire.join().unwrap()
        });
        assert_eq!(seen.windows(TEXT.len()).any(|window| window == TEXT), is_seen, "{privacy:?}");
    }
}
