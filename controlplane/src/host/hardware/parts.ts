/**
 * The parts that a host's BMC lists besides its drives, as facts. They are shown, and decide
 * nothing.
 */
import { create } from '@bufbuild/protobuf';
import {
  type agent,
  type BmcParts,
  BmcPartsSchema,
  FirmwareVersionSchema,
  MemoryModuleSchema,
  NetworkInterfaceSchema,
} from '@rackwright/messages';
import type { Pass } from '../pass/pass.ts';
import { truncate } from '../pass/step-failure.ts';

/** The most entries of each stored list; facts are one bounded record. */
const partsMax = 64;
const textMax = 64;

/** As for drives: without an answer the earlier list is dropped. */
export function noteParts(pass: Pass, observations: agent.Observations | undefined): void {
  if (pass.record.operation?.operation?.kind.case !== 'inspect') return;
  const reported = observations?.bmcParts;
  if (reported === undefined && pass.snapshot.facts.bmcParts === undefined) return;
  const bmcParts = reported === undefined ? undefined : bounded(reported);
  pass.effects.push({ kind: 'facts', facts: { bmcParts } });
}

function bounded({ complete, memoryModules, interfaces, firmware }: BmcParts): BmcParts {
  const lists = [memoryModules, interfaces, firmware];
  return create(BmcPartsSchema, {
    complete: complete && lists.every(({ length }) => length <= partsMax),
    memoryModules: memoryModules.slice(0, partsMax).map((each) =>
      create(MemoryModuleSchema, {
        slot: truncate(each.slot, textMax),
        manufacturer: truncate(each.manufacturer, textMax),
        model: truncate(each.model, textMax),
        serial: truncate(each.serial, textMax),
        sizeBytes: each.sizeBytes,
      }),
    ),
    interfaces: interfaces.slice(0, partsMax).map(({ name, mac, speedMbps, linkUp }) =>
      create(NetworkInterfaceSchema, {
        name: truncate(name, textMax),
        mac: truncate(mac, textMax),
        speedMbps,
        linkUp,
      }),
    ),
    firmware: firmware.slice(0, partsMax).map(({ name, version }) =>
      create(FirmwareVersionSchema, {
        name: truncate(name, textMax),
        version: truncate(version, textMax),
      }),
    ),
  });
}
