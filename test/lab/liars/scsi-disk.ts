/**
 * A SCSI disk made of software: what a command answers (SPC-4, SBC-3). Who carries commands here
 * does not matter to it.
 *
 * 1. A disk has no more commands than stand here; all others are refused with the sense of an
 *    unknown operation code.
 * 2. What it says of itself may be changed while it runs: that is what it is for.
 */
import { type BlockStore, MediumError, type MediumFault } from './block-store.ts';

export const SECTOR_BYTES = 512;
const STATUS = { good: 0, checkCondition: 2 } as const;
const BLOCKS_PER_TRANSFER_MAX = 65_535;

const OP = {
  testUnitReady: 0x00,
  requestSense: 0x03,
  inquiry: 0x12,
  modeSense6: 0x1a,
  startStopUnit: 0x1b,
  readCapacity10: 0x25,
  read10: 0x28,
  write10: 0x2a,
  synchronizeCache10: 0x35,
  sanitize: 0x48,
  modeSense10: 0x5a,
  read16: 0x88,
  write16: 0x8a,
  synchronizeCache16: 0x91,
  serviceActionIn16: 0x9e,
  reportLuns: 0xa0,
  maintenanceIn: 0xa3,
} as const;
const SERVICE = { readCapacity16: 0x10, reportSupportedOperations: 0x0c } as const;
/** Service actions of SANITIZE. */
const SANITIZE = {
  overwrite: 0x01,
  blockErase: 0x02,
  cryptoErase: 0x03,
  exitFailure: 0x1f,
} as const;

/** Sense key, additional sense code and its qualifier. */
type Sense = readonly [key: number, code: number, qualifier: number];
const SENSE = {
  none: [0, 0, 0],
  sanitizing: [0x02, 0x04, 0x1b],
  unreadable: [0x03, 0x11, 0x00],
  unwritable: [0x03, 0x0c, 0x00],
  unknownOperation: [0x05, 0x20, 0x00],
  outOfRange: [0x05, 0x21, 0x00],
  invalidField: [0x05, 0x24, 0x00],
  writeProtected: [0x07, 0x27, 0x00],
} as const satisfies Record<string, Sense>;
const SENSE_OF_FAULT: Readonly<Record<MediumFault, Sense>> = {
  unreadable: SENSE.unreadable,
  unwritable: SENSE.unwritable,
  writeProtected: SENSE.writeProtected,
};

/** What SANITIZE does: what it promises, or nothing. */
export type SanitizeConduct = 'erases' | 'onlySaysSo';

/** What the disk says of itself and how it behaves; may be changed at any time. */
export interface ScsiDiskFacts {
  readonly serial: string;
  /** READ CAPACITY(10) answers so much; READ CAPACITY(16) what the medium has. Absent: the same. */
  admittedBytes?: number;
  /** Absent: it has no such command. */
  sanitize?: SanitizeConduct;
  /** How long a sanitize takes, milliseconds. */
  sanitizeMs?: number;
}

/** The answer to a command. */
export interface ScsiAnswer {
  readonly status: number;
  readonly bytes: Buffer;
  /** Fixed format; empty with a good status. */
  readonly sense: Buffer;
}

/** A SCSI disk. */
export interface ScsiDisk {
  /** Bytes that the command will send to the disk. */
  dataOutBytes(cdb: Buffer): number;
  execute(cdb: Buffer, dataOut: Buffer): ScsiAnswer;
}

class CheckCondition extends Error {
  readonly sense: Sense;

  constructor(sense: Sense) {
    super(`check condition ${sense.join('/')}`);
    this.sense = sense;
  }
}

function checkWhileSanitizing(operation: number): void {
  if (operation === OP.inquiry || operation === OP.requestSense) return;
  throw new CheckCondition(SENSE.sanitizing);
}

function serviceActionIn16(cdb: Buffer, store: BlockStore): Buffer {
  const action = cdb.readUInt8(1) & 0x1f;
  if (action !== SERVICE.readCapacity16) throw new CheckCondition(SENSE.invalidField);
  return capacity16(store).subarray(0, cdb.readUInt32BE(10));
}

