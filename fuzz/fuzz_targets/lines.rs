//! What comes through ssh or from a measuring peer as text, and which names may come of what was asked for.
#![no_main]

use hikyaku_crypto::{Fingerprint, Secret};
use hikyaku_fs::Kind;
use hikyaku_job::Allowed;
use hikyaku_net::Target;
use hikyaku_reach::{Destination, Greeting, Hello, Start};
use hikyaku_stores::Location;
use hikyaku_transfer::Depth;
use libfuzzer_sys::fuzz_target;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = Greeting::read(&mut &*bytes) {
        assert!(!error.to_string().chars().any(char::is_control), "{error}");
    }
    // Behind the mark it is looked into.
    let marked = [b"\x01hikyaku-serve ", bytes].concat();
    if let Err(error) = Greeting::read(&mut &*marked) {
        assert!(!error.to_string().chars().any(char::is_control), "{error}");
    }
    if let Ok(hello) = Hello::read(&mut &*marked) {
        assert_eq!(Hello::read(&mut &*hello.line()).ok(), Some(hello));
    }
    if let Ok(start) = Start::read(&mut &*bytes) {
        assert_eq!(Start::read(&mut &*start.line()).ok(), Some(start));
    }
    if let Err(said) = hikyaku_reach::bootstrap::system(bytes) {
        assert!(!said.chars().any(char::is_control), "{said}");
    }
    let _ = hikyaku_reach::bootstrap::identified(bytes);
    let _ = hikyaku_perf::is_message(bytes);
    if let Ok(Location::Remote(remote)) = Location::parse(OsStr::from_bytes(bytes)) {
        // Nothing in it is an option to ssh.
        let login = remote.login.to_string();
        assert!(!login.starts_with('-') && !login.is_empty());
    }
    if let Ok(destination) = Destination::parse(bytes) {
        assert_eq!(Destination::parse(destination.to_string().as_bytes()), Ok(destination));
    }
    let _ = Destination::parse_authority(bytes);
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = (text.parse::<Target>().is_ok(), text.parse::<Secret>().is_ok());
        if let Ok(fingerprint) = text.parse::<Fingerprint>() {
            assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        }
    }
    if let Some((asked, came)) = bytes.split_at_checked(bytes.len() / 2)
        && let allowed = Allowed::of(&[asked.to_vec()], Depth::Tree)
        && !asked.iter().any(|byte| b"*?[{\\".contains(byte))
        && allowed.admits(came, Kind::File)
        && let Some(name) = came.split(|byte| *byte == b'/').next()
    {
        let is_users_home = asked.starts_with(b"~") && !asked[..asked.len() - 1].contains(&b'/');
        let asked = String::from_utf8_lossy(asked);
        let is_named = asked.contains(&*String::from_utf8_lossy(name));
        // What is in a directory has names that nobody asked for.
        let is_contents = is_users_home || asked.is_empty() || asked.ends_with(['.', '/']);
        assert!(is_named || is_contents, "{asked}: {name:?}");
    }
});
