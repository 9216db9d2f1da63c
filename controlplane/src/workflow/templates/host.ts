/** What templates may use of a host, from its record and its inventory. Pure. */

import { meaningfulSerial } from '@rackwright/erasure';
import type { Host, Inventory, NetworkInterface, StorageDevice } from '@rackwright/messages';
import type { TemplateDisk, TemplateHost, TemplateInterface } from '@rackwright/template';
import { idOf } from '../../records/index.ts';

/** Without an inventory, or where firmware says nothing of use, a field is not known. */
export function templateHostOf(host: Host, inventory: Inventory | undefined): TemplateHost {
  const { spec } = host;
  const memory = inventory?.memoryBytes ?? 0n;
  return {
    name: host.name,
    id: idOf(host.name),
    uid: host.uid,
    rack: idOf(spec?.rack),
    labels: { ...host.labels },
    bmc: { address: said(spec?.bmc?.address) },
    bootMacs: [...(spec?.bootMacs ?? [])],
    ...makeOf(host, inventory),
    memoryBytes: memory === 0n ? undefined : memory,
    disks: inventory?.devices.map(diskOf) ?? [],
    interfaces: inventory?.interfaces.map(interfaceOf) ?? [],
  };
}

/** What firmware says goes before what the BMC says. */
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
    serial: said(serial),
    wwn: said(wwn),
    model: said(model),
    sizeBytes: sizeBytes === 0n ? undefined : sizeBytes,
    kernelName: device,
  };
}

function interfaceOf({ name, mac, speedMbps, linkUp }: NetworkInterface): TemplateInterface {
  return { name, mac, speedMbps: speedMbps === 0 ? undefined : BigInt(speedMbps), linkUp };
}

function said(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : text;
}

/** Undefined also for words that boards leave the factory with. */
function meant(text: string | undefined): string | undefined {
  return meaningfulSerial(text) === undefined ? undefined : text?.trim();
}
