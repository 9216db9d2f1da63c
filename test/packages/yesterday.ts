/**
 * A backup of the packaged control plane, and its return, by the very commands of the package's
 * README, with the secrets key as a systemd credential. It is made while a host is being cleaned;
 * since then that host was given to somebody, of which the backup knows nothing.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { isUntouched, writePattern } from '../lab/disk-image.ts';
import { ipmitool, type LabBmc } from '../lab/ipmi-sim.ts';
import { until } from '../lab/processes.ts';
import type { Site } from '../lab/site.ts';
import { RACK } from '../lab/stack.ts';
import type { Container } from './container.ts';
import { commandsOf, property, untilActive } from './services.ts';

const DOCUMENTS = '/usr/share/doc/rackwright-controlplane';
const README = `${DOCUMENTS}/README`;
const SERVICE = 'rackwright-controlplane';
const CONFIGURATION = '/etc/rackwright/controlplane.yaml';
const KEY_FILE = '/etc/rackwright/secrets.key';
const WAIT_MS = 60_000;

/** What a person has put there; no package takes it away. */
export const OWN_FILES = ['/var/lib/rackwright.before', '/var/backups/rackwright', KEY_FILE];

/** The commands of the README's section, with a file of ours. */
function backupCommands(container: Container): string[][] {
  return commandsOf(container, README, 'Backup and restore', 'Upgrade and the way back').map(
    (block) => block.map((line) => line.replace('/FILE.tar', '/yesterday.tar')),
  );
}

/** Gives the control plane its secrets key as a systemd credential; answers the key. */
export async function useCredential(container: Container): Promise<Buffer> {
  const example = `${DOCUMENTS}/examples/secrets-key.conf`;
  const [commands = []] = commandsOf(container, example);
  for (const line of commands) await container.run(['sh', '-ec', line]);
  const shown = /^#= (.*)$/m.exec(readFileSync(container.path(example), 'utf8'))?.[1];
  if (shown === undefined) throw new Error(`${example} shows no line of the configuration`);
  const file = container.path(CONFIGURATION);
  writeFileSync(file, `${readFileSync(file, 'utf8')}${shown}\n`);
  await container.run(['systemctl', 'daemon-reload']);
  return Buffer.from(readFileSync(container.path(KEY_FILE), 'utf8').trim(), 'base64');
}

/** While the control plane runs and h1 is being cleaned. */
export async function backUp({ findings }: Site, container: Container): Promise<void> {
  const pid = await property(container, SERVICE, 'MainPID');
  const { err } = await container.attempt([SERVICE, 'backup', '--to', '/root/b.tar']);
  findings.check('root is told whose file it has to be', / runs as rackwright, /.test(err), err);
  const [commands = []] = backupCommands(container);
  let said = '';
  for (const line of commands) said += await container.run(['sh', '-ec', line]);
  findings.check(
    'a backup says which key it needs besides',
    /The key of secrets is not in it \(it comes from systemdCredential\): keep key \w+/.test(said),
    said,
  );
  const after = await property(container, SERVICE, 'MainPID');
  findings.check('the control plane went on meanwhile', pid === after, `${pid} ${after}`);
}

/** Stop, move, restore, start; the host that is in use by now keeps its disks. */
export async function checkYesterday(site: Site, bmc: LabBmc, container: Container): Promise<void> {
  const { findings, stack } = site;
  await stack.cli(['host', 'claim', 'h1', '--reason', 'build farm']);
  for (const disk of bmc.machine.disks) writePattern(disk.image, disk.patternName, disk.bytes);
  await restore(container);
  const held = await untilHost(site, 'is held', ({ status }) =>
    (status.holds ?? []).some(({ reason }) => reason.startsWith('restored: ')),
  );
  const isOld = held.status.run?.kind === 'RUN_KIND_CLEAN' && held.status.claim === undefined;
  findings.check('the restored store knows h1 as it was', isOld, JSON.stringify(held.status));
  const explained = await stack.cli(['host', 'explain', 'h1']);
  const advice = `rackwright rack accept-restored-store ${RACK}`;
  findings.check('explain says who has to look', explained.includes(advice), explained);
  await checkUnused(site, bmc, 'while it is held');

  await stack.cli(['rack', 'accept-restored-store', RACK, '--reason', 'seen to']);
  const waiting = await untilHost(site, 'waits for a person', ({ status }) =>
    (status.backoff?.givenUpReason ?? '').startsWith('the store was restored'),
  );
  const { run } = waiting.status;
  findings.check(
    'the clean of yesterday does not go on',
    run?.phase === 'RUN_PHASE_ENDED' && run.outcome === 'RUN_OUTCOME_FAILED',
    JSON.stringify(run),
  );
  await checkUnused(site, bmc, 'once the loss is accepted');

  // The password of its BMC comes out of the restored store, by the key of the credential.
  await stack.cli(['host', 'adopt', 'h1', '--to', 'external', '--reason', 'the build farm’s']);
  await untilHost(site, 'is the build farm’s', ({ status }) => {
    return status.state === 'HOST_STATE_EXTERNAL' && status.run?.phase === 'RUN_PHASE_ENDED';
  });
  findings.say('a person has resolved it: h1 is adopted');
  await checkUnused(site, bmc, 'after its adoption');
}

async function restore(container: Container): Promise<void> {
  const [, commands = [], [asUnit = ''] = []] = backupCommands(container);
  const place = commands.findIndex((line) => line.includes(' restore --from '));
  if (place < 0) throw new Error(`${README} shows no restore`);
  for (const line of commands.with(place, asUnit)) await container.run(['sh', '-ec', line]);
  await untilActive(container, SERVICE);
}

/** No block of its disks is another, and nobody has switched it on. */
async function checkUnused({ lab, findings }: Site, bmc: LabBmc, when: string): Promise<void> {
  for (const { name, image, patternName } of bmc.machine.disks) {
    findings.check(`${name} is as it was ${when}`, isUntouched(image, patternName));
  }
  const power = await ipmitool(lab.network, bmc.address(), ['chassis', 'power', 'status']);
  findings.check(`h1 is off ${when}`, / is off/.test(power), power);
}

/** What is looked at of a host, as the command shows it. */
interface HostLook {
  readonly status: {
    readonly state: string;
    readonly holds?: readonly { readonly reason: string }[];
    readonly claim?: object;
    readonly backoff?: { readonly givenUpReason?: string };
    readonly run?: { readonly kind: string; readonly phase: string; readonly outcome?: string };
  };
}

async function untilHost(
  { stack }: Site,
  what: string,
  accept: (host: HostLook) => boolean,
): Promise<HostLook> {
  let last = '';
  let found: HostLook | undefined;
  const look = async (): Promise<boolean> => {
    const { code, out, err } = await stack.tryCli(['host', 'get', 'h1', '-o', 'json']);
    last = `${out}${err}`;
    if (code !== 0) return false;
    const host = JSON.parse(out) as HostLook;
    if (accept(host)) found = host;
    return found !== undefined;
  };
  await until(`h1 ${what}`, WAIT_MS, look).catch((cause: unknown) => {
    throw new Error(`${String(cause)}: ${last}`, { cause });
  });
  if (found === undefined) throw new Error('unreachable: it was found');
  return found;
}
