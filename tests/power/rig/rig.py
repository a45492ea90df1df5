#!/usr/bin/python3
"""The power rig: real systemd-logind, polkitd and upowerd on a private system bus, with a simulated kernel below them
(kernel.py) and a stand-in for PID 1 that runs the real systemd-sleep (pid1.py). Started by ../start-logind.sh in a
mount namespace of its own; turned by ../ctl.sh. Writes RUN/ready once all three are on the bus."""

import os
import pathlib
import signal
import subprocess
import sys
import time

RUN = pathlib.Path(os.environ["RIG_RUN"])
BUS = f"unix:path={RUN}/bus"
BUS_LIMIT_S = 5
READY_LIMIT_S = 25
STOP_LIMIT_S = 3
WANTED = {"org.freedesktop.login1", "org.freedesktop.PolicyKit1", "org.freedesktop.UPower"}

BUS_CONFIG = f"""<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>{BUS}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
  </policy>
  <includedir>/usr/share/dbus-1/system.d</includedir>
  <includedir>/etc/dbus-1/system.d</includedir>
  <policy user="root"><allow own="*"/><allow send_type="method_call"/></policy>
</busconfig>
"""


def log(*words):
    print(f"{time.time():.3f}", *words, flush=True)


def find(*candidates):
    for path in candidates:
        if os.path.exists(path):
            return path
    sys.exit(f"none of {candidates} is here")


class Daemons:
    """The real services: started in order, ended in reverse."""

    def __init__(self):
        self.running = []

    def start(self, name, argv, extra=None):
        # Without the wrapper's own preload: each daemon gets the testbed that is meant for it, or none.
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "UMOCKDEV_DIR")}
        env["DBUS_SYSTEM_BUS_ADDRESS"] = BUS
        env.update(extra or {})
        with open(RUN / f"{name}.log", "ab") as out:
            process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        self.running.append((name, process))
        (RUN / f"{name}.pid").write_text(str(process.pid))

    def kill(self, name):
        for entry in [entry for entry in self.running if entry[0] == name]:
            entry[1].kill()
            entry[1].wait()
            self.running.remove(entry)

    def stop(self):
        for _, process in reversed(self.running):
            process.terminate()
        for _, process in reversed(self.running):
            try:
                process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def start_bus(daemons):
    (RUN / "bus.conf").write_text(BUS_CONFIG)
    daemons.start("dbus", [find("/usr/bin/dbus-daemon"), f"--config-file={RUN}/bus.conf", "--nopidfile", "--nofork", "--nosyslog"])
    until = time.monotonic() + BUS_LIMIT_S
    while not (RUN / "bus").exists():
        if time.monotonic() > until:
            sys.exit("the bus did not come up")
        time.sleep(0.01)
    os.chmod(RUN / "bus", 0o666)


def main():
    os.umask(0o022)
    daemons = Daemons()
    start_bus(daemons)
    import dbus
    import dbus.bus
    from dbus.mainloop.glib import DBusGMainLoop
    from gi.repository import GLib

    import kernel
    import pid1

    DBusGMainLoop(set_as_default=True)
    connection = dbus.bus.BusConnection(BUS)
    machine = kernel.Machine()
    loop = GLib.MainLoop()
    for number in (signal.SIGTERM, signal.SIGINT):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, loop.quit)

    def start_logind():
        path = find("/usr/lib/systemd/systemd-logind", "/lib/systemd/systemd-logind")
        env = dict(machine.for_logind.env, SYSTEMD_LOG_LEVEL="debug", SYSTEMD_LOG_TARGET="console")
        daemons.start("logind", [path], env)

    keep = pid1.serve(connection, BUS, machine, find, log, start_logind, lambda: daemons.kill("logind"))
    daemons.start("polkitd", [find("/usr/lib/polkit-1/polkitd"), "--no-debug"])
    start_logind()
    until = time.monotonic() + READY_LIMIT_S
    state = {"upower": False, "failed": False}

    def look():
        names = set(map(str, connection.list_names()))
        # upowerd takes a lock of its own from logind when it starts.
        if not state["upower"] and "org.freedesktop.login1" in names:
            state["upower"] = True
            daemons.start("upowerd", [find("/usr/libexec/upowerd", "/usr/lib/upower/upowerd"), "-v"], machine.for_upower.env)
        if WANTED <= names:
            (RUN / "ready").write_text(BUS)
            log("ready")
            return False
        if time.monotonic() > until:
            log("missing on the bus:", *sorted(WANTED - names))
            state["failed"] = True
            loop.quit()
            return False
        return True

    GLib.timeout_add(20, look)
    loop.run()
    daemons.stop()
    (RUN / "ready").unlink(missing_ok=True)
    log("stopped")
    del keep
    sys.exit(state["failed"])


main()
