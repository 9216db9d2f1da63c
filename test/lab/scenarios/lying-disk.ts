/**
 * `--lying-disk`: a disk reports success for every discard and keeps the data. Only the read-back
 * verdict can tell. With `--verdict-off` the runner skips it, and the scenario must go red; the
 * host stays dirty even so, because the control plane certifies nothing without a verdict.
 */
import { inspectDisk } from '../disk-image.ts';
import { usualDisks } from '../qemu-disks.ts';
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
      // Without a verdict there is one run to look at, and nothing that could become of the host.
      const goal = verdict === 'off' ? 'manageable' : 'available';
      const text = await cleanFailsNaming(site, goal, (disk) => disk.lies === true);
      // Without a read-back nothing but the missing proof can be said.
      site.findings.check(
        'the read-back saw the data',
        /0x[0-9a-f]{2} is left at offset/.test(text),
        text,
      );
      const [machine] = site.lab.machines;
      for (const disk of machine?.disks.filter((one) => one.lies === true) ?? []) {
        const { withPattern, blocks } = inspectDisk(disk.image, disk.patternName);
        const kept = `${withPattern} of ${blocks} blocks`;
        site.findings.check(`${disk.name} really kept its data: ${kept}`, withPattern > blocks / 2);
      }
    },
  };
}
