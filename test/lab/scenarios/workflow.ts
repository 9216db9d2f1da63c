/**
 * `--workflow`: a template of five steps runs on a machine: a script, a file on a partition, a step
 * of the BMC, a reboot as hand-off, and a look whether the file is there after it. It runs again;
 * a run is cancelled in its middle, one times out, one loses its host. What they did is read from
 * the disk file, QEMU's own count of resets, the BMC's event log, and the serial port.
 */
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HostView, StepView } from '../host-watch.ts';
import { ipmitool, type LabBmc } from '../ipmi-sim.ts';
import { makePartition, readFromPartition } from '../partition.ts';
import { until } from '../processes.ts';
import type { LabDisk } from '../qemu-disks.ts';
import { type ResetWatch, watchResets } from '../qmp.ts';
import { createHost, isEnded, RUN_LIMIT_MS, type Scenario, type Site } from '../site.ts';
import { RACK } from '../stack.ts';
import { printStages } from '../stages.ts';

const TEMPLATES = join(import.meta.dirname, '../templates');
const STEPS = ['look', 'note', 'event-log', 'again', 'settle', 'verify'] as const;
/** IPMI 2.0 §31.6, Add SEL Entry: of a sensor of temperature, at no time in particular. */
const ADD_EVENT = [
  ...['raw', '0x0a', '0x44', '0x00', '0x00', '0x02', '0x00', '0x00', '0x00', '0x00'],
  ...['0x20', '0x00', '0x04', '0x01', '0x30', '0x01', '0x09', '0xff', '0xff'],
];
/** What the ramdisk writes on the screen when a script reboots it. */
const REBOOTS = /\[rackwright [\d.]+\] reboot\b/;
/** A process that has been ended may have written its last line just before. */
const QUIET_AFTER_MS = 3_000;
const QUIET_MS = 5_000;
const SWEEP_LIMIT_MS = 120_000;
/** An agent that is silent for 90 s has nothing under way any more that protects a host. */
const CONTACT_LIMIT_MS = 180_000;

/** What the parts of the scenario share. */
interface Scene extends Site {
  readonly bmc: LabBmc;
  readonly disk: LabDisk;
  readonly resets: ResetWatch;
}

/** The scenario. */
export const workflowScenario: Scenario = {
  machines: [{ name: 'h1', disks: [{ name: 'disk0', bus: 'virtio', mebibytes: 64 }] }],
  run: async (site) => {
    const [bmc] = site.lab.bmcs;
    const [disk] = bmc?.machine.disks ?? [];
    if (bmc === undefined || disk === undefined) throw new Error('the scenario has one machine');
    await makePartition(disk);
    const resets = watchResets(site.lab.undo, bmc.machine);
    const scene = { ...site, bmc, disk, resets };
    for (const name of ['five', 'ticking', 'late']) await createTemplate(site, name);
    await createHost(site, bmc, 'manageable');
    await site.watch.waitFor('h1', 'verification', RUN_LIMIT_MS, (host) =>
      isEnded(host, 'VERIFY', 'SUCCEEDED'),
    );
    const variable = ['--var', `disk=${disk.serial}`];
    await fiveSteps(scene, 1, ['workflow', 'create', 'h1', 'five', ...variable]);
    await fiveSteps(scene, 2, ['workflow', 'run', 'h1', 'five']);
    await cancelled(scene);
    await timedOut(scene);
    printStages(site, bmc.machine);
    await orphaned(scene);
  },
};

async function createTemplate({ stack }: Site, name: string): Promise<void> {
  const source = readFileSync(join(TEMPLATES, `${name}.yaml`), 'utf8');
  await stack.cli(['template', 'create', name, '-'], source);
}

