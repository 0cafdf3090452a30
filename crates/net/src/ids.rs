//! The connection ids of a driver.
//!
//! Several drivers may share a port. The lowest byte of an id, modulo their number, is the index of the driver to which the
//! packets go: the kernel reads it ([`hikyaku_udp::STEERING_BYTE`]), and so does a driver that gets a packet of another one.

use hikyaku_crypto::random_u64;
use hikyaku_proto::ConnectionId;
use std::num::NonZeroU8;

/// A driver among those of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ids {
    index: u8,
    drivers: NonZeroU8,
}

impl Ids {
    /// Those of the only driver of a port.
    pub(crate) const ALONE: Self = Self { index: 0, drivers: NonZeroU8::MIN };

    /// Those of the driver with this index among `drivers`.
    pub(crate) const fn of(index: u8, drivers: NonZeroU8) -> Self {
        Self { index: index % drivers.get(), drivers }
    }

    /// A new one. At least 60 of its bits are random.
    pub(crate) fn random(self) -> ConnectionId {
        self.made_of(random_u64())
    }

    fn made_of(self, random: u64) -> ConnectionId {
        let drivers = u64::from(self.drivers.get());
        // Each driver has an equal share of the 256 values; those that are left over are not used.
        let byte = random % 256 % (256 / drivers) * drivers + u64::from(self.index);
        ConnectionId((random & !0xff) | byte)
    }

    /// The index of the driver that gets the packets to an id, if it is another one.
    pub(crate) const fn other(self, id: ConnectionId) -> Option<u8> {
        let index = id.0 as u8 % self.drivers.get();
        if index == self.index { None } else { Some(index) }
    }
}

/// The lowest byte of the first ids that a client makes up for servers. All connections between two addresses have the same one,
/// so that one driver of the server serves them: the kernel may join their datagrams to one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Aim(u8);

impl Aim {
    /// A new one.
    pub(crate) fn random() -> Self {
        Self(random_u64() as u8)
    }

    /// That of the driver with this index, which has addresses of its own. Those of several drivers spread evenly.
    pub(crate) const fn beside(self, index: u8) -> Self {
        Self(self.0.wrapping_add(index))
    }

    /// An id to which a client's first packets go.
    pub(crate) fn id(self) -> ConnectionId {
        ConnectionId((random_u64() & !0xff) | u64::from(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_id_names_its_driver_and_is_random_otherwise() {
        for drivers in 1..=9 {
            let drivers = NonZeroU8::new(drivers).unwrap();
            let mut bytes = BTreeSet::new();
            for index in 0..drivers.get() {
                let ids = Ids::of(index, drivers);
                for random in (0..=u64::from(u8::MAX)).map(|low| 0x0123_4567_89ab_cd00 | low) {
                    let id = ids.made_of(random);
                    assert_eq!(id.0 >> 8, random >> 8);
                    assert_eq!(id.0 as u8 % drivers, index, "{random} of {drivers}");
                    assert_eq!(ids.other(id), None);
                    bytes.insert(id.0 as u8);
                }
            }
            let used = 256 / usize::from(drivers.get()) * usize::from(drivers.get());
            assert_eq!(bytes.len(), used);
        }
        assert_eq!(Ids::ALONE.made_of(u64::MAX), ConnectionId(u64::MAX));
        assert_eq!(Ids::of(1, NonZeroU8::new(4).unwrap()).other(ConnectionId(7)), Some(3));
    }

    #[test]
    fn drivers_of_a_client_aim_at_different_drivers_of_a_server() {
        let aim = Aim::random();
        let drivers: BTreeSet<_> = (0..8).map(|index| aim.beside(index).id().0 as u8 % 8).collect();
        assert_eq!(drivers.len(), 8);
        assert_eq!(aim.id().0 as u8, aim.id().0 as u8);
    }
}
