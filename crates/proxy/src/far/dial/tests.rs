//! Targets that are looked up and checked.

use super::*;
use hikyaku_forward::{AllowList, Target};
use tokio::runtime::Builder;

fn run<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn open(host: &str, port: u16, loopback: Loopback) -> Open {
    Open { target: Target { host: Host::parse(host).unwrap(), port }.into(), loopback }
}

#[test]
fn a_target_is_connected_or_the_reason_is_told() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(dial(&open("127.0.0.1", port, Loopback::Named), &Targets::OfUser).await.is_ok());
        // The first address of the name may be ::1, where nobody listens.
        assert!(dial(&open("localhost", port, Loopback::Named), &Targets::OfUser).await.is_ok());
        for host in ["127.0.0.1", "localhost", "::ffff:127.0.0.1"] {
            let refused =
                dial(&open(host, port, Loopback::Refused), &Targets::OfUser).await.unwrap_err();
            assert_eq!(refused.verdict, Verdict::NotAllowed, "{host}");
        }
        drop(listener);
        let refused =
            dial(&open("127.0.0.1", port, Loopback::Named), &Targets::OfUser).await.unwrap_err();
        assert_eq!(refused.verdict, Verdict::Refused);
        let unknown =
            dial(&open("no.such.host.invalid", 1, Loopback::Refused), &Targets::OfUser).await;
        assert_eq!(unknown.unwrap_err().verdict, Verdict::NameNotFound);
    });
}

#[test]
fn a_daemon_connects_what_all_lists_allow() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let list =
            |pattern: String| -> AllowList { [pattern.parse().unwrap()].into_iter().collect() };
        let all = || list("127.0.0.0/8:*".to_owned());
        for (lists, is_allowed) in [
            (vec![all()], true),
            (vec![all(), list(format!("127.0.0.1:{port}"))], true),
            (vec![all(), list("127.0.0.2:*".to_owned())], false),
            (vec![all(), AllowList::default()], false),
            (vec![list("*:*".to_owned())], false),
        ] {
            // That the client names loopback does not matter.
            let open = open("127.0.0.1", port, Loopback::Named);
            let dialled = dial(&open, &Targets::Listed(lists)).await;
            assert_eq!(dialled.is_ok(), is_allowed);
            if let Err(answer) = dialled {
                assert_eq!(answer.verdict, Verdict::NotAllowed);
            }
        }
        let metadata = open("169.254.169.254", 80, Loopback::Named);
        let listed = Targets::Listed(vec![list("169.254.0.0/16:*".to_owned())]);
        let answer = dial(&metadata, &listed).await;
        assert!(answer.unwrap_err().text.contains("link-local"));
    });
}
