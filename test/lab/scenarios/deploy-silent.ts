/**
 * `--deploy-one --silent`: an image that starts, applies its first-boot data, and never says so.
 * Nothing of it is in service, and host and pool say why.
 */
import { isPoolBecause } from '@rackwright/messages';
import type { LabImage } from '../image/build.ts';
import { conditionOf, watchPool } from '../pool-watch.ts';
import { isEnded, powerOff, RUN_LIMIT_MS } from '../site.ts';
import {
  checkErased,
  checkLastCertificate,
  createPool,
  historyOf,
  isAvailable,
  POOL,
  USER_DATA,
} from './deploy.ts';
import { checkBoots, checkWrittenDisks } from './deploy-judge.ts';
import { HOST, type Story, VERSION } from './one-host.ts';

/** What has to stand in the words of the failure. */
const SAID = [
  ['that it was switched on', /was switched on/],
  ['since when', /was switched on at \d{4}-\d\d-\d\dT\d\d:\d\d/],
  ['for how long it has not phoned home', /has not phoned home in 90 seconds/],
  ['what was seen of it', /a system on it asked for an address at \d{4}-/],
  ['what to look at', /look at its console: .* address .* cloud-init/i],
] as const;

/** A pool gives the machine the image; it is halted, and once it is gone the machine is erased. */
export async function runSilent(story: Story<LabImage>): Promise<void> {
  const { site, bmc, image, reference, registry } = story;
  const { stack, watch, findings } = site;
  const { machine } = bmc;
  await createPool(site, registry, '90s');
  const pool = watchPool(stack, POOL);
  const halted = await pool.waitFor('the halt of the rollout', RUN_LIMIT_MS, (view) => {
    return isPoolBecause(view.status, 'Degraded', 'RolloutHalted');
  });
  const { status } = await watch.waitFor(HOST, 'the failure of the host', RUN_LIMIT_MS, (host) => {
    return host.status.lastError !== undefined;
  });
  const { type, message = '' } = status.lastError?.failure ?? {};
  findings.say(`       the host says: ${type}: ${message}`);
  findings.check('it was not proved', type === 'FAILURE_TYPE_NOT_PROVED', type);
  for (const [what, form] of SAID) findings.check(`it says ${what}`, form.test(message), message);
  const text = conditionOf(halted, 'Degraded')?.message ?? '';
  findings.say(`       the pool says: ${text}`);
  const explainedPool = await stack.cli(['pool', 'explain', POOL]);
  findings.say(explainedPool.trimEnd().replaceAll(/^/gm, '       '));
  const saysWhy = explainedPool.includes(HOST) && explainedPool.includes('has not phoned home');
  findings.check('explain of the pool names the host and why', saysWhy, explainedPool);
  const history = await historyOf(site);
  findings.check('the image is in no history', history.length === 0, JSON.stringify(history));
  const states = watch.history(HOST).map((view) => view.status.state);
  const wasIn = states.includes('HOST_STATE_PROVISIONED');
  findings.check('the host was never called provisioned', !wasIn, states.join(' '));
  const isDirty = status.state === 'HOST_STATE_MANAGEABLE' && status.dirty === true;
  findings.check('it is manageable and dirty', isDirty, JSON.stringify(status));
  const shown = await stack.cli(['host', 'get', HOST]);
  const onDisk = `on the disk: the whole of ${reference}`;
  findings.check('the fault names what is on its disk', shown.includes(onDisk), shown);
  checkBoots(findings, machine, [VERSION]);
  const explained = await stack.cli(['host', 'explain', HOST]);
  findings.say(explained.trimEnd().replaceAll(/^/gm, '       '));
  await stack.cli(['pool', 'delete', POOL]);
  await watch.waitFor(HOST, 'h1 is available again', RUN_LIMIT_MS, (host) => {
    return isAvailable(host) && isEnded(host, 'CLEAN', 'SUCCEEDED');
  });
  await checkWrittenDisks(site, machine, [image], USER_DATA);
  await powerOff(site, bmc);
  checkErased(findings, machine);
  for (const { serial } of machine.disks) await checkLastCertificate(site, HOST, serial);
}
