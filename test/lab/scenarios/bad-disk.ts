/**
 * `--bad-disk`: one of two disks answers every erasure with an I/O error. The clean fails and names
 * it; the host stays dirty.
 */
import { isUntouched } from '../disk-image.ts';
import { type DiskSpec, usualDisks } from '../qemu-disks.ts';
import {
  createHost,
  hasEnded,
  isEnded,
  RUN_LIMIT_MS,
  type Scenario,
  type Site,
  wasNeverAvailable,
} from '../site.ts';

const FAILING: Pick<DiskSpec, 'failing'> = { failing: ['write', 'write-zeroes', 'discard'] };

/** The scenario. */
export const badDiskScenario: Scenario = {
  machines: [
    {
      name: 'h1',
      disks: usualDisks().map((disk) => (disk.bus === 'virtio' ? { ...disk, ...FAILING } : disk)),
    },
  ],
  run: async (site) => {
    await cleanFailsNaming(site, 'manageable', (disk) => disk.failing !== undefined);
    const [machine] = site.lab.machines;
    for (const disk of machine?.disks.filter((one) => one.failing !== undefined) ?? []) {
      const intact = isUntouched(disk.image, disk.patternName);
      site.findings.check(`${disk.name} really could not be written`, intact);
    }
  },
};

/**
 * The first clean of `h1` fails, its error names the serials of the disks that are `guilty`. With
 * the goal `available` it is inspected first, and never gets there; else it is told to be cleaned.
 * Answers the words of the error.
 */
export async function cleanFailsNaming(
  site: Site,
  goal: 'available' | 'manageable',
  guilty: (disk: DiskSpec) => boolean,
): Promise<string> {
  const { lab, stack, watch, findings } = site;
  const [bmc] = lab.bmcs;
  if (bmc === undefined) throw new Error('the scenario has one machine');
  await createHost(site, bmc, goal);
  if (goal === 'manageable') {
    await watch.waitFor('h1', 'verification', RUN_LIMIT_MS, (host) =>
      isEnded(host, 'VERIFY', 'SUCCEEDED'),
    );
    await stack.cli(['host', 'clean', 'h1', '--yes']);
  }
  const ended = await watch.waitFor('h1', 'the end of the clean', RUN_LIMIT_MS, (host) =>
    hasEnded(host, 'CLEAN'),
  );
  const { status } = ended;
  findings.check(
    'the clean has failed',
    status.run?.outcome === 'RUN_OUTCOME_FAILED',
    `${status.run?.outcome}`,
  );
  const failure = status.lastError?.failure;
  const text = `${failure?.type}: ${failure?.message} ${failure?.detail ?? ''}`;
  findings.say(`       ${text}`);
  for (const disk of bmc.machine.disks) {
    const named = text.includes(disk.serial);
    if (guilty(disk)) findings.check(`the error names ${disk.name}, ${disk.serial}`, named, text);
    else findings.check(`the error does not blame ${disk.name}`, !named, text);
  }
  const { state, dirty } = status;
  findings.check('the host is manageable', state === 'HOST_STATE_MANAGEABLE', state);
  findings.check('the host is dirty', dirty === true);
  if (goal === 'manageable') return text;
  findings.check('the host was never available', wasNeverAvailable(watch.history('h1')));
  await stack.cli(['host', 'update', 'h1', '--goal', 'manageable']);
  return text;
}
