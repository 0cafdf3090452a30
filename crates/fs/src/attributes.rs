//! User extended attributes (`user.*`, xattr(7)). The namespaces `security`, `system` and `trusted`
//! grant rights or belong to the kernel. This crate neither reads them nor sets them on a peer's
//! request.

use crate::error::FsError;
use crate::system::NO_ATTRIBUTE;
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

/// An attribute: its name including the namespace (`user.origin`), and its value.
pub type Named = (Vec<u8>, Vec<u8>);

const NAMESPACE: &[u8] = b"user.";
/// The kernel's limit in bytes (xattr(7)). It is the same for one value and for the list of all
/// names.
const XATTR_BYTES_MAX: usize = 64 << 10;

/// Reads the `user.*` attributes of an open file, in the kernel's order. The list is empty on a
/// file system without extended attributes (`EOPNOTSUPP`).
pub fn attributes(file: impl AsFd) -> Result<Vec<Named>, FsError> {
    let fail = |errno| FsError::new("read the attributes of", b"an open file", errno);
    let mut names = vec![0; XATTR_BYTES_MAX];
    let length = match flistxattr(&file, names.as_mut_slice()) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(errno) => return Err(fail(errno)),
    };
    names.truncate(length);
    let wanted = names.split(|&byte| byte == 0).filter(|name| name.starts_with(NAMESPACE));
    let mut all = Vec::new();
    for name in wanted {
        let mut value = vec![0; XATTR_BYTES_MAX];
        match fgetxattr(&file, OsStr::from_bytes(name), value.as_mut_slice()) {
            Ok(length) => value.truncate(length),
            // Another process removed the attribute after it was listed.
            Err(NO_ATTRIBUTE) => continue,
            Err(errno) => return Err(fail(errno)),
        }
        all.push((name.to_vec(), value));
    }
    Ok(all)
}

/// Sets one attribute of an open file. A name outside `user.*` or with a NUL byte fails with
/// `EPERM`.
// spec: copy-entry-2
pub fn set_attribute(file: impl AsFd, name: &[u8], value: &[u8]) -> Result<(), FsError> {
    let fail = |errno| FsError::new("set the attribute", name, errno);
    if !name.starts_with(NAMESPACE) || name.contains(&0) {
        return Err(fail(Errno::PERM));
    }
    fsetxattr(file, OsStr::from_bytes(name), value, XattrFlags::empty()).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, remove_file};

    #[test]
    fn only_user_attributes_are_set() {
        let path = std::env::temp_dir().join(format!("hikyaku-xattr-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        assert_eq!(attributes(&file).unwrap(), []);
        for name in ["security.capability", "trusted.x", "system.posix_acl_access", "user.\0"] {
            assert!(set_attribute(&file, name.as_bytes(), b"\x01").is_err(), "{name:?}");
        }
        // On a file system without user attributes the call fails with `EOPNOTSUPP`.
        match set_attribute(&file, b"user.origin", b"lab 7") {
            Ok(()) => {
                let kept = vec![(b"user.origin".to_vec(), b"lab 7".to_vec())];
                assert_eq!(attributes(&file).unwrap(), kept);
            }
            Err(error) => assert_eq!(error.errno(), Some(Errno::OPNOTSUPP)),
        }
        remove_file(path).unwrap();
    }
}
