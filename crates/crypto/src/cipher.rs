//! The ciphers for data: their names and this machine's order of preference.

use hikyaku_proto::CipherId;

const NAMES: [(&str, CipherId); 3] = [
    ("aegis128l", CipherId::Aegis128L),
    ("aes128gcm", CipherId::Aes128Gcm),
    ("chacha20poly1305", CipherId::ChaCha20Poly1305),
];

/// The ciphers for data in order of preference. AEGIS is left out on machines without AES
/// instructions: its software implementation is slow, and its table look-ups leak the key through
/// cache timing.
pub fn preferred_ciphers() -> Vec<CipherId> {
    if has_aes() {
        vec![CipherId::Aegis128L, CipherId::Aes128Gcm, CipherId::ChaCha20Poly1305]
    } else {
        vec![CipherId::ChaCha20Poly1305, CipherId::Aes128Gcm]
    }
}

/// The name of a cipher, as users type it.
pub fn cipher_name(cipher: CipherId) -> &'static str {
    NAMES.iter().find(|(_, id)| *id == cipher).map_or("unknown", |(name, _)| name)
}

/// The text is not the name of a cipher.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown cipher `{0}`: there are aegis128l, aes128gcm and chacha20poly1305")]
pub struct UnknownCipher(String);

/// The cipher with this name, in upper or lower case.
// fuzz: none, the user's own word
pub fn parse_cipher(text: &str) -> Result<CipherId, UnknownCipher> {
    NAMES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text))
        .map(|(_, id)| *id)
        .ok_or_else(|| UnknownCipher(text.to_owned()))
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cipher_names_parse_to_the_same_cipher() {
        for (name, cipher) in NAMES {
            assert_eq!(cipher_name(cipher), name);
            assert_eq!(parse_cipher(name), Ok(cipher));
        }
        assert_eq!(parse_cipher("none"), Err(UnknownCipher("none".to_owned())));
    }

    #[test]
    fn aegis_is_preferred_only_with_aes_instructions() {
        let ciphers = preferred_ciphers();
        assert_eq!(ciphers.contains(&CipherId::Aegis128L), has_aes());
        assert!(ciphers.len() >= 2);
    }
}
