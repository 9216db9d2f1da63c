/**
 * Guard 0, the right machine (DESIGN §5): is the host that runs our runner the one whose BMC we
 * switched on? Pure.
 *
 * Invariants:
 * G1 `proven` needs at least one witness that is equal and none that differs.
 * G2 Zeros, ones and filler words count as absent, never as equal: two boards that both say "To be
 *    filled by O.E.M." prove nothing.
 * G3 UUIDs are compared as raw bytes in three byte orders, because firmware, BMCs and tools
 *    disagree on the order of the first three fields, and some reverse all sixteen bytes.
 */

/** Serial numbers by the part they belong to, as SMBIOS or the FRU inventory name them. */
export interface SerialNumbers {
  readonly product?: string;
  readonly chassis?: string;
  readonly board?: string;
}

/** One side's identifiers of the machine. */
export interface MachineWitness {
  /** SMBIOS system UUID or BMC system GUID: 16 raw bytes. */
  readonly uuid?: Uint8Array;
  readonly serials: SerialNumbers;
  /** The BMC's own device GUID as this side sees it: in band by KCS, out of band by LAN. */
  readonly bmcDeviceGuid?: Uint8Array;
}

export type WitnessName = 'uuid' | 'productSerial' | 'chassisSerial' | 'boardSerial' | 'bmc';

export type IdentityVerdict =
  | { readonly kind: 'proven'; readonly witnesses: readonly WitnessName[] }
  | {
      readonly kind: 'mismatch';
      readonly witness: WitnessName;
      /** The machine's own report, as text. */
      readonly inBand: string;
      /** The BMC's report, as text. */
      readonly outOfBand: string;
    }
  | { readonly kind: 'unproven'; readonly reason: string };

const fillerWords = new Set([
  '',
  'to be filled by o.e.m.',
  'to be filled by oem',
  'default string',
  'not specified',
  'not available',
  'not applicable',
  'n/a',
  'na',
  'none',
  'null',
  'unknown',
  'empty',
  'oem',
  'o.e.m.',
  'system serial number',
  'chassis serial number',
  'base board serial number',
  'system product name',
  'serial number',
  'product serial',
  'invalid',
  'undefined',
]);

/** UUIDs that vendors leave in every board they ship; in any byte order. */
const fillers = [
  '00020003000400050006000700080009',
  '03000200040005000006000700080009',
  '12345678123412341234123456789abc',
  '0123456789abcdef0123456789abcdef',
];
/** In each byte order, because a reported filler may have any of them. */
const fillerUuids = new Set(
  fillers.flatMap((filler) => byteOrders(Buffer.from(filler, 'hex')).map(toHex)),
);

/** Compares the machine's own report with its BMC's report out of band. */
export function judgeIdentity(inBand: MachineWitness, outOfBand: MachineWitness): IdentityVerdict {
  const comparisons = [
    compareUuids('uuid', inBand.uuid, outOfBand.uuid),
    ...compareSerials(inBand.serials, outOfBand.serials),
    compareUuids('bmc', inBand.bmcDeviceGuid, outOfBand.bmcDeviceGuid),
  ];
  const witnesses: WitnessName[] = [];
  for (const comparison of comparisons) {
    if (comparison === undefined) continue;
    if (comparison.kind === 'mismatch') return comparison;
    witnesses.push(comparison.witness);
  }
  if (witnesses.length > 0) return { kind: 'proven', witnesses };
  return { kind: 'unproven', reason: unprovenReason(inBand, outOfBand) };
}

type Comparison =
  | { readonly kind: 'equal'; readonly witness: WitnessName }
  | (IdentityVerdict & { readonly kind: 'mismatch' })
  | undefined;

function compareUuids(
  witness: WitnessName,
  inBand: Uint8Array | undefined,
  outOfBand: Uint8Array | undefined,
): Comparison {
  const left = meaningfulUuid(inBand);
  const right = meaningfulUuid(outOfBand);
  if (left === undefined || right === undefined) return undefined;
  const wanted = toHex(right);
  if (byteOrders(left).some((order) => toHex(order) === wanted)) return { kind: 'equal', witness };
  return { kind: 'mismatch', witness, inBand: toHex(left), outOfBand: wanted };
}

/** A serial is equal when the other side says it of any part; it differs only from its own part. */
function compareSerials(inBand: SerialNumbers, outOfBand: SerialNumbers): Comparison[] {
  const everyInBand = [inBand.product, inBand.chassis, inBand.board].map(meaningfulSerial);
  const compare = (
    witness: WitnessName,
    left: string | undefined,
    right: string | undefined,
  ): Comparison => {
    const wanted = meaningfulSerial(right);
    if (wanted === undefined) return undefined;
    if (everyInBand.includes(wanted)) return { kind: 'equal', witness };
    const own = meaningfulSerial(left);
    if (own === undefined) return undefined;
    return { kind: 'mismatch', witness, inBand: own, outOfBand: wanted };
  };
  return [
    compare('productSerial', inBand.product, outOfBand.product),
    compare('chassisSerial', inBand.chassis, outOfBand.chassis),
    compare('boardSerial', inBand.board, outOfBand.board),
  ];
}

/** The bytes of a UUID unless they are missing, uniform or a known filler. */
export function meaningfulUuid(uuid: Uint8Array | undefined): Uint8Array | undefined {
  if (uuid === undefined || uuid.length !== 16) return undefined;
  if (uuid.every((byte) => byte === uuid[0])) return undefined;
  return fillerUuids.has(toHex(uuid)) ? undefined : uuid;
}

/** A serial trimmed and in upper case, unless it is missing, a filler word or one character. */
export function meaningfulSerial(serial: string | undefined): string | undefined {
  const text = (serial ?? '').replaceAll('\0', '').trim();
  if (fillerWords.has(text.toLowerCase())) return undefined;
  const uniform = text === text[0]?.repeat(text.length);
  const counting = '0123456789'.startsWith(text) || '1234567890'.startsWith(text);
  return uniform || counting ? undefined : text.toUpperCase();
}

/** Unchanged; with the first three fields reversed (SMBIOS 2.6 §7.2.1); with all bytes reversed. */
function byteOrders(uuid: Uint8Array): Uint8Array[] {
  const at = (positions: readonly number[]) => Uint8Array.from(positions, (i) => uuid[i] ?? 0);
  return [
    uuid,
    at([3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]),
    at([15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
  ];
}

/** All that another side may write this UUID as (G3), in hex; none, when it says nothing (G2). */
export function uuidsAlike(uuid: Uint8Array | undefined): string[] {
  const meant = meaningfulUuid(uuid);
  return meant === undefined ? [] : [...new Set(byteOrders(meant).map(toHex))];
}

function toHex({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('hex');
}

function unprovenReason(inBand: MachineWitness, outOfBand: MachineWitness): string {
  const names = (side: MachineWitness) => {
    const present: string[] = [];
    if (meaningfulUuid(side.uuid) !== undefined) present.push('a UUID');
    if (meaningfulSerial(side.serials.product) !== undefined) present.push('a product serial');
    if (meaningfulSerial(side.serials.chassis) !== undefined) present.push('a chassis serial');
    if (meaningfulSerial(side.serials.board) !== undefined) present.push('a board serial');
    if (meaningfulUuid(side.bmcDeviceGuid) !== undefined) present.push('a BMC GUID');
    return present.length === 0 ? 'nothing usable' : present.join(', ');
  };
  const sides = `the machine says ${names(inBand)}, its BMC says ${names(outOfBand)}`;
  return `no witness that both sides know: ${sides}`;
}
