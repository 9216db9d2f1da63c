/** What a machine says of itself: its firmware, its tools, its network, its kernel files. */
import { kernelArchitecture } from '../../../agent/src/kernel-file.ts';
import { DecodeError } from '../../../packages/bytes/src/index.ts';
import { bootEntryWrites, removableLoader } from '../../../packages/disk-image/src/boot-entry.ts';
import { ImageError } from '../../../packages/disk-image/src/failure.ts';
import { parsedJson } from '../../../packages/platform/src/json.ts';
import { parseAtaIdentity } from '../../../packages/runner/src/linux/ata-identity.ts';
import {
  parseMaxSectors,
  parseReadCapacity,
  parseRealMaxSectors,
} from '../../../packages/runner/src/linux/capacity.ts';
import { parseHealth } from '../../../packages/runner/src/linux/health.ts';
import { identityText } from '../../../packages/runner/src/linux/identity.fixture.ts';
import {
  parseCacheFeature,
  readNvmeAskedFacts,
  readNvmeFacts,
} from '../../../packages/runner/src/linux/nvme.ts';
import { parseNvmeSanitize } from '../../../packages/runner/src/linux/nvme-sanitize.ts';
import {
  isCommandSupported,
  parseAtaSanitize,
  parseSanitizeSense,
} from '../../../packages/runner/src/linux/self-erase.ts';
import { memoryModulesIn } from '../../../packages/runner/src/linux/smbios.ts';
import { cleanText, worldWideName } from '../../../packages/runner/src/linux/sys-block.ts';
import { parseCachingPage } from '../../../packages/runner/src/linux/write-cache.ts';
import { decodeCapture, neighborsIn } from '../../../packages/runner/src/lldp/capture.ts';
import { decodeLldp } from '../../../packages/runner/src/lldp/frame.ts';
import {
  captureOf,
  frameOf,
  lldpdCapture,
  mandatory,
} from '../../../packages/runner/src/lldp/lldp.fixture.ts';
import { documents, type Target, textOf, texts } from '../target.ts';

/** A table of SMBIOS: a BIOS, two memory modules, the end. */
function smbiosTable(): Uint8Array {
  const strings = Buffer.from('DIMM_A1\0BANK 0\0Maker\0 S123 \0PN-8\0\0');
  const device = (size: number, extendedMiB = 0): Buffer => {
    const formatted = Buffer.alloc(0x54);
    formatted.set([17, formatted.length, 1, 0]);
    formatted.writeUInt16LE(size, 0x0c);
    formatted.set([1, 2], 0x10);
    formatted.set([3, 4, 0, 5], 0x17);
    formatted.writeUInt32LE(extendedMiB, 0x1c);
    return Buffer.concat([formatted, strings]);
  };
  const bios = Buffer.from([0, 4, 0, 0, ...Buffer.from('vendor\0\0')]);
  const end = Buffer.from([127, 4, 3, 0, 0, 0]);
  const whole = Buffer.concat([bios, device(8_192), device(0x7fff, 65_536), device(0x8200), end]);
  return Uint8Array.from(whole);
}

/** The head of a kernel with an EFI stub. */
function kernelHead(machine: number): Uint8Array {
  const head = Buffer.alloc(0x220);
  head.write('MZ', 0, 'latin1');
  head.writeUInt32LE(0x80, 0x3c);
  head.write('PE\0\0', 0x80, 'latin1');
  head.writeUInt16LE(machine, 0x84);
  head.write('HdrS', 0x202, 'latin1');
  return Uint8Array.from(head);
}

/** What tools print, each by all readers of such text. */
const toolReaders: readonly ((text: string) => unknown)[] = [
  ...[parseAtaIdentity, parseMaxSectors, parseRealMaxSectors, parseReadCapacity],
  ...[parseHealth, parseCachingPage, parseCacheFeature, isCommandSupported],
  ...[parseAtaSanitize, parseSanitizeSense, cleanText, worldWideName],
  (text) => parseNvmeSanitize(parsedJson(text)),
];

