//! Each error becomes the kind that programs know.

use super::*;
use hikyaku_store::{StoreError, StorePath};

#[test]
fn each_failure_of_a_file_has_its_kind() {
    use FailureKind as F;
    let refused = |kind| RemoteError::Refused { kind, text: String::new() };
    let store = |kind| StoreError::new("read", &StorePath::ROOT, kind);
    let ways = [
        (InTheWay::Directory, F::IsDirectory),
        (InTheWay::Special, F::Special),
        (InTheWay::NoDirectory, F::NotDirectory),
    ];
    for (way, wanted) in ways {
        assert_eq!(Kind::from(way), Kind::File(wanted), "{way:?}");
        assert_eq!(Kind::from(&FetchError::InTheWay(way)), Kind::File(wanted), "{way:?}");
    }
    let whys = [
        (Why::Server(ErrorKind::Denied), F::Denied),
        (Why::Differs, F::Changed),
        (Why::Special, F::Special),
        (Why::Circle, F::Link),
        (Why::BadName, F::BadName),
        (Why::Tree, F::IsDirectory),
        (Why::Sizeless, F::Unsupported),
        (Why::Double, F::Exists),
        (Why::Taken, F::Exists),
    ];
    for (why, wanted) in whys {
        assert_eq!(Kind::from(why), Kind::File(wanted), "{why:?}");
    }
    let errors = [
        (FetchError::Target(store(ErrorKind::NoSpace)), Kind::File(F::NoSpace)),
        (FetchError::Source(store(ErrorKind::Changed)), Kind::File(F::Changed)),
        (FetchError::Server(refused(ErrorKind::Quota)), Kind::File(F::Quota)),
        (FetchError::Server(RemoteError::Closed(None)), Kind::NoAnswer),
        (FetchError::Server(RemoteError::Protocol("x")), Kind::NoAnswer),
        (FetchError::OutOfReach, Kind::NoAnswer),
        (FetchError::NoTaker, Kind::NoAnswer),
        (FetchError::OldOneAway, Kind::NoAnswer),
        (FetchError::Damaged, Kind::File(F::Damaged)),
        (FetchError::TooLarge, Kind::File(F::TooLarge)),
        (FetchError::Stopped, Kind::Stopped),
    ];
    for (error, wanted) in errors {
        assert_eq!(Kind::from(&error), wanted, "{error:?}");
    }
}

#[test]
fn each_failure_of_a_server_is_one_of_a_file_for_programs_that_know_no_servers() {
    use FailureKind as F;
    let table = [
        (Kind::UnknownHost, F::Busy),
        (Kind::NoAnswer, F::Busy),
        (Kind::WrongKey, F::Denied),
        (Kind::NotAuthorised, F::Denied),
        (Kind::OtherVersion, F::Unsupported),
        (Kind::ServerFull, F::Busy),
        (Kind::ServerEnds, F::Busy),
        (Kind::NoFiles, F::Unsupported),
        (Kind::OutsideRoot, F::BadName),
        (Kind::Stopped, F::Other),
        (Kind::File(F::Io), F::Io),
    ];
    for (kind, wanted) in table {
        assert_eq!(kind.as_file(), wanted, "{kind:?}");
    }
}
