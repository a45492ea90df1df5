"""The simulated kernel: a lid switch, mains, a battery and /sys/power, by umockdev.

Each daemon has a testbed of its own: an emulated input node is a terminal that gives each event to one reader, and the
emulated uevent sockets are named by descriptor number, so that two daemons in one testbed collide."""

import os
import pathlib
import struct
import time

import gi

gi.require_version("UMockdev", "1.0")
from gi.repository import UMockdev  # noqa: E402

LID_NODE = "/dev/input/event0"
LID_SYSFS = "devices/LNXSYSTM:00/PNP0C0D:00/input/input0"
POWER_FILES = {
    "state": "freeze mem disk\n",
    "mem_sleep": "s2idle [deep]\n",
    "disk": "[platform] shutdown reboot suspend test_resume\n",
    "resume": "0:0\n",
    "resume_offset": "0\n",
    "image_size": "1000000\n",
}
LID_DEVICE = f"""P: /{LID_SYSFS}
E: SUBSYSTEM=input
A: capabilities/sw=1
A: name=Lid Switch

P: /{LID_SYSFS}/event0
N: input/event0
E: DEVNAME={LID_NODE}
E: SUBSYSTEM=input
E: MAJOR=13
E: MINOR=64
E: ID_INPUT=1
E: ID_INPUT_SWITCH=1
E: TAGS=:power-switch:
E: CURRENT_TAGS=:power-switch:
"""
EV_SW, SW_LID = 5, 0
FULL_UWH = 60_000_000


class LidIoctl(UMockdev.IoctlBase):
    """Answers evdev's questions about the lid. The numbers are those of <linux/input.h>."""

    machine = None

    def do_handle_ioctl(self, client):
        request = client.get_request()
        number, size = request & 0xFF, (request >> 16) & 0x3FFF

        def answer(data, result=0):
            client.get_arg().resolve(0, size).update(0, (data + b"\0" * size)[:size])
            client.complete(result, 0)
            return True

        if (request >> 8) & 0xFF != ord("E"):
            client.complete(-1, 25)  # ENOTTY
            return True
        if number == 0x06:  # EVIOCGNAME
            return answer(b"Lid Switch\0", 11)
        if number == 0x20:  # EVIOCGBIT(0): it has EV_SYN and EV_SW
            return answer(struct.pack("<Q", 1 | 1 << EV_SW))
        if number == 0x20 + EV_SW:  # EVIOCGBIT(EV_SW): it has SW_LID
            return answer(struct.pack("<Q", 1 << SW_LID))
        if number == 0x1B:  # EVIOCGSW
            return answer(struct.pack("<Q", int(self.machine.lid_closed) << SW_LID))
        if 0x18 <= number < 0x40:  # keys, LEDs, other kinds of events: none
            return answer(b"")
        client.complete(0, 0)
        return True


class Kernel:
    def __init__(self, machine):
        self.testbed = UMockdev.Testbed.new()
        self.root = pathlib.Path(self.testbed.get_root_dir())
        self.testbed.add_from_string(LID_DEVICE)
        self._lay_out_udev()
        self.mains = self.testbed.add_device(
            "power_supply", "AC", None,
            ["type", "Mains", "online", "1"],
            ["POWER_SUPPLY_NAME", "AC", "POWER_SUPPLY_TYPE", "Mains", "POWER_SUPPLY_ONLINE", "1"],
        )
        self.battery = self.testbed.add_device(
            "power_supply", "BAT0", None,
            ["type", "Battery", "present", "1", "status", "Charging", "energy_full", str(FULL_UWH),
             "energy_full_design", str(FULL_UWH), "energy_now", str(FULL_UWH * 8 // 10), "power_now", "10000000",
             "voltage_now", "12000000", "capacity", "80", "technology", "Li-ion", "scope", "System"],
            ["POWER_SUPPLY_NAME", "BAT0", "POWER_SUPPLY_TYPE", "Battery"],
        )
        self.power = self.root / "sys/power"
        self.power.mkdir(parents=True, exist_ok=True)
        self.reset_power()
        self.ioctl = LidIoctl()
        self.ioctl.machine = machine
        self.testbed.attach_ioctl(LID_NODE, self.ioctl)
        self.lid_fd = self.testbed.get_dev_fd(LID_NODE)
        self.env = {"LD_PRELOAD": "libumockdev-preload.so.0", "UMOCKDEV_DIR": str(self.root)}

    def _lay_out_udev(self):
        target = f"/sys/{LID_SYSFS}/event0"
        by_number = self.root / "sys/dev/char"
        by_number.mkdir(parents=True, exist_ok=True)
        os.symlink(f"../../{LID_SYSFS}/event0", by_number / "13:64")
        # umockdev 0.18 takes openat(descriptor of /sys, "dev") for /dev, which is how systemd 25x walks paths, and
        # redirects /run/udev as well; 0.17 reads the real one, which inside.sh fills.
        (self.root / "dev/char").mkdir(parents=True, exist_ok=True)
        os.symlink(target, self.root / "dev/char/13:64")
        for path in ("run/udev/tags/power-switch/c13:64", "run/udev/control"):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).touch()
        data = self.root / "run/udev/data"
        data.mkdir(parents=True, exist_ok=True)
        (data / "c13:64").write_text("I:1\nE:ID_INPUT=1\nE:ID_INPUT_SWITCH=1\nG:power-switch\nQ:power-switch\nV:1\n")

    def reset_power(self):
        for name, text in POWER_FILES.items():
            (self.power / name).write_text(text)

    def move_lid(self, closed):
        now = time.time()
        stamp = (int(now), int(now % 1 * 1e6))
        event = struct.pack("<qqHHi", *stamp, EV_SW, SW_LID, int(closed)) + struct.pack("<qqHHi", *stamp, 0, 0, 0)
        os.write(self.lid_fd, event)

    def set_supply(self, device, **values):
        for name, value in values.items():
            self.testbed.set_attribute(device, name, value)
        # The sender of the uevent looks the device up through its own preload, so it must see this testbed.
        os.environ["UMOCKDEV_DIR"] = str(self.root)
        self.testbed.uevent(device, "change")


class Machine:
    """One laptop, shown to two daemons."""

    def __init__(self):
        self.lid_closed, self.on_mains, self.percent = False, True, 80.0
        self.for_logind, self.for_upower = Kernel(self), Kernel(self)

    def _kernels(self):
        return (self.for_logind, self.for_upower)

    def set_lid(self, closed):
        if closed == self.lid_closed:
            return
        self.lid_closed = closed
        for kernel in self._kernels():
            kernel.move_lid(closed)

    def set_mains(self, on):
        self.on_mains = on
        for kernel in self._kernels():
            kernel.set_supply(kernel.mains, online=str(int(on)))
        self._set_battery()

    def set_percent(self, percent):
        self.percent = percent
        self._set_battery()

    def _set_battery(self):
        for kernel in self._kernels():
            kernel.set_supply(
                kernel.battery,
                status="Charging" if self.on_mains else "Discharging",
                capacity=str(int(self.percent)),
                energy_now=str(int(FULL_UWH * self.percent / 100)),
            )
