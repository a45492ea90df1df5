//! The kernel's own notices of devices: displays plugged, supplies changed.

use std::{io, os::fd::OwnedFd};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SocketFlags, SocketType, bind,
        netlink::{self, SocketAddrNetlink},
        recvfrom, socket_with,
    },
};
use tokio::io::unix::AsyncFd;

/// A uevent is below 4 KiB (`UEVENT_BUFFER_SIZE` is 2048); a longer one is cut and its subsystem perhaps not seen.
const MAX_UEVENT_BYTES: usize = 8192;

/// The multicast group in which the kernel itself speaks; udev uses 2.
const KERNEL_GROUP: u32 = 1;

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subsystem {
    Displays,
    Supplies,
    Other,
    /// Notices were lost: anything may have changed.
    Lost,
}

#[derive(Debug)]
pub(super) struct Uevents {
    socket: AsyncFd<OwnedFd>,
}

impl Uevents {
    /// Fails where the kernel's notices are kept from us (some sandboxes).
    pub(super) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::KOBJECT_UEVENT);
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, protocol)?;
        bind(&socket, &SocketAddrNetlink::new(0, KERNEL_GROUP))?;
        Ok(Self { socket: crate::readable::readable(socket)? })
    }

    /// Waits for a notice. Cancel-safe.
    pub(super) async fn next(&self) -> io::Result<Subsystem> {
        loop {
            let mut ready = self.socket.readable().await?;
            let mut buffer = [0_u8; MAX_UEVENT_BYTES];
            match recvfrom(&self.socket, &mut buffer, RecvFlags::empty()) {
                Ok((bytes, _, sender)) => {
                    // Port 0 is the kernel; other programs may send here, too.
                    let from_kernel = sender
                        .and_then(|sender| SocketAddrNetlink::try_from(sender).ok())
                        .is_some_and(|sender| sender.pid() == 0);
                    if from_kernel {
                        return Ok(subsystem(buffer.get(..bytes).unwrap_or_default()));
                    }
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => return Ok(Subsystem::Lost),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// `action@path\0KEY=value\0...`
fn subsystem(message: &[u8]) -> Subsystem {
    let named = message.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(b"SUBSYSTEM="));
    match named {
        Some(b"drm") => Subsystem::Displays,
        Some(b"power_supply") => Subsystem::Supplies,
        Some(_) | None => Subsystem::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &[u8], expected: Subsystem) {
        assert_eq!(subsystem(message), expected, "{:?}", String::from_utf8_lossy(message));
    }

    #[test]
    fn the_subsystem_is_found() {
        check(
            b"change@/devices/pci0000:00/drm/card0\0ACTION=change\0SUBSYSTEM=drm\0HOTPLUG=1\0",
            Subsystem::Displays,
        );
        check(b"change@/devices/AC\0ACTION=change\0SUBSYSTEM=power_supply\0", Subsystem::Supplies);
        check(b"add@/devices/usb1\0ACTION=add\0SUBSYSTEM=usb\0", Subsystem::Other);
        check(b"", Subsystem::Other);
        check(b"SUBSYSTEM=drmx", Subsystem::Other);
        check(b"\0\0\0\xff\xfe", Subsystem::Other);
    }
}
