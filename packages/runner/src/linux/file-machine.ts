/**
 * The identity and hardware of a machine made of software, from a JSON file:
 *
 *     { "manufacturer": "…", "product": "…", "serial": "…", "uuid": "<32 hex digits, raw order>",
 *       "bmcGuid": "", "chassisSerial": "", "boardSerial": "", "assetTag": "", "cpuModel": "…",
 *       "cpuCores": 2, "memoryBytes": 1073741824,
 *       "interfaces": [{ "name": "eth0", "mac": "52:54:00:00:00:01" }],
 *       "bmcAddress": "127.0.0.1", "bootId": "…", "startedAtMs": 1700000000000 }
 *
 * A power cycle of such a machine is a new `bootId` (and `startedAtMs`) in the file.
 */
import { readFile } from 'node:fs/promises';
import { create } from '@bufbuild/protobuf';
import { SystemIdentitySchema } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import {
  asObject,
  listAt,
  numberAt,
  parseObject,
  type ToolJsonObject,
  textAt,
} from '../machine/json-fields.ts';
import type { Machine } from '../machine/machine.ts';
import { softwareBurnIn } from './burn-in.ts';
import { ownArchitecture } from './own-architecture.ts';

const keys = [
  'manufacturer',
  'product',
  'serial',
  'uuid',
  'bmcGuid',
  'chassisSerial',
  'boardSerial',
  'assetTag',
  'cpuModel',
  'cpuCores',
  'memoryBytes',
  'interfaces',
  'bmcAddress',
  'bootId',
  'startedAtMs',
];

/** The file is read anew by every call. */
export function fileMachine(path: string, clock: Clock): Machine {
  const read = async (): Promise<ToolJsonObject> => {
    return parseObject(await readFile(path, 'utf8'), path, keys);
  };
  return {
    architecture: ownArchitecture,
    identity: async () => {
      const object = await read();
      return create(SystemIdentitySchema, {
        manufacturer: textAt(object, 'manufacturer', ''),
        product: textAt(object, 'product', ''),
        serial: textAt(object, 'serial', ''),
        uuid: bytesAt(object, 'uuid'),
        bmcGuid: bytesAt(object, 'bmcGuid'),
        chassisSerial: textAt(object, 'chassisSerial', ''),
        boardSerial: textAt(object, 'boardSerial', ''),
        assetTag: textAt(object, 'assetTag', ''),
      });
    },
    hardware: async () => {
      const object = await read();
      const cores = numberAt(object, 'cpuCores', 1);
      return {
        cpus: [{ model: textAt(object, 'cpuModel', 'software'), cores, threads: cores }],
        memoryBytes: BigInt(numberAt(object, 'memoryBytes', 0)),
        interfaces: listAt(object, 'interfaces').map((each) => {
          const card = asObject(each, `${path}, interfaces`, ['name', 'mac']);
          return { name: textAt(card, 'name', ''), mac: textAt(card, 'mac', ''), linkUp: true };
        }),
      };
    },
    bmcAddress: async () => textAt(await read(), 'bmcAddress', ''),
    burnIn: softwareBurnIn,
    bootId: async () => textAt(await read(), 'bootId', 'software-machine'),
    uptimeMs: async () => {
      const startedAtMs = numberAt(await read(), 'startedAtMs', clock.nowMs());
      return Math.max(0, clock.nowMs() - startedAtMs);
    },
    toolVersions: async () => ({ node: process.versions.node, disks: 'file disks' }),
  };
}

function bytesAt(object: ToolJsonObject, key: string): Uint8Array {
  const text = textAt(object, key, '').replaceAll('-', '');
  if (!/^([0-9a-fA-F]{32})?$/.test(text)) throw new Error(`"${key}" must have 32 hex digits`);
  return new Uint8Array(Buffer.from(text, 'hex'));
}
