/**
 * Takes down the kernel's devices on top of disks: md arrays and device mapper (LVM, LUKS,
 * multipath). The topmost goes first.
 *
 * Invariants:
 * H1 Only holders of the one device go, and holders of those; nothing is looked up by content.
 * H2 A holder has gone when /sys shows it no more; an exit code proves nothing.
 * H3 An array stops only in a state in which that writes nothing: a member may be a disk that is in
 *    no plan.
 * H4 A device that is mounted or used as swap is left alone: it is in use.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDismantlable, type Region } from '@rackwright/erasure';
import { type Exec, errorText } from '@rackwright/platform';
import { DeviceError } from '../machine/block-devices.ts';
import { cleanText, readHolders, readInUse } from './sys-block.ts';
import { readText } from './sys-files.ts';
import type { SysRoots } from './sys-roots.ts';
import { toolOutput } from './tool.ts';

const removeTimeoutMs = 60_000;

/**
 * Resolves with the devices that were taken down: "md127 (raid1)". Rejects with a `DeviceError`
 * that names the remaining one and the reason.
 */
export async function dismantle(
  exec: Exec,
  roots: SysRoots,
  regions: readonly Region[],
): Promise<string[]> {
  const done: string[] = [];
  for (const { name } of regions) {
    const holders = await holdersOf(roots, name);
    const kept = holders.filter((holder) => !isDismantlable(holder));
    if (kept.length > 0) throw new DeviceError(`${name} is in use by ${kept.join(', ')}`);
    // Each is on top of one that was found before it, so they go in reverse order.
    for (const holder of holders.reverse()) done.push(await takeDown(exec, roots, holder));
    const left = await holdersOf(roots, name);
    if (left.length > 0) throw new DeviceError(`${name} is still held by ${left.join(', ')}`);
  }
  return done;
}

async function holdersOf(roots: SysRoots, name: string): Promise<string[]> {
  return await readHolders(join(roots.sys, 'block', name), name, await readInUse(roots));
}

async function takeDown(exec: Exec, roots: SysRoots, holder: string): Promise<string> {
  const folder = join(roots.sys, 'block', holder);
  return holder.startsWith('md')
    ? await stopArray(folder, holder)
    : await unmap(exec, folder, holder);
}

/**
 * States in which an array has nothing to write to its members. An array that was written to
 * becomes `clean` by itself, after 200 ms unless another time was set.
 */
const restingStates: ReadonlySet<string> = new Set([
  ...['clean', 'read-auto', 'readonly', 'inactive', 'broken'],
]);
const restTimeoutMs = 5_000;
const restPollMs = 100;

/** `clear` stops an array as STOP_ARRAY does (kernel documentation, admin-guide/md). */
async function stopArray(folder: string, holder: string): Promise<string> {
  const holderText = `${holder} (${cleanText(await readText(folder, 'md/level')) || 'md'})`;
  for (let waitedMs = 0; ; waitedMs += restPollMs) {
    const before = await readText(folder, 'md/array_state');
    if (restingStates.has(before)) break;
    if (waitedMs >= restTimeoutMs) {
      throw new DeviceError(
        `the array ${holderText} is ${before || 'in no known state'}, and not at rest`,
      );
    }
    await sleep(restPollMs);
  }
  try {
    await writeFile(join(folder, 'md/array_state'), 'clear');
  } catch (cause) {
    const text = errorText(cause);
    throw new DeviceError(`the array ${holderText} cannot be stopped: ${text}`, { cause });
  }
  const state = await readText(folder, 'md/array_state');
  if (state === '' || state === 'clear') return holderText;
  throw new DeviceError(`the array ${holderText} is still ${state}`);
}

async function unmap(exec: Exec, folder: string, holder: string): Promise<string> {
  const name = await readText(folder, 'dm/name');
  const kind = /^([A-Z]+|mpath)-/i.exec(await readText(folder, 'dm/uuid'))?.[1] ?? 'device mapper';
  const holderText = `${holder} (${kind}: ${cleanText(name)})`;
  const result = await toolOutput(
    exec,
    'dmsetup',
    ['remove', '--retry', '--', name],
    removeTimeoutMs,
  );
  if ((await readText(folder, 'dm/name')) === '') return holderText;
  throw new DeviceError(
    `${holderText} cannot be removed: ${cleanText(result) || 'dmsetup says nothing'}`,
  );
}
