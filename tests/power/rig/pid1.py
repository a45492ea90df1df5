"""A stand-in for PID 1 as far as logind asks it: units are always loaded, jobs always done, and a sleep target runs the
real systemd-sleep against the simulated /sys/power. Beside it the rig's own knobs, org.watchkeeper.Rig."""

import os
import subprocess
import threading
import time

import dbus
import dbus.service
from gi.repository import GLib

MANAGER = "org.freedesktop.systemd1.Manager"
UNITS = "/org/freedesktop/systemd1/unit"
RIG = "org.watchkeeper.Rig"
SLEEP_VERBS = {
    "suspend.target": "suspend",
    "hibernate.target": "hibernate",
    "hybrid-sleep.target": "hybrid-sleep",
    "suspend-then-hibernate.target": "suspend-then-hibernate",
}
LONGEST_SLEEP_S = 10


class Sleeper:
    """Carries out sleeps and remembers them."""

    def __init__(self, bus, machine, find, log):
        self.bus, self.machine, self.find, self.log = bus, machine, find, log
        self.done, self.fail, self.delay_ms, self.wake = [], False, 0, threading.Event()

    def sleep(self, verb):
        self.wake.clear()
        time.sleep(self.delay_ms / 1000)
        if self.fail:
            return "failed"
        kernel = self.machine.for_logind
        env = dict(
            os.environ, **kernel.env, DBUS_SYSTEM_BUS_ADDRESS=self.bus, SYSTEMD_LOG_TARGET="console",
            SYSTEMD_SLEEP_FREEZE_USER_SESSIONS="0",  # since 256 it would ask the real PID 1
        )
        program = self.find("/usr/lib/systemd/systemd-sleep", "/lib/systemd/systemd-sleep")
        ran = subprocess.run([program, verb], env=env, capture_output=True, text=True)
        state = (kernel.power / "state").read_text().strip()
        self.done.append(f"{verb}:rc={ran.returncode}:state={state}")
        self.log("slept", self.done[-1], ran.stderr.strip()[-300:])
        if self.machine.lid_closed:  # a shut laptop sleeps on until its lid opens
            self.wake.wait(LONGEST_SLEEP_S)
        kernel.reset_power()
        return "done" if ran.returncode == 0 else "failed"


class Systemd1(dbus.service.Object):
    def __init__(self, connection, sleeper, log):
        super().__init__(connection, "/org/freedesktop/systemd1")
        self.sleeper, self.log, self.jobs = sleeper, log, 0

    def _job(self, unit, work=None):
        self.jobs += 1
        number, path = self.jobs, f"/org/freedesktop/systemd1/job/{self.jobs}"

        def finish(result):
            self.JobRemoved(number, path, unit, result)
            return False

        if work:
            threading.Thread(target=lambda: GLib.idle_add(finish, work()), daemon=True).start()
        else:
            GLib.timeout_add(5, finish, "done")
        return path

    @dbus.service.method(MANAGER, in_signature="", out_signature="")
    def Subscribe(self):
        pass

    @dbus.service.method(MANAGER, in_signature="s", out_signature="o")
    def LoadUnit(self, _name):
        return f"{UNITS}/x"

    @dbus.service.method(MANAGER, in_signature="s", out_signature="o")
    def GetUnit(self, _name):
        return f"{UNITS}/x"

    @dbus.service.method(MANAGER, in_signature="ss", out_signature="o")
    def StartUnit(self, unit, mode):
        self.log("StartUnit", unit, mode)
        verb = SLEEP_VERBS.get(str(unit))
        return self._job(str(unit), verb and (lambda: self.sleeper.sleep(verb)))

    @dbus.service.method(MANAGER, in_signature="ssa(sv)a(sa(sv))", out_signature="o")
    def StartTransientUnit(self, unit, _mode, _properties, _others):
        self.log("StartTransientUnit", unit)
        return self._job(str(unit))

    @dbus.service.method(MANAGER, in_signature="ss", out_signature="o")
    def StopUnit(self, unit, _mode):
        return self._job(str(unit))

    @dbus.service.method(MANAGER, in_signature="s", out_signature="")
    def AbandonScope(self, _unit):
        pass

    @dbus.service.signal(MANAGER, signature="uoss")
    def JobRemoved(self, number, path, unit, result):
        pass


class Units(dbus.service.FallbackObject):
    @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="ss", out_signature="v")
    def Get(self, _interface, name):
        return {"LoadState": "loaded", "ActiveState": "inactive"}.get(str(name), dbus.String(""))


class Knobs(dbus.service.Object):
    def __init__(self, connection, machine, sleeper, log, start_logind, kill_logind):
        super().__init__(connection, "/org/watchkeeper/rig")
        self.machine, self.sleeper, self.log = machine, sleeper, log
        self.start_logind, self.kill_logind = start_logind, kill_logind

    @dbus.service.method(RIG, in_signature="b", out_signature="")
    def SetLid(self, closed):
        self.log("lid", "closed" if closed else "open")
        self.machine.set_lid(bool(closed))
        if not closed:
            self.sleeper.wake.set()

    @dbus.service.method(RIG, in_signature="b", out_signature="")
    def SetAC(self, on):
        self.machine.set_mains(bool(on))

    @dbus.service.method(RIG, in_signature="d", out_signature="")
    def SetBattery(self, percent):
        self.machine.set_percent(float(percent))

    @dbus.service.method(RIG, in_signature="", out_signature="as")
    def Sleeps(self):
        return dbus.Array(self.sleeper.done, signature="s")

    @dbus.service.method(RIG, in_signature="", out_signature="")
    def ResetSleeps(self):
        self.sleeper.done.clear()

    @dbus.service.method(RIG, in_signature="", out_signature="")
    def Wake(self):
        self.sleeper.wake.set()

    @dbus.service.method(RIG, in_signature="b", out_signature="")
    def FailSleep(self, fail):
        self.sleeper.fail = bool(fail)

    @dbus.service.method(RIG, in_signature="u", out_signature="")
    def SetSleepDelay(self, delay_ms):
        self.sleeper.delay_ms = int(delay_ms)

    @dbus.service.method(RIG, in_signature="", out_signature="")
    def StopLogind(self):
        self.log("killing logind")
        self.kill_logind()

    @dbus.service.method(RIG, in_signature="", out_signature="")
    def StartLogind(self):
        self.start_logind()


def serve(connection, bus, machine, find, log, start_logind, kill_logind):
    """Puts all objects on the bus; what it returns must be kept."""
    sleeper = Sleeper(bus, machine, find, log)
    return [
        dbus.service.BusName("org.freedesktop.systemd1", connection),
        dbus.service.BusName(RIG, connection),
        Systemd1(connection, sleeper, log),
        Units(connection, UNITS),
        Knobs(connection, machine, sleeper, log, start_logind, kill_logind),
    ]
