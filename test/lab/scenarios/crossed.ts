/**
 * `--crossed`: two hosts are known and manageable; then somebody swaps the cables of their BMCs. A
 * clean of one, and of both at once, ends with `identityMismatch` that names the other; no disk is
 * touched.
 */

import { isUntouched } from '../disk-image.ts';
import type { HostView } from '../host-watch.ts';
import { crossBmcs } from '../lab.ts';
import { usualDisks } from '../qemu-disks.ts';
import { createHost, hasEnded, isEnded, RUN_LIMIT_MS, type Scenario, type Site } from '../site.ts';

/** The scenario. */
export const crossedScenario: Scenario = {
  machines: [
    { name: 'h1', disks: usualDisks() },
    { name: 'h2', disks: usualDisks() },
  ],
  run: async (site) => {
    const { lab, watch, findings } = site;
    const [a, b] = lab.bmcs;
    if (a === undefined || b === undefined) throw new Error('the scenario has two machines');
    for (const bmc of [a, b]) await createHost(site, bmc, 'manageable');
    for (const id of ['h1', 'h2']) {
      await watch.waitFor(id, 'its verification', RUN_LIMIT_MS, (host) =>
        isEnded(host, 'VERIFY', 'SUCCEEDED'),
      );
    }
    findings.check('both hosts are known and proved', true);
    await crossBmcs(a, b);
    await cleanEndsWithMismatch(site, [['h1', 'h2']]);
    await cleanEndsWithMismatch(site, [
      ['h1', 'h2'],
      ['h2', 'h1'],
    ]);
  },
};

/** Cleans the first of each pair, all at once; each ends naming the second. */
async function cleanEndsWithMismatch(
  site: Site,
  pairs: readonly (readonly [string, string])[],
): Promise<void> {
  const { lab, stack, watch, findings } = site;
  const title = `clean of ${pairs.map(([id]) => id).join(' and ')}`;
  const before = pairs.map(([id]) => runNumber(watch.latest(id)));
  await Promise.all(pairs.map(([id]) => stack.cli(['host', 'clean', id, '--yes'])));
  for (const [index, [id, other]] of pairs.entries()) {
    const isNew = (host: HostView): boolean => runNumber(host) > (before[index] ?? 0);
    const ended = await watch.waitFor(
      id,
      `the end of the ${title}`,
      RUN_LIMIT_MS,
      (host) => isNew(host) && hasEnded(host, 'CLEAN'),
    );
    const failure = ended.status.lastError?.failure;
    const text = `${failure?.type}: ${failure?.message} ${failure?.detail ?? ''}`;
    findings.say(`       ${id}: ${text}`);
    findings.check(
      `${title}: ${id} ends identityMismatch`,
      failure?.type === 'FAILURE_TYPE_IDENTITY_MISMATCH',
      text,
    );
    findings.check(`${title}: ${id} names ${other}`, text.includes(other), text);
  }
  for (const machine of lab.machines) {
    for (const disk of machine.disks) {
      const intact = isUntouched(disk.image, disk.patternName);
      findings.check(`${title}: ${disk.name} of ${machine.name} is intact`, intact);
    }
  }
}

function runNumber(host: HostView | undefined): number {
  return Number(host?.status.run?.number ?? 0);
}
