/** What is erased by which method, what is refused, and that no disk hides behind others. */

import { bench, driveToErase, failed } from '@rackwright/controlplane/testing';
import type { ScopePolicy } from '@rackwright/erasure';
import { agent, FailureType, HostState, RunOutcome } from '@rackwright/messages';
import { erasuresAtOnceMax } from '@rackwright/runner';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FileHost } from './disks.ts';
import { statusOf } from './words.ts';

let host: FileHost;

beforeEach(() => {
  host = new FileHost();
});

afterEach(() => host.remove());

const crypto = { formatSupported: true, cryptoEraseSupported: true };
const formatOnly = { formatSupported: true };
const neither = { formatSupported: false };

test.each<[string, object, Partial<ScopePolicy>, agent.ErasureMethod | string]>([
  ['cryptographically where it can', crypto, {}, agent.ErasureMethod.NVME_FORMAT_CRYPTO],
  ['as user data where it only formats', formatOnly, {}, agent.ErasureMethod.NVME_FORMAT],
  ['not at all without a fallback', neither, { method: 'nvmeFormat' }, 'does not offer nvmeFormat'],
  ['by overwriting with a fallback', neither, {}, agent.ErasureMethod.OVERWRITE],
])('ironic-53: an NVMe disk is erased %s', async (_how, nvme, policy, wanted) => {
  const description = { transport: 'nvme', discardSupported: false, nvme };
  host.addDisk('nvme0', { ...description, regions: [{ name: 'nvme0n1' }] }, 'nvme0n1');
  const decisions = await host.plan(policy);
  const end = await host.erase(decisions);
  if (typeof wanted === 'string') {
    expect(decisions).toMatchObject([{ kind: 'refused', reason: expect.stringContaining(wanted) }]);
    expect(end.result).toMatchObject({ kind: 'failed' });
    expect(host.hasOldData('nvme0n1')).toBe(true);
    return;
  }
  expect(end.result).toEqual({ kind: 'complete' });
  expect(end.evidence?.devices?.[0]?.method).toBe(wanted);
  expect(host.hasOldData('nvme0n1')).toBe(false);
});

test.each<ScopePolicy['method']>(['strongest', 'metadataOnly'])(
  'ironic-55: a read-only disk fails an erase by name, also of its metadata only (%s)',
  async (method) => {
    host.addDisk('sda', {}, 'sda', 8_388_608);
    host.addDisk('sdb', { readOnly: true }, 'sdb', 8_388_608);
    const decisions = await host.plan({ method });
    expect(decisions.map(({ kind }) => kind)).toEqual(['inScope', 'refused']);
    const end = await host.erase(decisions);
    expect(end.result).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('S-sdb (sdb): not erased: is read-only'),
    });
    expect(end.evidence?.devices?.map(({ verdict }) => verdict)).toEqual([
      agent.VerdictKind.ERASED,
      agent.VerdictKind.UNVERIFIED,
    ]);
  },
);

test('ironic-57: a host that shows no disk is not clean unless its policy says so', async () => {
  const { result } = await host.erase(await host.plan());
  expect(result).toMatchObject({ kind: 'failed', type: 'noDevices' });

  const strict = bench();
  driveToErase(strict, []);
  expect(statusOf(strict)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(statusOf(strict).lastError?.failure?.type).toBe(FailureType.NO_DEVICES);

  const diskless = bench({ cleaning: { allowDiskless: true } });
  driveToErase(diskless, []);
  expect(diskless.operation().kind.case).toBe('runStep');
});

test('ironic-59: of more disks than go at once, all but the bad one are erased', async () => {
  const bad = 'd7';
  const names = Array.from({ length: erasuresAtOnceMax + 6 }, (_, index) => `d${index}`);
  for (const name of names) {
    const slow = { kind: 'slow', operation: 'discard', delayMs: 40 };
    const broken = { kind: 'ioError', operation: 'discard', offset: 0, length: 512 };
    host.addDisk(name, { faults: name === bad ? [broken] : [slow] });
  }
  const end = await host.erase(await host.plan());
  expect(end.result).toMatchObject({
    kind: 'failed',
    message: expect.stringMatching(/^1 of 22 devices is not proved erased: S-d7 \(d7\): /),
  });
  expect(names.filter((name) => host.hasOldData(name))).toEqual([bad]);
  expect(names.filter((name) => host.isZero(name))).toHaveLength(names.length - 1);
  // All disks are held from the start; those that are written have their turn.
  const times = names.map((name) =>
    host.acts(name).flatMap(({ kind, time }) => (kind === 'open' ? [] : [time])),
  );
  const together = times.map(([start = 0]) => {
    return times.filter((other) => (other[0] ?? 0) <= start && start < (other.at(-1) ?? 0)).length;
  });
  expect(erasuresAtOnceMax).toBe(16);
  expect(Math.max(...together)).toBe(erasuresAtOnceMax);

  const cleaning = bench();
  driveToErase(cleaning);
  cleaning.report(failed('ioError', (end.result as { message: string }).message));
  expect(statusOf(cleaning).run?.outcome).toBe(RunOutcome.FAILED);
  expect(statusOf(cleaning).lastError?.failure?.message).toContain('S-d7 (d7)');
});
