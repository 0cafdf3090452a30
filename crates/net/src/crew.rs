//! The driver threads of an endpoint.

use crate::command::Command;
use crate::config::{Drivers, EndpointConfig};
use crate::driver::{Door, Driver, Seat, Setup};
use crate::error::EndpointError;
use crate::ids::{Aim, Ids};
use crate::load::{Coming, Load};
use crate::mailbox::Mailbox;
use crate::reply::{Question, ask};
use hikyaku_udp::{Poller, UdpSocket};
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// The drivers, and what starts further ones.
pub(crate) struct Crew {
    running: Mutex<Vec<Running>>,
    more: Option<More>,
}

/// A driver thread.
struct Running {
    mailbox: Arc<Mailbox>,
    load: Arc<Load>,
    ids: Ids,
    thread: Option<JoinHandle<()>>,
    /// Resolves when the driver has closed its socket.
    ended: Question<()>,
}

/// How further drivers are started, each with a port of its own.
struct More {
    address: SocketAddr,
    config: EndpointConfig,
    most: usize,
}

/// The driver of a new connection.
pub(crate) struct Chosen {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) ids: Ids,
    /// Its place among drivers with ports of their own.
    port: Option<u8>,
    _coming: Coming,
}

impl Chosen {
    /// The servers' drivers at which its connections aim.
    pub(crate) const fn aim(&self, of_endpoint: Aim) -> Aim {
        match self.port {
            Some(at) => of_endpoint.beside(at),
            None => of_endpoint,
        }
    }
}

impl Crew {
    /// A driver with this socket, and further ones with ports of their own when they are needed.
    pub(crate) fn of_ports(
        (socket, address): (UdpSocket, SocketAddr),
        drivers: Drivers,
        config: &EndpointConfig,
    ) -> Result<Self, EndpointError> {
        let first = start(vec![socket], None, config)?;
        let most = usize::from(drivers.number().get());
        Ok(Self {
            running: Mutex::new(first),
            more: Some(More { address, config: config.clone(), most }),
        })
    }

    /// A driver for each of the sockets of one port.
    pub(crate) fn of_port(
        sockets: Vec<UdpSocket>,
        door: &Door,
        config: &EndpointConfig,
    ) -> Result<Self, EndpointError> {
        let running = start(sockets, Some(door), config)?;
        Ok(Self { running: Mutex::new(running), more: None })
    }

    /// The driver with the fewest connections, or a new one if all have one.
    pub(crate) fn choose(&self) -> Chosen {
        let mut running = self.lock();
        let least = |running: &[Running]| {
            let loads = running.iter().enumerate().map(|(at, driver)| (driver.load.count(), at));
            loads.min().unwrap_or_default()
        };
        let (load, mut at) = least(&running);
        if let Some(more) = &self.more
            && load > 0
            && running.len() < more.most
            // Without a further socket or thread the present drivers serve all.
            && let Ok(new) = more.start()
        {
            running.extend(new);
            at = least(&running).1;
        }
        let driver = &running[at];
        Chosen {
            mailbox: driver.mailbox.clone(),
            ids: driver.ids,
            port: self.more.as_ref().and_then(|_| u8::try_from(at).ok()),
            _coming: Coming::to(&driver.load),
        }
    }

    /// Sends a command to all drivers.
    pub(crate) fn tell(&self, command: impl Fn() -> Command) {
        self.lock().iter().for_each(|driver| driver.mailbox.send(command()));
    }

    /// Resolves when all drivers have closed their sockets.
    pub(crate) async fn ended(&mut self) {
        for driver in self.running.get_mut().unwrap_or_else(PoisonError::into_inner) {
            // `None`: the driver drops its end of the question after its socket.
            let _ = (&mut driver.ended).await;
        }
    }

    /// Waits until all threads have ended.
    pub(crate) fn join(&mut self) {
        for driver in self.running.get_mut().unwrap_or_else(PoisonError::into_inner) {
            if let Some(thread) = driver.thread.take() {
                // An error is a panic of the driver, which the panic hook has reported.
                let _ = thread.join();
            }
        }
    }

    /// The number of connections of each driver.
    #[cfg(test)]
    pub(crate) fn loads(&self) -> Vec<usize> {
        self.lock().iter().map(|driver| driver.load.count()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl More {
    fn start(&self) -> Result<Vec<Running>, EndpointError> {
        let socket = UdpSocket::bind(self.address, &self.config.socket)?;
        start(vec![socket], None, &self.config)
    }
}

/// Starts a driver for each of the sockets of one port.
fn start(
    sockets: Vec<UdpSocket>,
    door: Option<&Door>,
    config: &EndpointConfig,
) -> Result<Vec<Running>, EndpointError> {
    let count = u8::try_from(sockets.len()).ok().and_then(NonZeroU8::new);
    let count = count.unwrap_or(NonZeroU8::MIN);
    let begun = Instant::now();
    let pollers: Result<Vec<_>, _> = sockets.iter().map(|_| Poller::new()).collect();
    let pollers = pollers.map_err(EndpointError::Thread)?;
    let mailboxes = pollers.iter().map(|poller| Arc::new(Mailbox::new(poller.waker())));
    let peers: Arc<[Arc<Mailbox>]> = mailboxes.collect();
    let seats = Seat::all(sockets).into_iter().zip(pollers);
    let start = |(index, (socket, poller))| {
        let ids = Ids::of(index, count);
        let mailbox = peers[usize::from(index)].clone();
        let ((ending, ended), load) = (ask(), Arc::<Load>::default());
        let driver = Driver::new(Setup {
            socket,
            poller,
            mailbox: mailbox.clone(),
            peers: peers.clone(),
            ids,
            drivers: config.drivers.number(),
            load: load.clone(),
            start: begun,
            door: door.cloned(),
            memory: config.memory.clone(),
            device: config.socket.bind_device.clone(),
            linger: config.linger,
            closing: config.closing,
            ending,
        });
        let thread = thread::Builder::new().name(THREAD.to_owned()).spawn(move || driver.run());
        let thread = Some(thread.map_err(EndpointError::Thread)?);
        Ok(Running { mailbox, load, ids, thread, ended })
    };
    (0..).zip(seats).map(start).collect()
}

/// The name of a driver thread, which profilers show.
const THREAD: &str = "hikyaku-driver";
