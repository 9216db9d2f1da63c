/**
 * Lists of drives that BMCs report, for a comparison with what the runner sees; with an inspection
 * also lists of other parts (`part-lists.ts`).
 *
 * D1 Nothing depends on the answer: a BMC that gives no list is reported as such, and ends nothing.
 * D2 Only the list of the expected BMC counts: another one lists another machine's drives.
 * D3 Bounded in time. Within one boot a list is reused for a while, since each drive costs a
 *    request. A list of another boot is never reused: many BMCs list only what they saw when the
 *    machine was last on.
 */
import { create } from '@bufbuild/protobuf';
import type { BmcDrive, BmcDriver } from '@rackwright/bmc';
import {
  type agent,
  type BmcDriveList,
  BmcDriveListSchema,
  type BmcParts,
  type HostUid,
  type OperationId,
  StorageSignKind,
  StorageSignSchema,
  StorageSource,
} from '@rackwright/messages';
import { type Clock, errorText, type Log } from '@rackwright/platform';
import { boundText } from '@rackwright/results';
import { AttemptEnd, type OperationContext } from '../session/index.ts';
import { type BmcDrivers, openBmc } from './bmc-access.ts';
import { openExpectedBmc } from './expected-bmc.ts';
import { partsOf, partsReadingMsMax } from './part-lists.ts';
import { timeLimit } from './time-limit.ts';

/** Longest reading of one list; an operation whose time is short gives it half of that. */
const readingMsMax = 120_000;
/** How long a list counts within one boot. */
const freshMs = 300_000;
const listsMax = 256;
const reasonBytesMax = 512;

type Context = Pick<OperationContext, 'credential' | 'remainingMs' | 'signal'>;

/** A BMC's lists beside an inspection. */
export interface BmcLists {
  readonly bmcDrives: BmcDriveList;
  readonly bmcParts?: BmcParts;
}

interface CachedDriveLists {
  readonly bootOperationId: OperationId;
  readonly atMs: number;
  readonly lists: BmcLists;
}

export class DriveLists {
  readonly #drivers: BmcDrivers;
  readonly #clock: Clock;
  readonly #log: Log;
  /** By host uid, the oldest first. */
  readonly #kept = new Map<HostUid, CachedDriveLists>();

  constructor(drivers: BmcDrivers, clock: Clock, log: Log) {
    this.#drivers = drivers;
    this.#clock = clock;
    this.#log = log;
  }

  /** Asks a BMC whose identity was just verified. Undefined: its protocol has no such list. */
  async readDrives(driver: BmcDriver, context: Context): Promise<BmcDriveList | undefined> {
    if (driver.readInventory === undefined) return undefined;
    const limit = this.#limit(context);
    try {
      return await listOf(driver, limit.signal);
    } finally {
      limit.end();
    }
  }

  /** The lists for an inspection; never rejects. Undefined as above, or when no BMC is asked. */
  async readForInspection(
    hostUid: HostUid,
    request: agent.Inspect,
    context: OperationContext,
  ): Promise<BmcLists | undefined> {
    if (request.bmc === undefined) return undefined;
    const { bootOperationId } = request;
    const kept = this.#kept.get(hostUid);
    const ageMs = this.#clock.suspendAwareMs() - (kept?.atMs ?? 0);
    if (kept?.bootOperationId === bootOperationId && ageMs < freshMs) return kept.lists;
    const limit = this.#limit(context);
    try {
      const lists = await this.#listsOfExpected(request, { ...context, signal: limit.signal });
      if (lists?.bmcDrives.available === true) this.#keep(hostUid, bootOperationId, lists);
      return lists;
    } catch (error) {
      const why = error instanceof AttemptEnd ? endText(error) : errorText(error);
      return { bmcDrives: unavailable(why) };
    } finally {
      limit.end();
    }
  }

  forgetHost(hostUid: HostUid): void {
    this.#kept.delete(hostUid);
  }

  async #listsOfExpected(
    request: agent.Inspect,
    context: OperationContext,
  ): Promise<BmcLists | undefined> {
    const { bmc, expectedIdentity } = request;
    const driver = await openBmc(this.#drivers, bmc, context, expectedIdentity);
    if (driver.readInventory === undefined) return undefined;
    const opened = await openExpectedBmc(this.#drivers, request, context);
    if (opened.kind !== 'expected') return { bmcDrives: unavailable(messageOf(opened)) };
    const bmcDrives = await listOf(opened.driver, context.signal);
    if (bmcDrives === undefined) return undefined;
    const bmcParts = await this.#partsOf(opened.driver, context);
    return { bmcDrives, ...(bmcParts === undefined ? {} : { bmcParts }) };
  }

  async #partsOf(driver: BmcDriver, { signal }: Context): Promise<BmcParts | undefined> {
    const limit = timeLimit(this.#clock, { remainingMs: () => partsReadingMsMax, signal });
    try {
      return await partsOf(driver, limit.signal, this.#log);
    } finally {
      limit.end();
    }
  }

  #limit({ remainingMs, signal }: Context) {
    const readingMs = (): number => Math.min(readingMsMax, remainingMs() / 2);
    return timeLimit(this.#clock, { remainingMs: readingMs, signal });
  }

  #keep(hostUid: HostUid, bootOperationId: OperationId, lists: BmcLists): void {
    this.#kept.delete(hostUid);
    this.#kept.set(hostUid, { bootOperationId, atMs: this.#clock.suspendAwareMs(), lists });
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size > listsMax) this.#kept.delete(oldest);
  }
}

async function listOf(driver: BmcDriver, signal: AbortSignal): Promise<BmcDriveList | undefined> {
  const read = await driver.readInventory?.(['drives'], signal);
  if (read === undefined) return undefined;
  if (read.kind !== 'ok') return unavailable(read.message);
  const { drives, complete } = read.value;
  if (drives.length === 0) return unavailable('the BMC lists no drives');
  const signs = drives.map(signOf).toSorted((a, b) => compareTexts(orderOf(a), orderOf(b)));
  return create(BmcDriveListSchema, { available: true, complete, drives: signs });
}

function signOf({ name, model, serial, capacityBytes = 0, ...drive }: BmcDrive) {
  const { manufacturer, media, protocol } = drive;
  const words = [manufacturer, media, protocol].filter((word) => word !== undefined);
  const sizeBytes = Math.min(Math.max(0, Math.trunc(capacityBytes)), Number.MAX_SAFE_INTEGER);
  return create(StorageSignSchema, {
    source: StorageSource.BMC,
    kind: StorageSignKind.DRIVE,
    name: name ?? '',
    model: model ?? '',
    serial: serial ?? '',
    sizeBytes: BigInt(sizeBytes),
    detail: words.join(', '),
    firmware: drive.firmware ?? '',
  });
}

function orderOf({ serial, name }: { serial: string; name: string }): string {
  return `${serial}\0${name}`;
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function unavailable(reason: string): BmcDriveList {
  const unavailableReason = boundText(reason, reasonBytesMax);
  return create(BmcDriveListSchema, { available: false, unavailableReason });
}

function endText({ result }: AttemptEnd): string {
  return messageOf(result);
}

function messageOf(result: AttemptEnd['result']): string {
  return 'message' in result ? result.message : result.kind;
}
