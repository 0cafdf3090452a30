//! Names from elsewhere: none leads out of a directory, none does anything to a terminal.
#![no_main]

use hikyaku_fs::{Name, PeerPath, Shown, Token, sentence};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(path) = PeerPath::new(bytes) {
        assert_eq!(path.as_bytes(), bytes);
        assert!(!bytes.starts_with(b"/") && !bytes.contains(&0));
        for name in bytes.split(|&byte| byte == b'/') {
            assert!(!matches!(name, b"" | b"." | b".."));
            assert!(Name::new(name).is_ok());
        }
    }
    if let Some(token) = Name::new(bytes).ok().and_then(|name| Token::of(&name)) {
        assert_eq!(Token::parse(token.as_bytes()), Some(token));
    }
    let shown = Shown::new(bytes).to_string();
    assert!(!shown.chars().any(char::is_control));
    let text = String::from_utf8_lossy(bytes);
    assert!(!sentence(&text).chars().any(char::is_control));
});
