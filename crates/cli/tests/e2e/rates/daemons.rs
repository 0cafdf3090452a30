//! Copies from and to daemons, whose limit is the daemon's, the key's, the user's or that of the settings.

use super::places::{CP, CP_SERVER, KEY, PIPES, SERVE, SETTING, TCP, UDP};
use super::{Cell, LIMIT, WAYS, Way, timed, word};
use crate::common::daemon::{Client, Daemon};
use std::fs;
use std::path::{Path, PathBuf};

/// Each cell has a daemon of its own, because the sessions of a key share its rate.
pub(super) struct Daemons {
    wanted: Vec<Wanted>,
    shared: Daemon,
    client: Client,
}

/// A copy from or to a daemon, with these options.
struct Wanted {
    daemon: Daemon,
    place: &'static str,
    by: &'static str,
    way: Way,
    options: Vec<&'static str>,
    settings: PathBuf,
}

const VIA: [(&str, &[&str]); 3] = [
    (UDP, &["--via", "udp"]),
    (TCP, &["--via", "tcp"]),
    (PIPES, &["--via", "tcp", "--connections", "4"]),
];

/// A place, the keys, options of the daemon and of the client, and the settings.
type Place<'a> = (&'static str, &'a Path, &'a [&'a str], &'static [&'static str], &'a Path);

impl Daemons {
    pub(super) fn new(name: &str) -> Self {
        let client = Client::new(name);
        fs::create_dir(client.at("root")).unwrap();
        let root = client.at("root");
        let free = client.authorized("free", "");
        let capped = client.authorized("capped", &format!("max-rate={LIMIT}"));
        let (set, unset) = (client.at("set"), client.at("unset"));
        fs::create_dir_all(set.join("hikyaku")).unwrap();
        let settings = format!("[default]\nrate = \"{LIMIT}\"\n");
        fs::write(set.join("hikyaku/config.toml"), settings).unwrap();
        let places: [Place<'_>; 5] = [
            (SERVE, &free, &["--rate", LIMIT], &[], &unset),
            (KEY, &capped, &[], &[], &unset),
            (CP, &free, &[], &["-l", LIMIT], &unset),
            (CP_SERVER, &free, &[], &["--server-rate", LIMIT], &unset),
            (SETTING, &free, &[], &[], &set),
        ];
        let mut wanted = Vec::new();
        for (place, keys, of_serve, of_cp, settings) in places {
            for (by, via) in VIA {
                for way in WAYS {
                    let of_serve = [&["--writable"], of_serve].concat();
                    wanted.push(Wanted {
                        daemon: Daemon::start_with(&client, &root, keys, &of_serve),
                        place,
                        by,
                        way,
                        options: [via, of_cp].concat(),
                        settings: settings.to_owned(),
                    });
                }
            }
        }
        let shared = Daemon::start_with(&client, &root, &capped, &["--writable"]);
        Self { wanted, shared, client }
    }

    pub(super) fn cells(&self) -> Vec<Cell<'_>> {
        let all = self.wanted.iter().map(|wanted| {
            let cell = (wanted.place, wanted.by, wanted.way);
            self.copy(&wanted.daemon, cell, (&wanted.options, &wanted.settings))
        });
        all.collect()
    }

    /// Sessions of one key with one daemon.
    pub(super) fn of_one_key(&self, way: Way) -> Vec<Cell<'_>> {
        let by = [UDP, TCP, "a daemon by UDP again", "a daemon by TCP again"];
        let all = by.into_iter().enumerate().map(|(number, by)| {
            let (_, via) = VIA[number % 2];
            self.copy(&self.shared, (KEY, by, way), (via, Path::new("/nowhere")))
        });
        all.collect()
    }

    /// `hikyaku cp` with a daemon, from or to it. Each cell has files of its own.
    fn copy<'a>(
        &'a self,
        daemon: &'a Daemon,
        (place, by, way): (&'static str, &'static str, Way),
        (options, settings): (&[&'static str], &Path),
    ) -> Cell<'a> {
        let name = word((place, by, way));
        let (here, there) = (self.client.at(&name), format!("{name}-far"));
        let far = format!("hikyaku://{}/{there}", daemon.address);
        let from =
            if way == Way::Down { self.client.at("root").join(&there) } else { here.clone() };
        let here = here.to_str().unwrap().to_owned();
        let ends = if way == Way::Down { [far, here] } else { [here, far] };
        let (options, settings) = (options.to_vec(), settings.to_owned());
        let work = move |bytes| {
            fs::write(&from, vec![7; bytes]).unwrap();
            let mut command = self.client.command(&["cp", "-q"]);
            timed(command.env("XDG_CONFIG_HOME", &settings).args(&options).args(&ends))
        };
        Cell { place, by, way, work: Box::new(work) }
    }
}
