/**
 * `--kill`: a process is ended by SIGKILL at a boundary of the erase step, on real firmware and
 * real block devices. The clean ends as the golden table says; what the disks saw is read from
 * their own logs alone.
 *
 * From outside a machine only its own crash point can end the runner in it, so a runner dies at the
 * runner's boundaries, control plane and agent at those of both.
 */
import { boundaries, killTable } from '../../e2e/kill-table.ts';
import { type BlockLogEntry, isZeroWrite, readBlockLog } from '../blocklog.ts';
import { type LabMachine } from '../qemu.ts';
import { type LabDisk, usualDisks } from '../qemu-disks.ts';
import {
  createHost,
  hasEnded,
  isEnded,
  powerOff,
  RUN_LIMIT_MS,
  type Scenario,
  type Site,
} from '../site.ts';
import type { Crash, Victim } from '../stack.ts';

const VICTIMS: readonly Victim[] = ['control-plane', 'agent', 'runner'];
/** What CI runs: each process once, at its most delicate place. */
const ONE_PER_PROCESS = new Set([
  'control-plane at cp.reportStored',
  'agent at agent.begun',
  'runner at runner.erased',
]);
const WATCH_PERIOD_MS = 100;

/** The kills by title: one for each process, or all that the lab can do. */
export function killScenarios(extent: 'one' | 'all'): ReadonlyMap<string, Scenario> {
  const found = new Map<string, Scenario>();
  for (const { name, occurrence } of boundaries) {
    for (const victim of VICTIMS) {
      const isRunners = name.startsWith('runner.');
      if (isRunners !== (victim === 'runner')) continue;
      const title = `${victim} at ${name}`;
      if (extent === 'one' && !ONE_PER_PROCESS.has(title)) continue;
      found.set(title, killScenario({ name, occurrence, victim }));
    }
  }
  return found;
}

function killScenario(crash: Crash & { readonly name: keyof typeof killTable }): Scenario {
  const { victim, name, occurrence } = crash;
  const word = `rackwright.lab.crash=${name}:${occurrence}`;
  return {
    machines: [{ name: 'h1', disks: usualDisks() }],
    ...(victim === 'runner' ? { kernelArguments: [word] } : { crash }),
    run: async (site) => {
      const [bmc] = site.lab.bmcs;
      if (bmc === undefined) throw new Error('the scenario has one machine');
      const stopReviving = reviveKilled(site);
      try {
        await cleanOnce(site, bmc.machine);
      } finally {
        stopReviving();
      }
      await powerOff(site, bmc);
      const lives = livesOf(site, bmc.machine, victim);
      site.findings.check(`the ${victim} was killed once and came back`, lives === 2, `${lives}`);
      const { formats } = killTable[name][victim === 'control-plane' ? 'controlplane' : victim];
      for (const disk of bmc.machine.disks) judge(site, bmc.machine, disk, formats);
    },
  };
}

async function cleanOnce(site: Site, machine: LabMachine): Promise<void> {
  const [bmc] = site.lab.bmcs;
  if (bmc === undefined) return;
  const id = machine.name;
  await createHost(site, bmc, 'manageable');
  await site.watch.waitFor(id, 'verification', RUN_LIMIT_MS, (h) =>
    isEnded(h, 'VERIFY', 'SUCCEEDED'),
  );
  await site.stack.cli(['host', 'clean', id, '--yes']);
  const { status } = await site.watch.waitFor(id, 'the end of the clean', RUN_LIMIT_MS, (host) =>
    hasEnded(host, 'CLEAN'),
  );
  const text = `${status.run?.outcome} ${JSON.stringify(status.lastError ?? '')}`;
  site.findings.check(
    'the clean has succeeded',
    status.run?.outcome === 'RUN_OUTCOME_SUCCEEDED',
    text,
  );
  site.findings.check('the host is no longer dirty', status.dirty !== true);
}

/** Starts again whichever program of ours has died, as an init system would. */
function reviveKilled({ stack }: Site): () => void {
  const timer = setInterval(() => {
    for (const program of [stack.controlPlane, stack.agent]) program.reviveIfDead();
  }, WATCH_PERIOD_MS);
  return () => clearInterval(timer);
}

function livesOf({ stack }: Site, machine: LabMachine, victim: Victim): number {
  if (victim === 'control-plane') return stack.controlPlane.starts();
  if (victim === 'agent') return stack.agent.starts();
  return machine.console().split('runner started, process').length - 1;
}

/** By the device's own log alone: every byte erased, nothing written after that. */
function judge(
  { findings }: Site,
  machine: LabMachine,
  disk: LabDisk,
  formats: readonly number[],
): void {
  const logs = machine
    .blockLogs(disk)
    .map((path) => ({ path, entries: readBlockLog(path, disk.bytes) }));
  const acts = logs.flatMap(({ path, entries }) =>
    entries.map((entry) => actOf(path, entry, disk)),
  );
  const whole = acts.filter((act) => act === 'erasedWhole').length;
  const expected = disk.bus === 'nvme' ? formats.includes(whole) : whole >= 1;
  findings.check(
    `${disk.name}: erased as a whole as often as the table says`,
    expected,
    `${whole}`,
  );
  const last = acts.lastIndexOf('erasedWhole');
  const after = acts.slice(last + 1).filter((act) => act === 'data').length;
  findings.check(`${disk.name}: no data written after the last erasure`, after === 0, `${after}`);
}

function actOf(
  path: string,
  entry: BlockLogEntry,
  disk: LabDisk,
): 'erasedWhole' | 'data' | 'other' {
  if (entry.kind === 'flush') return 'other';
  const isWhole = entry.offset === 0 && entry.length === disk.bytes;
  if (entry.kind === 'discard') return isWhole ? 'erasedWhole' : 'other';
  if (!isZeroWrite(path, entry)) return 'data';
  return isWhole ? 'erasedWhole' : 'other';
}
