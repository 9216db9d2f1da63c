"""Drives a Redfish BMC through python3-sushy, and prints each call with what it answered.

Arguments: the service's URL, the file with its certificate, user, password.
"""
import sys
import time

import sushy

url, certificate, user, password = sys.argv[1:5]


def show(call, result):
    print(f"{call} -> {result}", flush=True)


def values(enums):
    return sorted(one.value for one in enums)


service = sushy.Sushy(url, username=user, password=password, verify=certificate)
show("redfish_version", service.redfish_version)
show("uuid", service.uuid)

system = service.get_system("/redfish/v1/Systems/1")
show("power_state", system.power_state.value)
show("identity", [system.uuid, system.serial_number, system.manufacturer])
show("reset types", values(system.get_allowed_reset_system_values()))
show("boot sources", values(system.get_allowed_system_boot_source_values()))


def boot():
    system.refresh(force=True)
    return [system.boot.enabled.value, system.boot.target.value, system.boot.mode.value]


show("boot", boot())
for source in (sushy.BootSource.HDD, sushy.BootSource.UEFI_HTTP, sushy.BootSource.PXE):
    system.set_system_boot_options(target=source, enabled=sushy.BootSourceOverrideEnabled.ONCE)
    show(f"set_system_boot_options {source.value}", boot())


def reach(state):
    for _ in range(100):
        system.refresh(force=True)
        if system.power_state == state:
            return True
        time.sleep(0.05)
    return False


system.reset_system(sushy.ResetType.ON)
show("reset_system On reached", reach(sushy.PowerState.ON))
show("boot afterwards", boot())
system.reset_system(sushy.ResetType.ON)
show("reset_system On again", system.power_state.value)
show("processors", [[one.model, one.total_cores] for one in system.processors.get_members()])
drives = [drive for one in system.storage.get_members() for drive in one.drives]
show("drives", [[one.serial_number, one.capacity_bytes] for one in drives])
show("chassis", [one.serial_number for one in service.get_chassis_collection().get_members()])
show("bmcs", [one.firmware_version for one in service.get_manager_collection().get_members()])
system.reset_system(sushy.ResetType.FORCE_OFF)
show("reset_system ForceOff reached", reach(sushy.PowerState.OFF))

try:
    system.set_system_boot_options(target=sushy.BootSource.BIOS_SETUP)
    show("set_system_boot_options BiosSetup", "accepted")
except sushy.exceptions.SushyError as error:
    show("set_system_boot_options BiosSetup", type(error).__name__)

try:
    sushy.Sushy(url, username=user, password="another", verify=certificate).get_system(
        "/redfish/v1/Systems/1"
    )
    show("wrong password", "accepted")
except sushy.exceptions.SushyError as error:
    show("wrong password", type(error).__name__)
