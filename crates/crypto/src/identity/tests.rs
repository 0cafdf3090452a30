//! An identity file is private, never replaced, and refused if it is exposed or malformed.

use super::*;
use crate::testing::{Folder, shake};
use std::fs::{self, Permissions};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_created_identity_is_private_and_loads() {
    let folder = Folder::new();
    let path = folder.path("a/b/identity");
    let created = Identity::create(&path).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let loaded = Identity::load(&path).unwrap();
    assert_eq!(loaded.fingerprint(), created.fingerprint());
    assert_eq!(
        fs::read_dir(path.parent().unwrap()).unwrap().count(),
        1,
        "temporary files are left"
    );
}

#[test]
fn an_existing_file_is_never_replaced() {
    let folder = Folder::new();
    let path = folder.path("identity");
    let first = Identity::create(&path).unwrap();
    assert!(matches!(Identity::create(&path), Err(CreateIdentity::Write { .. })));
    let again = Identity::load_or_create(&path).unwrap();
    assert_eq!(again.fingerprint(), first.fingerprint());
}

#[test]
fn concurrent_creators_get_the_same_identity() {
    let folder = Folder::new();
    let path = folder.path("identity");
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| Identity::load_or_create(&path).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().fingerprint()).collect()
    });
    assert!(all.iter().all(|fingerprint| *fingerprint == all[0]), "{all:?}");
}

#[test]
fn a_file_accessible_to_others_is_refused() {
    let folder = Folder::new();
    let path = folder.path("identity");
    Identity::create(&path).unwrap();
    for open in [0o640, 0o604, 0o620, 0o601, 0o666] {
        fs::set_permissions(&path, Permissions::from_mode(open)).unwrap();
        let error = Identity::load_or_create(&path).unwrap_err();
        assert!(matches!(error, LoadIdentity::Exposed { mode, .. } if mode == open));
        assert!(error.remedy().unwrap().starts_with("try: chmod 600 "));
    }
}

#[test]
fn a_file_without_a_valid_key_is_refused() {
    let folder = Folder::new();
    let path = folder.path("identity");
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let whole = document.as_ref();
    // Its public half does not belong to its private half.
    let mut torn = whole.to_vec();
    *torn.last_mut().unwrap() ^= 1;
    for bytes in [&b""[..], b"garbage", &whole[..whole.len() - 1], &torn, &[0; 5000]] {
        private_file::replace(&path, bytes).unwrap();
        let error = Identity::load(&path).unwrap_err();
        assert!(matches!(error, LoadIdentity::Malformed { .. }), "{error}");
    }
}

#[test]
fn debug_output_has_no_secret() {
    let identity = Identity::generate().unwrap();
    assert_eq!(format!("{identity:?}"), format!("Identity({})", identity.fingerprint()));
}

/// The attack that comparing fingerprints alone does not stop: presenting the right public key
/// without its private key.
#[test]
fn the_right_key_without_its_secret_is_refused() {
    let [victim, own] = [(); 2].map(|()| Identity::generate().unwrap());
    let shown = victim.key.cert.clone();
    let forged = CertifiedKey::new(shown, own.key.key.clone());
    let impostor = Identity { key: Arc::new(forged), ..victim.clone() };
    let error = shake(&impostor, victim.fingerprint()).err().unwrap();
    assert!(error.0.contains("BadSignature"), "{}", error.0);
    assert!(shake(&victim, victim.fingerprint()).is_ok());
}