const efiPartition = {
  ...{ number: 1, type: 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b', name: 'EFI' },
  ...{ id: '8f14e45f-ceea-467a-9c2b-3d0e55aa0f01', offsetBytes: 1_048_576, sizeBytes: 1_048_576 },
};

/** Variables of the firmware: the order, then each entry; a line of bytes for each. */
function efiVariables(input: Uint8Array): unknown {
  const half = Math.min(input.length, input[0] ?? 0);
  const variables = new Map([
    ['BootOrder', input.subarray(1, 1 + half)],
    ['Boot0000', input.subarray(1 + half)],
  ]);
  const loader = removableLoader.amd64;
  const entry = { description: 'Rackwright', partition: efiPartition, blockBytes: 512, loader };
  return (['first', 'afterNetwork'] as const).map((position) => {
    return bootEntryWrites(variables, entry, position);
  });
}

/** Answers of nvme-cli, one JSON text a line, to one question after another. */
async function nvmeFacts(input: Uint8Array): Promise<unknown> {
  const lines = textOf(input).split('\n');
  let asked = 0;
  const run = async () => {
    asked += 1;
    return { kind: 'exited', code: 0, stdout: lines[asked - 1] ?? '', stderr: '' } as const;
  };
  const facts = await readNvmeFacts({ run }, 'nvme0', ['nvme0n1', 'nvme0n2'], [1]);
  asked = 0;
  return [facts, await readNvmeAskedFacts({ run }, 'nvme0')];
}

export const targets: readonly Target[] = [
  {
    name: 'machine.smbios',
    form: 'bytes',
    seeds: [smbiosTable()],
    parse: memoryModulesIn,
    refusals: [],
    // Five texts of each structure, of which the smallest has four bytes.
    bounds: { resultBytesPerByte: 128 },
  },
  {
    name: 'machine.lldp-frame',
    form: 'bytes',
    seeds: [frameOf(mandatory), ...decodeCapture(lldpdCapture).map(({ bytes }) => bytes)],
    parse: decodeLldp,
    refusals: [DecodeError],
  },
  {
    name: 'machine.lldp-capture',
    form: 'bytes',
    seeds: [
      lldpdCapture,
      captureOf([frameOf(mandatory)], 'big'),
      captureOf([frameOf(mandatory), frameOf(mandatory)], 'little'),
    ],
    parse: (input) => [neighborsIn(input), decodeCapture(input)],
    refusals: [DecodeError],
    // A capture is read up to 128 KiB.
    bounds: { inputBytesMax: 130 * 1024 },
  },
  {
    name: 'machine.kernel-file',
    form: 'bytes',
    seeds: [kernelHead(0x8664), kernelHead(0xaa64), kernelHead(0x1c0)],
    parse: kernelArchitecture,
    refusals: [],
  },
  {
    name: 'machine.efi-variables',
    form: 'bytes',
    seeds: [
      Uint8Array.from([4, 0, 0, 1, 0, 1, 0, 0, 0, 4, 0, ...Buffer.from('Rackwright\0', 'utf16le')]),
    ],
    parse: efiVariables,
    refusals: [ImageError],
  },
  {
    name: 'machine.tool-output',
    form: 'text',
    seeds: texts(
      identityText({ 0: 0x40, 59: 0x7000, 128: 0x21, 206: 0xffff }),
      ' max sectors   = 131072/131072, HPA is disabled\nReal max sectors: 131072\n',
      'Read Capacity results:\n   Last LBA=131071 (0x1ffff), Number of logical blocks=131072\n' +
        '   Logical block length=512 bytes\n',
      'WCE           1  [cha: y, def:  1]',
      'get-feature:0x06 (Volatile Write Cache), Current value:0x00000001',
      '    State:    SD2 Sanitize operation In Process\n    Progress: 0x8000 (50%)\n',
      'Progress indication: 12.50% done',
      'sanitize command failed',
      JSON.stringify({ '/dev/nvme0': { sstat: 2, sprog: 32_768 } }),
      JSON.stringify({ nvme0: { sprog: 1, sstat: { status: '(2) Sanitize in Progress.' } } }),
      `noise\n${JSON.stringify({
        smart_status: { passed: true },
        power_on_time: { hours: 9 },
        ata_smart_attributes: { table: [{ id: 5, raw: { value: 3 } }] },
        nvme_smart_health_information_log: { media_errors: 1, percentage_used: 130 },
      })}\n`,
    ),
    parse: (input) => toolReaders.map((read) => read(textOf(input))),
    refusals: [],
    tokens: ['State:', 'SD0', 'SD3', '"sstat":', 'Completed Without Error', '(50%)', 'supported'],
  },
  {
    name: 'machine.smartctl',
    form: 'json',
    seeds: documents(
      {
        smart_status: { passed: false },
        power_on_time: { hours: 9 },
        temperature: { current: -2 },
        scsi_grown_defect_list: 7,
        ata_smart_attributes: {
          table: [
            { id: 5, raw: { value: 3 } },
            { id: 197, raw: {} },
          ],
        },
      },
      { nvme_smart_health_information_log: { media_errors: 1, percentage_used: 130 } },
    ),
    parse: (input) => parseHealth(textOf(input)),
    refusals: [],
    tokens: ['table', 'raw', 'value', 'id', 'passed'],
  },
  {
    name: 'machine.nvme',
    form: 'json',
    seeds: texts(
      [
        { unvmcap: 0, oacs: 10, fna: 4, sn: 'S' },
        { dlfeat: 1 },
        { dlfeat: 1 },
        { nsid_list: [{ nsid: 1 }, { nsid: 2 }, 3] },
      ]
        .map((answer) => JSON.stringify(answer))
        .join('\n'),
    ),
    parse: nvmeFacts,
    refusals: [],
    tokens: ['oacs', 'fna', 'dlfeat', 'nsid_list', 'nsid', 'unvmcap'],
  },
];
