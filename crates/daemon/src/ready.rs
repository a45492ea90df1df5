//! Tells the service manager that the daemon listens (the `sd_notify` protocol: one datagram to the named socket).

use std::path::Path;

/// Does nothing where no service manager asked for it. `other`: somebody else who waits, told in the same way.
#[cfg(unix)]
pub(crate) fn tell(other: Option<&Path>) {
    for address in std::env::var_os("NOTIFY_SOCKET").into_iter().chain(other.map(Into::into)) {
        tell_one(&address);
    }
}

#[cfg(unix)]
fn tell_one(address: &std::ffi::OsStr) {
    let sent = std::os::unix::net::UnixDatagram::unbound().and_then(|socket| {
        let name = address.as_encoded_bytes();
        #[cfg(target_os = "linux")]
        if let Some(name) = name.strip_prefix(b"@") {
            use std::os::linux::net::SocketAddrExt as _;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            return socket.send_to_addr(b"READY=1", &address);
        }
        _ = name;
        socket.send_to(b"READY=1", address)
    });
    if let Err(error) = sent {
        tracing::warn!(%error, "the service manager was not told that the daemon is ready");
    }
}

/// Does nothing: there is no such protocol here.
#[cfg(not(unix))]
pub(crate) fn tell(_other: Option<&Path>) {}
