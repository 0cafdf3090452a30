//! Who dials whom, and what is said of it.

use super::*;
use hikyaku_net::blocking::{Stop, wait};
use std::thread;
use std::time::Instant;

const PATIENCE: Duration = Duration::from_secs(20);

fn door() -> Door {
    Door::open(&(40_000..=59_999), &Tuning::default(), Duration::from_millis(20)).unwrap()
}

fn at(door: &Door) -> Vec<SocketAddr> {
    vec![SocketAddr::from((Ipv4Addr::LOCALHOST, door.invitation().port))]
}

#[test]
fn a_secret_is_not_printed() {
    let door = door();
    let printed = format!("{:?}", door.invitation());
    assert!(printed.contains(&door.invitation().key), "{printed}");
    assert!(!printed.contains(&door.invitation().secret), "{printed}");
}

#[test]
fn either_end_may_be_the_one_that_dials() {
    for (near_knows, far_knows) in [(true, true), (true, false), (false, true)] {
        let (near, far) = (door(), door());
        let known = |knows: bool, door: &Door| if knows { at(door) } else { Vec::new() };
        let (to_far, to_near) = (known(near_knows, &far), known(far_knows, &near));
        let until = Some(Instant::now() + PATIENCE);
        thread::scope(|scope| {
            let served = scope.spawn(|| {
                let met = far.be_met(near.invitation(), to_near, PATIENCE);
                let (_connection, mut stream) =
                    wait(met, &Stop::default(), until).unwrap().unwrap();
                let asked = wait(stream.read_chunk(), &Stop::default(), until).unwrap();
                asked.unwrap().unwrap().to_vec()
            });
            let met = near.meet("far", far.invitation(), to_far, PATIENCE);
            let connection = wait(met, &Stop::default(), until).unwrap().unwrap();
            let ask = async {
                let mut stream = connection.open_stream().await.unwrap();
                stream.write_chunk(hikyaku_net::Bytes::from_static(b"copy")).await.unwrap();
                stream
            };
            let _stream = wait(ask, &Stop::default(), until).unwrap();
            assert_eq!(served.join().unwrap(), b"copy", "{near_knows} {far_knows}");
        });
    }
}

#[test]
fn nobody_comes_who_does_not_know_the_secret() {
    let (near, far) = (door(), door());
    let mut invitation = far.invitation().clone();
    invitation.secret = near.invitation().secret.clone();
    let met = near.meet("far", &invitation, at(&far), Duration::from_millis(300));
    let until = Some(Instant::now() + Duration::from_secs(1));
    assert!(wait(met, &Stop::default(), until).is_err(), "it hears nothing");
}
