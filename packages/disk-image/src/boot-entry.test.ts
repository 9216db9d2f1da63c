import { expect, test } from 'vitest';
import { type BootEntry, bootEntryWrites } from './boot-entry.ts';

const entry: BootEntry = {
  description: 'Rackwright image',
  partition: {
    ...{ number: 1, type: '', id: 'fedcba98-7654-3210-8899-aabbccddeeff', name: 'esp' },
    ...{ offsetBytes: 1024 * 1024, sizeBytes: 1024 * 1024 },
  },
  blockBytes: 512,
  loader: '\\EFI\\BOOT\\BOOTX64.EFI',
};

const end = [0x7f, 0xff, 4, 0];
/** PciRoot(0)/Pci(0,0), as firmware begins most paths. */
const pci = [2, 1, 12, 0, 0xd0, 0x41, 3, 0x0a, 0, 0, 0, 0, 1, 1, 6, 0, 0, 0];
const mac = [3, 11, 37, 0, ...Array.from({ length: 33 }, () => 0)];

function option(description: string, path: readonly number[], lengthBytes = path.length) {
  const start = Buffer.alloc(6);
  start.writeUInt32LE(1, 0);
  start.writeUInt16LE(lengthBytes, 4);
  const text = Buffer.from(`${description}\0`, 'utf16le');
  return new Uint8Array(Buffer.concat([start, text, Buffer.from(path)]));
}

/** The order of the numbers after the runner has added its entry. */
function orderAfter(options: readonly Uint8Array[]): number[] {
  const order = Buffer.concat(options.map((_, at) => Uint8Array.of(at, 0)));
  const variables = new Map<string, Uint8Array>([['BootOrder', order]]);
  options.forEach((bytes, at) => variables.set(`Boot000${at}`, bytes));
  const { writes } = bootEntryWrites(variables, entry, 'afterNetwork');
  const content = writes.find(({ name }) => name === 'BootOrder')?.content ?? order;
  return Array.from({ length: content.length / 2 }, (_, at) => content[2 * at] ?? -1);
}

const disk = option('ubuntu', [
  ...pci,
  4,
  1,
  42,
  0,
  ...Array.from({ length: 38 }, () => 0),
  ...end,
]);
const network = option('UEFI PXEv4', [...pci, ...mac, 3, 12, 27, 0, ...Array(23).fill(0), ...end]);

test('entries that boot from the network stay before the image, and the rest behind it', () => {
  expect(orderAfter([disk, network])).toEqual([1, 2, 0]);
  expect(orderAfter([network, disk, network])).toEqual([0, 2, 3, 1]);
  expect(orderAfter([disk])).toEqual([1, 0]);
  expect(orderAfter([])).toEqual([0]);
});

test('an entry that is in its place behind the network is not written again', () => {
  const variables = new Map<string, Uint8Array>([
    ['BootOrder', Uint8Array.of(0, 0)],
    ['Boot0000', network],
  ]);
  const { name, writes } = bootEntryWrites(variables, entry, 'afterNetwork');
  expect(name).toBe('Boot0001');
  for (const each of writes) variables.set(each.name, each.content);
  expect(bootEntryWrites(variables, entry, 'afterNetwork').writes).toEqual([]);
  // The same host with a BMC that chooses: its image comes first.
  const first = bootEntryWrites(variables, entry, 'first').writes;
  expect(first).toEqual([{ name: 'BootOrder', content: Buffer.from([1, 0, 0, 0]) }]);
});

test.each([
  ['a BIOS network device', [5, 1, 9, 0, 6, 0, 0, 0, 0, ...end]],
  ['a bootstrap entry vector', [5, 1, 9, 0, 0x80, 0, 0, 0, 0, ...end]],
  ['a URI', [...pci, 3, 24, 4, 0, ...end]],
  ['IPv6', [3, 13, 4, 0, ...end]],
])('an entry with %s boots from the network', (_what, path) => {
  expect(orderAfter([option('x', path)])).toEqual([0, 1]);
});

test.each([
  ['a BIOS disk', option('x', [5, 1, 9, 0, 2, 0, 0, 0, 0, ...end])],
  ['no bytes', new Uint8Array()],
  [
    'a description without an end',
    new Uint8Array(Buffer.from('\x01\0\0\0\xff\xffabcdef', 'latin1')),
  ],
  ['a node of no length', option('x', [1, 1, 0, 0, ...mac, ...end])],
  ['a node beyond the end', option('x', [3, 11, 0xff, 0xff, ...end])],
  ['a network node behind the end', option('x', [...end, ...mac, ...end])],
  ['paths shorter than the network node', option('x', [...mac, ...end], 20)],
])('an entry with %s does not boot from the network', (_what, bytes) => {
  expect(orderAfter([bytes])).toEqual([1, 0]);
});
