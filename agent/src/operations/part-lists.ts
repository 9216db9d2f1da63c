/**
 * What BMCs report of memory, network cards and firmware, to be shown beside the runner's findings.
 *
 * L1 Nothing depends on the answer. It is asked for after the drives, which erasing needs, and its
 *    time is short: the step does not wait for a slow BMC.
 */
import { create } from '@bufbuild/protobuf';
import type { BmcDriver, BmcInventory, BmcMemoryModule } from '@rackwright/bmc';
import { type BmcParts, BmcPartsSchema } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import { boundText } from '@rackwright/results';

/** Longest reading of the lists. */
export const partsReadingMsMax = 30_000;
const partsMax = 64;
const textBytesMax = 64;

/** Never rejects. Undefined: the protocol has no such lists. */
export async function partsOf(
  driver: BmcDriver,
  signal: AbortSignal,
  log: Log,
): Promise<BmcParts | undefined> {
  if (driver.readInventory === undefined) return undefined;
  // Reading the drives has taken all the time.
  if (signal.aborted) return unread();
  try {
    const read = await driver.readInventory(['memory', 'interfaces', 'firmware'], signal);
    return read.kind === 'ok' ? partsToWire(read.value) : unread();
  } catch (error) {
    if (!signal.aborted) log.warn({}, 'the part lists of a BMC cannot be read', error);
    return unread();
  }
}

function unread(): BmcParts {
  return create(BmcPartsSchema, { complete: false });
}

function partsToWire({ memory, interfaces, firmware, complete }: BmcInventory): BmcParts {
  return create(BmcPartsSchema, {
    complete: complete && memory.length <= partsMax && interfaces.length <= partsMax,
    memoryModules: memory.slice(0, partsMax).map(moduleOf),
    interfaces: interfaces.slice(0, partsMax).map((each) => ({
      name: short(each.name),
      mac: short(each.mac).toLowerCase(),
      speedMbps: wholeUpTo(each.speedMbps, 0xffff_ffff),
      linkUp: each.linkUp ?? false,
    })),
    firmware: firmware.map(({ name, version }) => ({ name, version: short(version) })),
  });
}

function moduleOf({ capacityMiB, slot, manufacturer, model, serial }: BmcMemoryModule) {
  return {
    slot: short(slot),
    manufacturer: short(manufacturer),
    model: short(model),
    serial: short(serial),
    sizeBytes: BigInt(wholeUpTo(capacityMiB, 2 ** 32)) << 20n,
  };
}

function short(text = ''): string {
  return boundText(text.trim(), textBytesMax);
}

function wholeUpTo(value = 0, max: number): number {
  return Math.min(Math.max(0, Math.trunc(value) || 0), max);
}
