/**
 * `--deploy`: a pool of two machines. They get a Debian from a registry onto their disks, boot it
 * and phone home; the tag moves to an image that is not what it says, which halts the rollout, and
 * to a good one, which rescues it; one machine is given back and ends erased.
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isPoolBecause } from '@rackwright/messages';
import type { Digest } from '@rackwright/oci';
import { inspectDisk } from '../disk-image.ts';
import { describeHost, type HostView } from '../host-watch.ts';
import { buildImages, type LabImage } from '../image/build.ts';
import { type LabRegistry, startRegistry } from '../image/registry.ts';
import { conditionOf, type HistoryView, type PoolView, watchPool } from '../pool-watch.ts';
import type { LabMachine } from '../qemu.ts';
import {
  createHost,
  type Findings,
  powerOff,
  RUN_LIMIT_MS,
  type Scenario,
  type Site,
} from '../site.ts';
import { printStages } from '../stages.ts';
import { type CertificateView, isVerifiedByOpenssl, isVerifiedByUs } from './check.ts';
import { checkBoots, checkNotBootable, checkOneOut, checkWrittenDisks } from './deploy-judge.ts';

export const POOL = 'web';
export const TAG = 'stable';
const CREDENTIAL = 'registry';
/** The image is a fourth of it. */
export const DISK_MIB = 1024;
/** From the pool's first look to both machines running an image. */
const ROLLOUT_LIMIT_MS = 2 * RUN_LIMIT_MS;
/** At each boot the machine says on its serial port what became of this. */
export const USER_DATA = `#cloud-config
write_files:
  - path: /etc/lab-word
    content: "applied\\n"
bootcmd:
  - 'echo "lab: $(cat /etc/image-version) $(cat /etc/lab-word) $(hostname)" >/dev/ttyS0'
`;

/** What the steps share. */
interface Story {
  readonly site: Site;
  readonly pool: ReturnType<typeof watchPool>;
  readonly registry: LabRegistry;
  readonly first: LabImage;
  readonly second: LabImage;
}

/** The scenario. */
export const deployScenario: Scenario = {
  machines: ['h1', 'h2'].map((name) => ({
    name,
    processors: 2, // most of the time only one of them works
    disks: [{ name: 'disk0', bus: 'virtio', mebibytes: DISK_MIB, isBlank: true }],
  })),
  run: async (site) => {
    const { lab, stack, watch, findings } = site;
    for (const bmc of lab.bmcs) await createHost(site, bmc, 'available');
    // While they are cleaned.
    const [first, second] = await buildImages(join(lab.folder, 'images'), ['1', '2']);
    if (first === undefined || second === undefined) throw new Error('two images are built');
    const registry = await startRegistry(lab);
    await introduce(site, registry);
    const digest = await registry.push(first, TAG);
    for (const { name } of lab.machines) {
      await watch.waitFor(name, `${name} is available`, RUN_LIMIT_MS, isAvailable);
    }
    findings.say('both machines are available');
    await createPool(site, registry);
    const story: Story = { site, registry, first, second, pool: watchPool(stack, POOL) };
    const firstTime = await rollOut(story, digest, first);
    await haltAndCheck(story, firstTime);
    const rescue = await registry.push(second, TAG);
    const secondTime = await rollOut(story, rescue, second);
    const rolledOutMs = Date.now();
    await checkHistory(story, [secondTime, firstTime]);
    checkOneOut(findings, lab.machines, rolledOutMs);
    checkRuns(site);
    await giveBack(story);
    for (const machine of lab.machines) {
      checkBoots(findings, machine, ['1', '2']);
      await checkWrittenDisks(site, machine, [first, second], USER_DATA);
      printStages(site, machine);
    }
  },
};

export function isAvailable({ status }: HostView): boolean {
  return status.state === 'HOST_STATE_AVAILABLE';
}

/** The registry's authority and password, as an operator gives them. */
export async function introduce({ lab, stack }: Site, registry: LabRegistry): Promise<void> {
  const password = join(lab.folder, 'registry-password');
  writeFileSync(password, registry.password, { mode: 0o600 });
  const secret = ['--username', registry.user, '--password-file', password];
  await stack.cli(['credential', 'create', CREDENTIAL, ...secret]);
  const asked = ['--authority', registry.authority, '--credential', CREDENTIAL];
  await stack.cli(['fleet', 'registry', 'set', registry.name, ...asked]);
}

/** Of all machines, one at a time; halted by the first that fails. */
export async function createPool(
  { lab, stack }: Site,
  registry: LabRegistry,
  proofTimeout = '600s',
): Promise<void> {
  const file = join(lab.folder, 'pool.yaml');
  const spec = {
    hosts: { names: lab.machines.map(({ name }) => `hosts/${name}`) },
    image: `${registry.repository}:${TAG}`,
    pollInterval: '10s',
    rollout: { maxUnavailable: { count: 1 }, failureThreshold: { count: 1 } },
    deploy: { firstBoot: { userData: USER_DATA }, proofTimeout },
  };
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ kind: 'Pool', name: `pools/${POOL}`, spec }));
  await stack.cli(['apply', '-f', file, '--yes']);
}