/** The disk that `facts` describe, on a medium; it calls `tell` each time that it lies. */
export function scsiDisk(
  store: BlockStore,
  facts: ScsiDiskFacts,
  nowMs: () => number,
  tell: () => void = () => undefined,
): ScsiDisk {
  const { sanitizeMs = 0 } = facts;
  let sanitizingUntilMs = 0;
  const isSanitizing = (): boolean => nowMs() < sanitizingUntilMs;
  const perform = (cdb: Buffer, dataOut: Buffer): Buffer => {
    const operation = cdb.readUInt8(0);
    if (isSanitizing()) checkWhileSanitizing(operation);
    switch (operation) {
      case OP.testUnitReady:
      case OP.startStopUnit:
        return Buffer.alloc(0);
      case OP.requestSense:
        return senseBytes(isSanitizing() ? SENSE.sanitizing : SENSE.none);
      case OP.inquiry:
        return inquiry(cdb, facts).subarray(0, cdb.readUInt16BE(3));
      case OP.modeSense6:
        return modeSense6(cdb).subarray(0, cdb.readUInt8(4));
      case OP.modeSense10:
        return modeSense10(cdb).subarray(0, cdb.readUInt16BE(7));
      case OP.readCapacity10:
        return capacity10(store, facts, tell);
      case OP.serviceActionIn16:
        return serviceActionIn16(cdb, store);
      case OP.reportLuns:
        return reportLuns().subarray(0, cdb.readUInt32BE(6));
      case OP.maintenanceIn:
        return supportedOperations(cdb, facts).subarray(0, cdb.readUInt32BE(6));
      case OP.read10:
      case OP.read16: {
        const { offset, length } = placeOf(cdb, store);
        return store.read(offset, length);
      }
      case OP.write10:
      case OP.write16: {
        const { offset } = placeOf(cdb, store);
        store.change({ kind: 'write', offset, bytes: dataOut });
        return Buffer.alloc(0);
      }
      case OP.synchronizeCache10:
      case OP.synchronizeCache16:
        store.flush();
        return Buffer.alloc(0);
      case OP.sanitize:
        sanitize({ cdb, store, facts, tell });
        sanitizingUntilMs = nowMs() + sanitizeMs;
        return Buffer.alloc(0);
      default:
        throw new CheckCondition(SENSE.unknownOperation);
    }
  };
  return {
    dataOutBytes,
    execute: (cdb, dataOut) => {
      try {
        return { status: STATUS.good, bytes: perform(cdb, dataOut), sense: Buffer.alloc(0) };
      } catch (error) {
        const sense = senseOf(error);
        return { status: STATUS.checkCondition, bytes: Buffer.alloc(0), sense: senseBytes(sense) };
      }
    },
  };
}

function senseOf(error: unknown): Sense {
  if (error instanceof CheckCondition) return error.sense;
  if (error instanceof MediumError) return SENSE_OF_FAULT[error.fault];
  throw error;
}

/** Fixed format, current. */
function senseBytes([key, code, qualifier]: Sense): Buffer {
  const bytes = Buffer.alloc(18);
  bytes.writeUInt8(0x70, 0);
  bytes.writeUInt8(key, 2);
  bytes.writeUInt8(10, 7);
  bytes.writeUInt8(code, 12);
  bytes.writeUInt8(qualifier, 13);
  return bytes;
}

function dataOutBytes(cdb: Buffer): number {
  switch (cdb.readUInt8(0)) {
    case OP.write10:
      return cdb.readUInt16BE(7) * SECTOR_BYTES;
    case OP.write16:
      return cdb.readUInt32BE(10) * SECTOR_BYTES;
    case OP.sanitize:
      return cdb.readUInt16BE(7);
    default:
      return 0;
  }
}

function placeOf(cdb: Buffer, store: BlockStore): { offset: number; length: number } {
  const isLong = cdb.readUInt8(0) === OP.read16 || cdb.readUInt8(0) === OP.write16;
  const block = isLong ? Number(cdb.readBigUInt64BE(2)) : cdb.readUInt32BE(2);
  const blocks = isLong ? cdb.readUInt32BE(10) : cdb.readUInt16BE(7);
  if (blocks > BLOCKS_PER_TRANSFER_MAX) throw new CheckCondition(SENSE.invalidField);
  const [offset, length] = [block * SECTOR_BYTES, blocks * SECTOR_BYTES];
  if (offset + length > store.sizeBytes) throw new CheckCondition(SENSE.outOfRange);
  return { offset, length };
}

function inquiry(cdb: Buffer, { serial }: ScsiDiskFacts): Buffer {
  const page = cdb.readUInt8(2);
  if ((cdb.readUInt8(1) & 1) === 0) {
    if (page !== 0) throw new CheckCondition(SENSE.invalidField);
    const bytes = Buffer.alloc(36);
    // SPC-2, so that a host asks READ CAPACITY(10) first.
    bytes.writeUInt8(4, 2);
    bytes.writeUInt8(2, 3);
    bytes.writeUInt8(31, 4);
    bytes.writeUInt8(2, 7); // command queueing
    bytes.write('RACKWRGT'.padEnd(8) + 'LYING DISK'.padEnd(16) + '1.0 ', 8, 'latin1');
    return bytes;
  }
  switch (page) {
    case 0x00:
      return vitalPage(page, Buffer.from([0x00, 0x80, 0x83, 0xb1]));
    case 0x80:
      return vitalPage(page, Buffer.from(serial, 'latin1'));
    case 0x83:
      return vitalPage(page, designator(serial));
    case 0xb1: {
      const bytes = Buffer.alloc(60);
      bytes.writeUInt16BE(1, 0); // does not rotate
      return vitalPage(page, bytes);
    }
    default:
      throw new CheckCondition(SENSE.invalidField);
  }
}