/** The five steps once, begun by `command`. */
async function fiveSteps(scene: Scene, number: number, command: readonly string[]): Promise<void> {
  const { findings, stack, bmc, disk, resets } = scene;
  findings.say(`       run ${number} of five`);
  const note = `/note-${number}`;
  const noteBefore = await readFromPartition(disk, note);
  findings.check(`${note} is not on the disk before`, noteBefore === undefined);
  await ipmitool(scene.lab.network, bmc.address(), ADD_EVENT);
  const logBefore = await eventLog(scene);
  findings.check('the event log of the BMC has an entry', logBefore.length > 0);
  const orders = (): number => bmc.machine.console().split(REBOOTS).length - 1;
  const before = { resets: resets.count(), boots: bmc.machine.boots(), orders: orders() };
  await stack.cli(command);
  const { status } = await untilRunEnds(scene, 'five', number);
  const { run } = status;
  const text = JSON.stringify({ error: run?.error, steps: run?.steps });
  findings.check('it has succeeded', run?.outcome === 'RUN_OUTCOME_SUCCEEDED', text);
  for (const title of STEPS) {
    const own = run?.steps?.filter((step) => step.title === title) ?? [];
    const isDone = own.length === 1 && own[0]?.state === 'STEP_STATE_SUCCEEDED';
    findings.check(`step ${title} was done, once`, isDone, JSON.stringify(own));
  }
  const content = await readFromPartition(disk, note);
  const expected = `h1, run ${number}\n`;
  findings.check(`${note} is on the disk, read from outside`, content === expected, content);
  const logAfter = await eventLog(scene);
  const cleared = logAfter.length === 0 || (logAfter.length === 1 && /clear/i.test(`${logAfter}`));
  findings.check('the event log of the BMC is cleared', cleared, logAfter.join(' / '));
  const reset = resets.count() - before.resets;
  // More than once: until its BMC boots it, firmware that finds nothing to boot begins anew.
  findings.check('the machine was reset from within', reset >= 1, `${reset}`);
  const ordered = orders() - before.orders;
  findings.check('its script was carried out once', ordered === 1, `${ordered}`);
  const powered = bmc.machine.boots() - before.boots;
  findings.check('its BMC booted the runner before and after', powered === 2, `${powered}`);
  const [first, last] = [bootOf(run?.steps, 'look'), bootOf(run?.steps, 'verify')];
  const isNew = first !== undefined && last !== undefined && first !== last;
  findings.check('the file was seen in a boot of its own', isNew, `${first}, ${last}`);
  const look = ['workflow', 'logs', 'h1', 'five', '--run', String(number), '--step', 'verify'];
  const output = await stack.cli(look);
  findings.check('what verify printed can be read back', output.startsWith(expected), output);
}

async function cancelled(scene: Scene): Promise<void> {
  const { findings, stack } = scene;
  findings.say('       a run of ticking is cancelled');
  await stack.cli(['workflow', 'create', 'h1', 'ticking']);
  await untilTicks(scene, 'tick of run 1');
  const refused = await stack.tryCli(['workflow', 'run', 'h1', 'five']);
  const names = refused.code !== 0 && refused.err.includes('hosts/h1/workflows/ticking/runs/1');
  findings.check('another run is refused with the name of this one', names, refused.err);
  await stack.cli(['workflow', 'cancel', 'h1', 'ticking', '--reason', 'seen enough']);
  const { status } = await untilRunEnds(scene, 'ticking', 1);
  const text = JSON.stringify(status.run);
  findings.check('it is cancelled', status.run?.outcome === 'RUN_OUTCOME_CANCELLED', text);
  await checkQuiet(scene, 'its script was ended', 'tick of run 1');
  const later = status.run?.steps?.find(({ title }) => title === 'too-far');
  const untouched = later?.attempt === undefined || later.state === 'STEP_STATE_SKIPPED';
  findings.check('the step after it was not begun', untouched, JSON.stringify(later));
}

async function timedOut(scene: Scene): Promise<void> {
  const { findings, stack } = scene;
  findings.say('       a run of late times out');
  await stack.cli(['workflow', 'create', 'h1', 'late']);
  const { status } = await untilRunEnds(scene, 'late', 1);
  const text = JSON.stringify(status.run);
  findings.check('it has timed out', status.run?.outcome === 'RUN_OUTCOME_TIMED_OUT', text);
  const listed = await runsOf(scene, 'late');
  findings.check('it can be looked at for a while', listed.includes('/runs/1'), listed);
  await checkQuiet(scene, 'its script does not run any more', 'late tick of run 1');
  const swept = async (): Promise<boolean> => !(await runsOf(scene, 'late')).includes('/runs/1');
  await until('the sweep of the run that timed out', SWEEP_LIMIT_MS, swept);
  findings.check('then it is swept', true);
  const kept = storedKeys(scene).filter((key) => key.startsWith('runs.'));
  const number = status.run?.number ?? '';
  const isGone = kept.length > 0 && !kept.some((key) => key.endsWith(`.${number}`));
  findings.check('the store has it no more, but the runs before it', isGone, kept.join(' '));
  const timeline = await stack.cli(['host', 'history', 'h1']);
  const told = timeline.includes(`workflow ${number} (late/runs/1) timed out`);
  findings.check('its line stands in the timeline', told, timeline);
}

