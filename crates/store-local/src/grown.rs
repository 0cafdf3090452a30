//! Files that are written under their own names.

use crate::convert::{self, found, set_attributes};
use crate::local::Local;
use crate::open::read;
use hikyaku_fs::Meta;
use hikyaku_store::{
    Doing, Draft, ErrorKind, Finish, Found, Growing, Kind, Make, Naming, Result, StorePath, Token,
    doing,
};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// An open file that has its name.
pub(crate) struct Grown {
    file: File,
    path: StorePath,
}

impl Grown {
    pub(crate) fn open(
        store: &Local,
        path: &StorePath,
        (make, growing): (&Make, Growing),
    ) -> Result<Self> {
        let doing = doing("open", path);
        let (dir, name) = store.parent_of_new(doing)?;
        let file = match (doing.or(dir.meta(&name))?, growing) {
            (None, Growing::Anew) => {
                let file = doing.or(dir.create(&name))?;
                let mode = make.mode.unwrap_or_else(|| store.new_mode());
                doing.or(Meta::set_mode(&file, mode)).map(|()| file)?
            }
            _ => doing.or(dir.write(&name.into()))?,
        };
        match found(&doing.or(Meta::of(&file))?).kind {
            Kind::File => {}
            Kind::Dir => return doing.fail(ErrorKind::IsDir),
            Kind::Link | Kind::Special => return doing.fail(ErrorKind::SPECIAL),
        }
        if growing == Growing::Anew {
            doing.or(file.set_len(0))?;
        }
        Ok(Self { file, path: path.clone() })
    }

    fn set_metadata(&self, doing: Doing<'_>, finish: &Finish) -> Result<()> {
        if let Some(owner) = finish.owner {
            doing.or(Meta::set_owner(&self.file, convert::owner(owner)))?;
        }
        set_attributes(doing, &self.file, &finish.attributes)?;
        if let Some(mode) = finish.mode {
            doing.or(Meta::set_mode(&self.file, mode))?;
        }
        let time = finish.modified.map(convert::time);
        time.map_or(Ok(()), |time| doing.or(Meta::set_modified(&self.file, time)))
    }
}

impl Draft for Grown {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        doing("write", &self.path).or(self.file.write_all_at(bytes, at))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        doing("read", &self.path).or(read(&self.file, at, into))
    }

    fn set_len(&self, length: u64) -> Result<()> {
        doing("set the length", &self.path).or(self.file.set_len(length))
    }

    /// Its own name.
    fn token(&self) -> Token {
        Token(self.path.split().map(|(_, name)| name.as_bytes().to_vec()).unwrap_or_default())
    }

    fn keep(&self) {}

    fn sync(&self) -> Result<()> {
        doing("sync", &self.path).or(self.file.sync_all())
    }

    fn name(self: Box<Self>, _: Naming, finish: &Finish) -> Result<Found> {
        let doing = doing("set the metadata of", &self.path);
        self.set_metadata(doing, finish)?;
        doing.or(Meta::of(&self.file)).map(|meta| found(&meta))
    }

    fn discard(self: Box<Self>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewModes;
    use hikyaku_store::Store;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_there_from_its_first_byte_on_and_stays_as_it_was_written() {
        let root = std::env::temp_dir().join(format!("hikyaku-grown-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        let store = Local::open(&root, NewModes::default()).unwrap();
        let path = StorePath::new(b"f").unwrap();
        let make = Make { mode: Some(0o640), ..Make::default() };
        let draft = store.grow(&path, &make, Growing::Anew).unwrap();
        draft.write_at(0, b"begin").unwrap();
        draft.discard();
        assert_eq!(fs::read(root.join("f")).unwrap(), b"begin");
        let draft = store.grow(&path, &make, Growing::Behind(5)).unwrap();
        draft.write_at(5, b" and end").unwrap();
        draft.name(Naming::Replace, &Finish::default()).unwrap();
        assert_eq!(fs::read(root.join("f")).unwrap(), b"begin and end");
        assert_eq!(fs::metadata(root.join("f")).unwrap().permissions().mode() & 0o777, 0o640);
        drop(store.grow(&path, &make, Growing::Anew).unwrap());
        assert_eq!(fs::read(root.join("f")).unwrap(), b"");
        std::os::unix::fs::symlink("f", root.join("link")).unwrap();
        let link = StorePath::new(b"link").unwrap();
        let through = store.grow(&link, &make, Growing::Anew).err();
        assert_eq!(through.map(|error| error.kind), Some(ErrorKind::Link));
        fs::remove_dir_all(&root).unwrap();
    }
}
