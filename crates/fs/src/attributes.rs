//! Extended attributes of users (`user.*`). The other namespaces give rights or belong to the
//! system: nobody else's word is taken for those (T24).

use crate::error::FsError;
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

/// A name with its namespace, and a value.
pub type Named = (Vec<u8>, Vec<u8>);

const NAMESPACE: &[u8] = b"user.";
/// The kernel's own bounds (xattr(7)): of a value, and of all names together.
const LONGEST: usize = 64 << 10;

/// The attributes of an open file, by name; where a file system has none, there are none.
pub fn attributes(file: impl AsFd) -> Result<Vec<Named>, FsError> {
    let fail = |errno| FsError::new("read the attributes of", b"an open file", errno);
    let mut names = vec![0; LONGEST];
    let length = match flistxattr(&file, names.as_mut_slice()) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(errno) => return Err(fail(errno)),
    };
    names.truncate(length);
    let wanted = names.split(|&byte| byte == 0).filter(|name| name.starts_with(NAMESPACE));
    let mut all = Vec::new();
    for name in wanted {
        let mut value = vec![0; LONGEST];
        match fgetxattr(&file, OsStr::from_bytes(name), value.as_mut_slice()) {
            Ok(length) => value.truncate(length),
            // Somebody took it away meanwhile.
            Err(Errno::NODATA) => continue,
            Err(errno) => return Err(fail(errno)),
        }
        all.push((name.to_vec(), value));
    }
    Ok(all)
}

/// Gives an open file an attribute; one of another namespace is refused.
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
    fn attributes_of_users_are_kept_and_no_others() {
        let path = std::env::temp_dir().join(format!("hikyaku-xattr-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        assert_eq!(attributes(&file).unwrap(), []);
        for name in ["security.capability", "trusted.x", "system.posix_acl_access", "user.\0"] {
            assert!(set_attribute(&file, name.as_bytes(), b"\x01").is_err(), "{name:?}");
        }
        // A file system without attributes says so.
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