async function orphaned(scene: Scene): Promise<void> {
  const { findings, stack } = scene;
  findings.say('       a run of ticking loses its host');
  const { uid = '' } = scene.watch.latest('h1') ?? {};
  await stack.cli(['workflow', 'run', 'h1', 'ticking']);
  await untilTicks(scene, 'tick of run 2');
  stack.agent.process()?.signal('SIGKILL');
  await stack.agent.process()?.ended;
  const away = async (): Promise<boolean> =>
    !/"agentConnected":\s*true/.test(await stack.cli(['rack', 'get', RACK, '-o', 'json']));
  await until('the rack to be without its agent', SWEEP_LIMIT_MS, away);
  const before = storedKeys(scene).filter((key) => isOfHost(key, uid));
  findings.check('the store has runs of the host', before.length > 0, `${uid} ${before.join(' ')}`);
  const remove = ['host', 'delete', 'h1', '--yes', '--force', '--reason', 'sold'];
  const early = await stack.tryCli(remove);
  const isBusy = early.code !== 0 && early.err.includes('busy');
  findings.check('as long as its agent may still work it is not removed', isBusy, early.err);
  await until('the contact deadline', CONTACT_LIMIT_MS, async () => {
    return (await stack.tryCli(remove)).code === 0;
  });
  const owned = (): string[] => storedKeys(scene).filter((key) => isOfHost(key, uid));
  await until('the sweep of what the host leaves', SWEEP_LIMIT_MS, () => owned().length === 0);
  findings.check('its workflows, runs and outputs are swept', true);
  const listed = await stack.cli(['workflow', 'list']);
  findings.check('no workflow of it is listed', !listed.includes('hosts/h1'), listed);
  const timeline = await stack.tryCli(['host', 'history', 'h1']);
  findings.check('its timeline can still be read', timeline.out.includes('sold'), timeline.err);
}

/** Runs, outputs of steps, and workflows. */
function isOfHost(key: string, uid: string): boolean {
  return (
    key.startsWith(`runs.${uid}.`) ||
    key.startsWith(`stepOutputs.${uid}.`) ||
    key.startsWith('workflows.h1.')
  );
}

async function runsOf({ stack }: Scene, template: string): Promise<string> {
  return await stack.cli(['workflow', 'runs', 'h1', template, '-o', 'json']);
}

/** What stands in the control plane's store: read from a copy, for it lets nobody beside it in. */
function storedKeys({ lab }: Scene): string[] {
  const copy = join(lab.folder, 'state.db');
  for (const part of ['', '-wal']) {
    copyFileSync(join(lab.folder, `control-plane/state.db${part}`), `${copy}${part}`);
  }
  const database = new DatabaseSync(copy);
  try {
    return database
      .prepare('SELECT key, max(revision), live FROM changes GROUP BY key HAVING live = 1')
      .all()
      .map(({ key }) => String(key));
  } finally {
    database.close();
  }
}

/** Entries of the BMC's event log, by a program that nobody here wrote. */
async function eventLog({ lab, bmc }: Scene): Promise<string[]> {
  const out = await ipmitool(lab.network, bmc.address(), ['sel', 'list']);
  return out.split('\n').filter((line) => line.includes('|'));
}

function untilRunEnds({ watch }: Site, template: string, number: number): Promise<HostView> {
  const name = `hosts/h1/workflows/${template}/runs/${number}`;
  return watch.waitFor('h1', `the end of ${name}`, RUN_LIMIT_MS, ({ status }) => {
    return status.run?.workflowRun === name && status.run.phase === 'RUN_PHASE_ENDED';
  });
}

/** The kernel's own name for the boot that the step ran in: the last line that it printed. */
function bootOf(steps: readonly StepView[] | undefined, title: string): string | undefined {
  const output = steps?.find((step) => step.title === title)?.exit?.lastOutput;
  return /([0-9a-f-]{36})\s*$/.exec(output ?? '')?.[1];
}

function ticks({ bmc }: Scene, line: string): number {
  return bmc.machine.console().split(line).length - 1;
}

async function untilTicks(scene: Scene, line: string): Promise<void> {
  const end = performance.now() + RUN_LIMIT_MS;
  while (ticks(scene, line) < 2) {
    if (performance.now() > end) throw new Error(`"${line}" never came by the serial port`);
    await sleep(200);
  }
}

/** Nothing more comes by the serial port. */
async function checkQuiet(scene: Scene, title: string, line: string): Promise<void> {
  await sleep(QUIET_AFTER_MS);
  const before = ticks(scene, line);
  await sleep(QUIET_MS);
  const after = ticks(scene, line);
  scene.findings.check(title, before === after, `${before}, then ${after} ticks`);
}
