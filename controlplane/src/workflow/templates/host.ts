/** The data of a host that templates may use, from its record and its inventory. Pure. */

import { meaningfulSerial } from '@rackwright/erasure';
import type { Host, Inventory, NetworkInterface, StorageDevice } from '@rackwright/messages';
import type { TemplateDisk, TemplateHost, TemplateInterface } from '@rackwright/template';
import { idOf } from '../../records/index.ts';

/** Without an inventory, or without a useful value from the firmware, a field is unknown. */
export function templateHostOf(host: Host, inventory: Inventory | undefined): TemplateHost {
  const { spec } = host;
  const memory = inventory?.memoryBytes ?? 0n;
  return {
    name: host.name,
    id: idOf(host.name),
    uid: host.uid,
    rack: idOf(spec?.rack),
    labels: { ...host.labels },
    bmc: { address: given(spec?.bmc?.address) },
    bootMacs: [...(spec?.bootMacs ?? [])],
    ...makeOf(host, inventory),
    memoryBytes: memory === 0n ? undefined : memory,
    disks: inventory?.devices.map(diskOf) ?? [],
    interfaces: inventory?.interfaces.map(interfaceOf) ?? [],
  };
}

/** The firmware's value takes precedence over the BMC's. */
function makeOf({ status }: Host, inventory: Inventory | undefined) {
  const system = inventory?.system;
  const outOfBand = status?.bmcIdentity;
  return {
    serial: meant(system?.serial) ?? meant(outOfBand?.serial),
    manufacturer: meant(system?.manufacturer) ?? meant(outOfBand?.manufacturer),
    product: meant(system?.product) ?? meant(outOfBand?.product),
  };
}

function diskOf({ serial, wwn, model, sizeBytes, device }: StorageDevice): TemplateDisk {
  return {
    serial: given(serial),
    wwn: given(wwn),
    model: given(model),
    sizeBytes: sizeBytes === 0n ? undefined : sizeBytes,
    kernelName: device,
  };
}

function interfaceOf({ name, mac, speedMbps, linkUp }: NetworkInterface): TemplateInterface {
  return { name, mac, speedMbps: speedMbps === 0 ? undefined : BigInt(speedMbps), linkUp };
}

function given(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : text;
}

/** Undefined also for placeholder texts of board vendors. */
function meant(text: string | undefined): string | undefined {
  return meaningfulSerial(text) === undefined ? undefined : text?.trim();
}
