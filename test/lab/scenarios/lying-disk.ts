/**
 * `--lying-disk`: a disk reports success for every discard and keeps the data. Only the read-back
 * verdict can tell; with `--verdict-off` the runner skips it, and the scenario must go red.
 */
import { inspectDisk } from '../disk-image.ts';
import { usualDisks } from '../qemu.ts';
import type { Scenario } from '../site.ts';
import { cleanFailsNaming } from './bad-disk.ts';

/** The scenario; `verdict` off proves that it can fail. */
export function lyingDiskScenario(verdict: 'on' | 'off'): Scenario {
  return {
    machines: [
      {
        name: 'h1',
        disks: usualDisks().map((disk) => (disk.bus === 'virtio' ? { ...disk, lies: true } : disk)),
      },
    ],
    kernelArguments: verdict === 'off' ? ['rackwright.lab.verdict=off'] : [],
    run: async (site) => {
      await cleanFailsNaming(site, (disk) => disk.lies === true);
      const [machine] = site.lab.machines;
      for (const disk of machine?.disks.filter((one) => one.lies === true) ?? []) {
        const { withPattern, blocks } = inspectDisk(disk.image, disk.patternName);
        const kept = `${withPattern} of ${blocks} blocks`;
        site.findings.check(`${disk.name} really kept its data: ${kept}`, withPattern > blocks / 2);
      }
    },
  };
}
