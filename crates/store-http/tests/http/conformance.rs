//! The suite for stores that cannot be written to, over servers that name versions in each way.

use crate::opened;
use crate::server::{Reply, Request, Server};
use hikyaku_http::decoded;
use hikyaku_store::testing::read_only::{ReadOnlyRig, failures};
use hikyaku_store::{Store, Versions};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The headers of a server that name the version of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Names {
    StrongTag,
    WeakTag,
    Date,
}

/// Whether a server sends parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ranges {
    Sent,
    Refused,
}

/// The files of a server by their names, each with the number of its write.
type Files = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

struct Rig {
    files: Arc<Mutex<Files>>,
    server: Server,
}

impl Rig {
    fn new(names: Names, ranges: Ranges) -> Self {
        let files: Arc<Mutex<Files>> = Arc::default();
        files.lock().unwrap().insert(b"first".to_vec(), (b"1".to_vec(), 0));
        let served = Arc::clone(&files);
        let server = Server::start(move |request| {
            let name = decoded(request.path().strip_prefix("/dir/").unwrap_or(""));
            let file = served.lock().unwrap().get(&name).cloned();
            file.map_or_else(|| Reply::status(404), |file| reply(request, &file, names, ranges))
        });
        Self { files, server }
    }
}

fn reply(
    request: &Request,
    (content, write): &(Vec<u8>, u64),
    names: Names,
    ranges: Ranges,
) -> Reply {
    let modified = format!("Sun, 06 Nov 1994 08:{:02}:00 GMT", write % 60);
    let (header, version) = match names {
        Names::StrongTag => ("ETag", format!("\"{write}\"")),
        Names::WeakTag => ("ETag", format!("W/\"{write}\"")),
        Names::Date => ("Last-Modified", modified),
    };
    let is_met = request.header("if-range").is_none_or(|wanted| wanted == version);
    let range = request.range(content.len()).filter(|_| is_met && ranges == Ranges::Sent);
    let reply = match range {
        Some(range) if range.is_empty() => Reply::status(416),
        Some(range) => Reply::part(content, range),
        None => Reply::whole(content),
    };
    reply.with(header, &version).with("Date", "Sun, 06 Nov 1994 09:59:00 GMT")
}

impl ReadOnlyRig for Rig {
    fn store(&self) -> Box<dyn Store> {
        Box::new(opened(&self.server.url("/dir/first")).0)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let mut files = self.files.lock().unwrap();
        let write = files.values().map(|(_, write)| write + 1).max().unwrap_or(0);
        files.insert(name.as_bytes().to_vec(), (bytes.to_vec(), write));
    }

    fn remove(&self, name: &str) {
        self.files.lock().unwrap().remove(name.as_bytes());
    }
}

#[test]
fn every_case_of_the_suite_passes() {
    let cases = [
        (Names::StrongTag, Versions::Strong),
        (Names::WeakTag, Versions::SizeAndTime),
        (Names::Date, Versions::SizeAndTime),
    ];
    for (names, versions) in cases {
        for ranges in [Ranges::Sent, Ranges::Refused] {
            let rig = Rig::new(names, ranges);
            assert_eq!(rig.store().abilities().versions, versions, "{names:?}");
            let failed = failures(|| Rig::new(names, ranges));
            assert_eq!(failed, [""; 0], "{names:?}, ranges {ranges:?}");
        }
    }
}
