/**
 * `--deploy-one --shutdown`: the image stops when its power button is pressed, once; then it
 * ignores that. Asked to shut down it stops in order, by its own journal; ignoring it, it is forced
 * off at the deadline, and not before.
 */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HostView } from '../host-watch.ts';
import type { LabImage } from '../image/build.ts';
import { until } from '../processes.ts';
import type { LabMachine } from '../qemu.ts';
import { isEnded, RUN_LIMIT_MS } from '../site.ts';
import { checkInService, checkStarts, HOST, provision, type Story } from './one-host.ts';

const PRESS_POWER = join(import.meta.dirname, '../press-power.main.ts');
/** Long enough for an emulated machine to stop; and short enough to be waited for. */
const STOP_SECONDS = 300;
const IGNORE_SECONDS = 20;
/** What the journal says last of a system that stops in order; systemd 252. */
const STOPPED_IN_ORDER = /(Reached target|Stopped target|Journal stopped)[^\n]*/g;

/** A soft off presses the button of the machine, instead of cutting its power. */
function letButtonBePressed({ folder }: LabMachine): void {
  const file = join(folder, 'soft-off');
  const args = [process.execPath, PRESS_POWER, join(folder, 'qmp.sock')];
  writeFileSync(file, `#!/bin/sh\nexec ${args.map((word) => `'${word}'`).join(' ')}\n`);
  chmodSync(file, 0o755);
}

/** The story; the machine runs the image already. */
export async function runShutdown(story: Story<LabImage>): Promise<void> {
  const { site, bmc } = story;
  const { findings, stack } = site;
  const { machine } = bmc;
  letButtonBePressed(machine);
  const provisioned = await provision(story, ['--proof-timeout', '10m']);
  findings.check('it was proved', isEnded(provisioned, 'PROVISION', 'SUCCEEDED'));
  checkInService(story, 'by its proof');
  await checkStarts(story, 1);
  const said = machine.console().length;
  await isKeyWatched(story, 1);
  const stopped = await switchIt(story, ['off', HOST, '--shutdown-timeout', `${STOP_SECONDS}`]);
  checkOutcome(story, stopped, 'STOPPED');
  const journal = machine.console().slice(said);
  const lines = [...journal.matchAll(STOPPED_IN_ORDER)].map(([text]) => text.trim());
  findings.say(`       its journal: ${lines.slice(-6).join(' | ')}`);
  const inOrder = /Reached target (poweroff\.target|System Power Off|Shutdown|shutdown)/i;
  findings.check('its journal shows an orderly stop', inOrder.test(journal), lines.join(' | '));
  findings.check('its power was not cut', cuts(machine, Date.parse(startOf(stopped))).length === 0);

  await switchIt(story, ['on', HOST]);
  await checkStarts(story, 2);
  const forced = await switchIt(story, ['off', HOST, '--shutdown-timeout', `${IGNORE_SECONDS}`]);
  checkOutcome(story, forced, 'FORCED');
  const { deadline = '' } = forced.status.run?.steps?.[0]?.shutdown ?? {};
  const [cut = Number.NaN] = cuts(machine, Date.parse(startOf(forced)));
  const lateMs = Math.round(cut - Date.parse(deadline));
  findings.check('its power was cut at the deadline, not before', lateMs >= 0, `${lateMs} ms`);
  findings.say(`       cut ${lateMs} ms after the deadline`);
  findings.say((await stack.cli(['host', 'get', HOST])).replaceAll(/^/gm, '       '));
}

/** Waits until the system on the machine has begun for the n-th time to listen for its button. */
async function isKeyWatched({ site, bmc }: Story<unknown>, times: number): Promise<void> {
  const pattern = /lab power key: .*/g;
  const seen = (): boolean => [...bmc.machine.console().matchAll(pattern)].length >= times;
  await until('the system to listen for its button', RUN_LIMIT_MS, seen, bmc.machine.serialLog);
  site.findings.say(`       ${[...bmc.machine.console().matchAll(pattern)].at(-1)?.[0].trim()}`);
}

/** Asks for power and waits for the end of that very run. */
async function switchIt({ site }: Story<unknown>, args: readonly string[]): Promise<HostView> {
  const { stack, watch } = site;
  const before = Number(watch.latest(HOST)?.status.run?.number ?? 0);
  await stack.cli(['host', 'power', ...args]);
  return await watch.waitFor(HOST, `power ${args[0]}`, RUN_LIMIT_MS, (host) => {
    return Number(host.status.run?.number ?? 0) > before && isEnded(host, 'POWER', 'SUCCEEDED');
  });
}

function checkOutcome({ site }: Story<unknown>, host: HostView, wanted: string): void {
  const { outcome = '', duration = '' } = host.status.run?.steps?.[0]?.shutdown ?? {};
  site.findings.say(`       ${outcome} after ${duration}`);
  site.findings.check(`it is said to be ${wanted}`, outcome === `SHUTDOWN_OUTCOME_${wanted}`);
}

function startOf({ status }: HostView): string {
  return status.run?.startTime ?? '';
}

/** When the BMC cut the power of a machine since a time, wall time. */
function cuts({ folder }: LabMachine, sinceMs: number): number[] {
  const log = readFileSync(join(folder, 'chassis.log'), 'utf8');
  const times = [...log.matchAll(/^(\S+) set power 0$/gm)].map(([, at]) => Number(at) * 1_000);
  return times.filter((at) => at >= sinceMs);
}