function vitalPage(page: number, content: Buffer): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt8(page, 1);
  head.writeUInt16BE(content.length, 2);
  return Buffer.concat([head, content]);
}

/** T10 vendor id and serial number, of the logical unit, ASCII. */
function designator(serial: string): Buffer {
  const text = Buffer.from(`RACKWRGT${serial}`, 'latin1');
  return Buffer.concat([Buffer.from([0x02, 0x01, 0, text.length]), text]);
}

/** The caching page, with its write cache off. */
function modePages(cdb: Buffer): Buffer {
  const page = cdb.readUInt8(2) & 0x3f;
  const caching = Buffer.alloc(20);
  caching.writeUInt8(0x08, 0);
  caching.writeUInt8(18, 1);
  if (page === 0x08 || page === 0x3f) return caching;
  throw new CheckCondition(SENSE.invalidField);
}

function modeSense6(cdb: Buffer): Buffer {
  const pages = modePages(cdb);
  return Buffer.concat([Buffer.from([3 + pages.length, 0, 0, 0]), pages]);
}

function modeSense10(cdb: Buffer): Buffer {
  const pages = modePages(cdb);
  const head = Buffer.alloc(8);
  head.writeUInt16BE(6 + pages.length, 0);
  return Buffer.concat([head, pages]);
}

function capacity10(store: BlockStore, { admittedBytes }: ScsiDiskFacts, tell: () => void): Buffer {
  if (admittedBytes !== undefined) tell();
  const blocks = (admittedBytes ?? store.sizeBytes) / SECTOR_BYTES;
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32BE(Math.min(blocks - 1, 0xffff_ffff), 0);
  bytes.writeUInt32BE(SECTOR_BYTES, 4);
  return bytes;
}

function capacity16(store: BlockStore): Buffer {
  const bytes = Buffer.alloc(32);
  bytes.writeBigUInt64BE(BigInt(store.sizeBytes / SECTOR_BYTES - 1), 0);
  bytes.writeUInt32BE(SECTOR_BYTES, 8);
  return bytes;
}

function reportLuns(): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeUInt32BE(8, 0); // one, whose number is 0
  return bytes;
}

/** REPORT SUPPORTED OPERATION CODES for one command, with or without its service action. */
function supportedOperations(cdb: Buffer, facts: ScsiDiskFacts): Buffer {
  if ((cdb.readUInt8(1) & 0x1f) !== SERVICE.reportSupportedOperations) {
    throw new CheckCondition(SENSE.unknownOperation);
  }
  const options = cdb.readUInt8(2) & 7;
  if (options === 0) throw new CheckCondition(SENSE.invalidField);
  const operation = cdb.readUInt8(3);
  const action = cdb.readUInt16BE(4);
  const known = Object.values(OP).some((one) => one === operation);
  const isSanitize = operation === OP.sanitize;
  const hasAction = Object.values(SANITIZE).some((one) => one === action);
  const isSupported = isSanitize ? facts.sanitize !== undefined && hasAction : known;
  const bytes = Buffer.alloc(4 + (isSupported ? 16 : 0));
  bytes.writeUInt8(isSupported ? 3 : 1, 1);
  bytes.writeUInt16BE(isSupported ? 16 : 0, 2);
  if (isSupported) bytes.writeUInt8(operation, 4);
  return bytes;
}

function sanitize(asked: {
  readonly cdb: Buffer;
  readonly store: BlockStore;
  readonly facts: ScsiDiskFacts;
  readonly tell: () => void;
}): void {
  const { cdb, store, facts, tell } = asked;
  if (facts.sanitize === undefined) throw new CheckCondition(SENSE.unknownOperation);
  const action = cdb.readUInt8(1) & 0x1f;
  if (action === SANITIZE.exitFailure) return;
  if (!Object.values(SANITIZE).some((one) => one === action)) {
    throw new CheckCondition(SENSE.invalidField);
  }
  if (facts.sanitize === 'onlySaysSo') {
    tell();
    return;
  }
  store.change({ kind: 'zero', offset: 0, length: store.sizeBytes });
}
