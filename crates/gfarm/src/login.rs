//! Login by a shared key.
//!
//! The server names the methods that it accepts. The client chooses the shared key, tells the user's name, and answers a
//! challenge of 32 random bytes with the MD5 of the challenge and the key. Gfarm's protocol prescribes MD5 here.

use crate::account::Account;
use crate::code::{Reader, Writer};
use crate::config::Address;
use crate::error::{CallError, ConnectError};
use crate::link::Link;
use md5::{Digest, Md5};
use std::io::Read;

/// The shared key, as a method of authentication.
const METHOD: i32 = 1;
/// The shared key with MD5, as a request.
const BY_MD5: i32 = 1;
/// Bytes of a challenge.
const CHALLENGE_BYTES: usize = 32;
/// Methods that a server may offer.
const METHODS_MAX: usize = 256;

/// Logs in on a new connection.
pub(crate) fn log_in(
    link: &mut Link,
    server: &Address,
    account: &Account,
) -> Result<(), ConnectError> {
    let failed = |error| ConnectError::Call { server: server.to_string(), error };
    let denied = |number: i32| ConnectError::Denied {
        server: server.to_string(),
        user: account.user.clone(),
        why: reason(number),
    };
    let methods = methods(&mut link.reply).map_err(failed)?;
    if !methods.contains(&(METHOD as u8)) {
        return Err(ConnectError::NoMethod { server: server.to_string() });
    }
    let mut say = Writer::default();
    link.send(say.int(METHOD)).map_err(failed)?;
    match link.reply.int().map_err(failed)? {
        0 => {}
        _ => return Err(ConnectError::NoMethod { server: server.to_string() }),
    }
    say.clear();
    link.send(say.string(account.user.as_bytes()).int(BY_MD5)).map_err(failed)?;
    match link.reply.int().map_err(failed)? {
        0 => {}
        number => return Err(denied(number)),
    }
    let challenge = challenge(&mut link.reply).map_err(failed)?;
    say.clear();
    say.int(account.key.expires.cast_signed()).string(&answer(&challenge, account));
    link.send(&say).map_err(failed)?;
    match link.reply.int().map_err(failed)? {
        0 => Ok(()),
        number => Err(denied(number)),
    }
}

fn methods(reply: &mut Reader<impl Read>) -> Result<Vec<u8>, CallError> {
    let mut methods = [0; METHODS_MAX];
    Ok(reply.block(&mut methods)?.to_vec())
}

fn challenge(reply: &mut Reader<impl Read>) -> Result<[u8; CHALLENGE_BYTES], CallError> {
    let mut challenge = [0; CHALLENGE_BYTES];
    match reply.block(&mut challenge)?.len() {
        CHALLENGE_BYTES => Ok(challenge),
        _ => Err(CallError::Protocol("a challenge of another length")),
    }
}

fn answer(challenge: &[u8; CHALLENGE_BYTES], account: &Account) -> [u8; 16] {
    let hash = Md5::new().chain_update(challenge).chain_update(account.key.key);
    hash.finalize().into()
}

/// The server's reason, from its number.
const fn reason(number: i32) -> &'static str {
    match number {
        1 => "access denied",
        2 => "not supported",
        3 => "another key, or no such user",
        4 => "the key has expired",
        5 | 6 => "the server cannot check it at present",
        _ => "no reason given",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Dial, SharedKey};

    #[test]
    fn the_answer_is_the_md5_of_challenge_and_key() {
        let key = SharedKey::parse(&format!("7fffffff {}", "02".repeat(32))).unwrap();
        let account = Account { user: "u".to_owned(), key, dial: Dial::default() };
        // printf of 32 bytes 01 and 32 bytes 02, through md5sum.
        let wanted = "ae3ae2bbfff06b23e4402dff35e6c35f";
        let hex: String =
            answer(&[1; 32], &account).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, wanted);
    }

    #[test]
    fn a_challenge_has_32_bytes() {
        for length in [0, 31, 33] {
            let mut bytes = Writer::default();
            bytes.string(&vec![7; length]);
            let read = challenge(&mut Reader::new(bytes.bytes()));
            assert!(matches!(read, Err(CallError::Protocol(_))), "{length}");
        }
    }
}