/** A digest, and between which times it came onto its last host. */
interface Deployed {
  readonly digest: Digest;
  readonly version: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Waits until both machines run the image that the tag stands for; answers when that was. */
async function rollOut(
  { site, pool }: Story,
  digest: Digest,
  { version }: LabImage,
): Promise<Deployed> {
  const { findings, lab, watch } = site;
  const fromMs = Date.now();
  const done = await pool.waitFor(`the rollout of version ${version}`, ROLLOUT_LIMIT_MS, (view) => {
    const { target, currentCount } = view.status ?? {};
    return target?.digest === digest && currentCount === lab.machines.length;
  });
  findings.check(
    `the pool knows version ${version} by its label`,
    done.status?.target?.version === version,
    JSON.stringify(done.status?.target),
  );
  for (const { name } of lab.machines) {
    const { status } = await watch.waitFor(name, `${name} is told on it`, RUN_LIMIT_MS, (host) => {
      return host.status.image?.endsWith(`@${digest}`) === true && !isAtWork(host);
    });
    const isIn = status.state === 'HOST_STATE_PROVISIONED';
    findings.check(`${name} runs version ${version}`, isIn, describeHost(watch.latest(name)));
  }
  return { digest, version, fromMs, toMs: Date.now() };
}

function isAtWork({ status }: HostView): boolean {
  return status.run !== undefined && status.run.phase !== 'RUN_PHASE_ENDED';
}

/** An image whose content is not what its manifest says: one host fails on it, and no other. */
async function haltAndCheck(story: Story, before: Deployed): Promise<void> {
  const { site, pool, registry, first, second } = story;
  const { findings, watch, stack, lab } = site;
  const lie = { version: 'bad', packed: second.packed, disk: first.disk };
  const bad = await registry.push(lie, TAG);
  const halted = await pool.waitFor('the halt of the rollout', RUN_LIMIT_MS, (view) => {
    return isPoolBecause(view.status, 'Degraded', 'RolloutHalted');
  });
  const text = conditionOf(halted, 'Degraded')?.message ?? '';
  findings.say(`       the pool says: ${text}`);
  const { target, failedCount } = halted.status ?? {};
  findings.check('it is the bad image that has halted it', target?.digest === bad, text);
  findings.check('one host has failed, which is all that may', failedCount === 1, text);
  const failed = lab.machines.filter(({ name }) => watch.latest(name)?.status.lastError);
  const [machine] = failed;
  const names = failed.map(({ name }) => name).join(' ');
  findings.check('one host shows an error, the canary', failed.length === 1, names);
  if (machine === undefined) return;
  const failure = watch.latest(machine.name)?.status.lastError?.failure;
  findings.say(`       ${machine.name} says: ${failure?.type}: ${failure?.message}`);
  findings.check(
    'it failed since the content has another digest',
    failure?.type === 'FAILURE_TYPE_IMAGE_DIGEST_MISMATCH',
    JSON.stringify(failure),
  );
  checkNotBootable(findings, machine);
  const other = lab.machines.find(({ name }) => name !== machine.name);
  const untouched = watch.latest(other?.name ?? '')?.status;
  const stays = untouched?.image?.endsWith(`@${before.digest}`) === true;
  findings.check(`${other?.name} runs on as it was`, stays, JSON.stringify(untouched?.run));
  const listed = await historyOf(site);
  const isKnown = listed.some((entry) => entry.digest === bad);
  findings.check('the bad image is in no history', !isKnown, JSON.stringify(listed));
  const explained = await stack.cli(['pool', 'explain', POOL]);
  findings.check('explain names the host', explained.includes(machine.name), explained);
}

/** As `rackwright pool history` tells it. */
export async function historyOf({ stack }: Site): Promise<readonly HistoryView[]> {
  const text = await stack.cli(['pool', 'history', POOL, '-o', 'json']);
  const { entries = [] } = JSON.parse(text) as { entries?: readonly HistoryView[] };
  return entries;
}

/** Both digests, newest first, each on two hosts, deployed last when its rollout ended. */
async function checkHistory({ site }: Story, newestFirst: readonly Deployed[]): Promise<void> {
  const { findings, stack } = site;
  const entries = await historyOf(site);
  const found = JSON.stringify(entries);
  findings.check('the history has two digests', entries.length === 2, found);
  for (const [n, { digest, version, fromMs, toMs }] of newestFirst.entries()) {
    const entry = entries[n];
    const label = `history, version ${version}`;
    const isRight = entry?.digest === digest && entry.version === version;
    findings.check(`${label}: digest and version`, isRight, found);
    findings.check(`${label}: two hosts were brought to it`, entry?.hostCount === 2, found);
    const running = n === 0 ? 2 : 0;
    findings.check(`${label}: ${running} run it`, (entry?.currentHosts ?? 0) === running, found);
    const at = Date.parse(entry?.lastDeployed ?? '');
    findings.check(`${label}: its time`, fromMs <= at && at <= toMs, entry?.lastDeployed ?? '');
  }
  const table = await stack.cli(['pool', 'history', POOL]);
  findings.say(table.trimEnd().replaceAll(/^/gm, '       '));
  const rows = table.trimEnd().split('\n');
  const [title = '', ...lines] = rows;
  findings.check('the table has a line for each', lines.length === 2, table);
  for (const [n, { version }] of newestFirst.entries()) {
    const row = new RegExp(`^sha256:\\S+ +${version} +2 +.* ${n === 0 ? 2 : 0} *$`);
    findings.check(`line ${n + 1} is version ${version}`, row.test(lines[n] ?? ''), lines[n]);
  }
  findings.check('its columns are named', /^DIGEST .*HOSTS .*LAST DEPLOYED/.test(title), title);
}

/** By the API's own record: after the first image, the runs that take a host out never overlap. */
function checkRuns({ lab, watch, findings }: Site): void {
  const times = lab.machines.flatMap(({ name }) => reimages(watch.history(name)));
  times.sort((a, b) => a.fromMs - b.fromMs);
  const inTurn = times.every(({ fromMs }, n) => n === 0 || fromMs >= (times[n - 1]?.toMs ?? 0));
  findings.check(
    'three reimages were made, one after the other',
    inTurn && times.length === 3,
    JSON.stringify(times),
  );
}

/** A run that failed is followed by the next one in the same change, which shows when it ended. */
function reimages(views: readonly HostView[]) {
  const found = new Map<string, { readonly fromMs: number; toMs: number }>();
  let last = '';
  for (const { status } of views) {
    const { run } = status;
    if (run === undefined) continue;
    const before = found.get(last);
    const isNext = run.number !== last;
    if (isNext && before?.toMs === Infinity) before.toMs = Date.parse(run.startTime);
    if (run.kind === 'RUN_KIND_REIMAGE') {
      const toMs = run.endTime === undefined ? Infinity : Date.parse(run.endTime);
      found.set(run.number, { fromMs: Date.parse(run.startTime), toMs });
    }
    last = run.number;
  }
  return [...found.values()];
}

/** The second host leaves the pool, is released, and ends erased, certified and available. */
async function giveBack({ site, pool }: Story): Promise<void> {
  const { lab, stack, watch, findings } = site;
  const bmc = lab.bmcs[1];
  if (bmc === undefined) throw new Error('the scenario has two machines');
  const { machine } = bmc;
  const { name } = machine;
  await stack.cli(['pool', 'update', POOL, '--host', 'h1']);
  await pool.waitFor(`${name} has left the pool`, RUN_LIMIT_MS, hasOneHost);
  await watch.waitFor(name, `${name} is unclaimed`, RUN_LIMIT_MS, ({ status }) => !status.claim);
  await stack.cli(['host', 'release', name, '--yes']);
  await watch.waitFor(name, `${name} is available again`, RUN_LIMIT_MS, isAvailable);
  await powerOff(site, bmc);
  checkErased(findings, machine);
  for (const { serial } of machine.disks) await checkLastCertificate(site, name, serial);
}

/** Nothing is on its disks. The machine must be off. */
export function checkErased(findings: Findings, { name, disks }: LabMachine): void {
  for (const { image, patternName } of disks) {
    const verdict = inspectDisk(image, patternName);
    const isZero = verdict.allZero === verdict.blocks;
    findings.check(`${name}: its disk is all zeros`, isZero, JSON.stringify(verdict));
  }
}

function hasOneHost({ status }: PoolView): boolean {
  return status?.hostCount === 1;
}

/** The disk was erased twice, and each certificate holds. */
export async function checkLastCertificate(
  site: Site,
  host: string,
  serial: string,
): Promise<void> {
  const { lab, stack, findings } = site;
  const trust = join(lab.folder, 'trust.pem');
  writeFileSync(trust, await stack.cli(['erasure', 'trust']));
  const text = await stack.cli(['erasure', 'list', '--host', host, '-o', 'json']);
  const { erasureCertificates = [] } = JSON.parse(text) as {
    readonly erasureCertificates?: readonly CertificateView[];
  };
  const own = erasureCertificates.filter((one) => one.deviceSerial === serial);
  findings.check(`${host}: its disk was certified twice`, own.length === 2, `${own.length}`);
  for (const certificate of own) {
    const id = certificate.name.replace(/^.*\//, '');
    const file = join(lab.folder, `${id}.json`);
    await stack.cli(['erasure', 'get', id, '--save', file]);
    findings.check(`${id} verifies with ours`, await isVerifiedByUs(site, file, trust));
    findings.check(`${id} verifies with openssl`, await isVerifiedByOpenssl(file, trust));
  }
}
