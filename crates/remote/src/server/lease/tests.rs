//! What a client may have leased.

use super::*;
use crate::calls::Listing;
use crate::tests::{connections, path};
use crate::{Client, Limits, Server};
use hikyaku_store::{Memory, Store};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

// spec: store-lease-1
#[test]
fn whoever_may_not_write_gets_leases_for_reading() {
    let store = Memory::default();
    store.make_dir(&path("d"), 0o755).unwrap();
    for (writes, wanted) in [(Writes::Refused, Extent::Read), (Writes::Allowed, Extent::Write)] {
        let (ours, theirs) = connections();
        let limits = Limits { writes, ..Limits::default() };
        let server = Server::new(Arc::new(store.clone()), limits)
            .with_leases(Some(Arc::default()), super::super::leases::Party([0; 32]));
        thread::scope(|scope| {
            scope.spawn(move || server.attend(theirs).unwrap());
            let client = Client::new(ours).unwrap().with_leases().unwrap();
            client.hear_recalls(Holder([1; 16]), |_| ());
            loop {
                let (tell, hear) = channel();
                client.renew_then(move |answer| tell.send(answer).unwrap());
                // The name goes another way than this.
                if hear.recv().unwrap().is_ok() {
                    break;
                }
            }
            let (tell, hear) = channel();
            client.take_then(&path("d"), (Extent::Write, 0), move |listing| {
                if let Listing::Leased { leased, .. } = listing.unwrap() {
                    tell.send(leased.extent).unwrap();
                }
            });
            assert_eq!(hear.recv().unwrap(), wanted);
            client.connection().close(hikyaku_net::code::DONE, "");
        });
    }
}
