//! Connections are shared by the files of a server, and by the stores of a client.

use crate::server::{Reply, Server};
use crate::{client, opened_by, path, payload, streamed};
use hikyaku_store::{Access, Asked, Cut, Fetcher, Found, Store, StorePath, Wanted};
use std::sync::Arc;

/// More than the request that opens a file brings.
const LARGE: usize = (3 << 20) + 123;

/// A server of files with this content at every path.
fn server(content: &[u8]) -> Server {
    let content = content.to_vec();
    Server::start(move |request| Reply::honest(request, &content, "\"a\""))
}

#[test]
fn a_second_file_of_a_server_opens_no_connection() {
    let content = payload(0, LARGE);
    let server = server(&content);
    let client = client();
    let (store, first) = opened_by(&client, &server.url("/d/1"));
    for name in [first, path("2")] {
        assert_eq!(store.look(&name).unwrap().size, LARGE as u64);
        assert!(streamed(&*store.open(&name, Access::Read).unwrap(), 0).0 == content);
    }
    drop(store);
    let (other, third) = opened_by(&client, &server.url("/e/3"));
    assert!(streamed(&*other.open(&third, Access::Read).unwrap(), 0).0 == content);
    assert_eq!(server.connections(), 1);
}

/// Fetches the whole file.
fn fetch(fetcher: &dyn Fetcher, path: &StorePath, found: &Found) {
    let content = None;
    let file = Wanted { path: path.clone(), size: found.size, modified: found.modified, content };
    let all = 0..found.size;
    let asked = Asked::whole(std::slice::from_ref(&all));
    fetcher.ranges(&file, &asked, &Cut::default(), &|_| {}, &mut |_| {}).unwrap();
}

#[test]
fn a_fetcher_that_rests_closes_an_idle_connection() {
    let server = server(&payload(0, 1000));
    let client = client();
    let (store, first) = opened_by(&client, &server.url("/d/1"));
    let found = store.look(&first).unwrap();
    let fetchers = store.own_fetchers(2).unwrap();
    let fetcher: &Arc<dyn Fetcher> = &fetchers[0];
    fetch(&**fetcher, &first, &found);
    assert_eq!(server.connections(), 1);
    fetchers[1].rest();
    fetch(&**fetcher, &first, &found);
    assert_eq!(server.connections(), 2);
}
