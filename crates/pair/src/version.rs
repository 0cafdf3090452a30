//! The version of a source, from its metadata.

use hikyaku_fs::Meta;
use hikyaku_transfer::Version;

/// Of an open source.
pub(crate) fn of_meta(meta: &Meta) -> Version {
    Version::of(&meta.version())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_change_shows() {
        let path = std::env::temp_dir().join(format!("hikyaku-version-{}", std::process::id()));
        std::fs::write(&path, b"one").unwrap();
        let look = || of_meta(&Meta::of(File::open(&path).unwrap()).unwrap());
        let first = look();
        let time = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(&path, b"two").unwrap();
        // A modification time that was set back is noticed.
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), time);
        assert_ne!(look(), first);
        std::fs::remove_file(path).unwrap();
    }
}
