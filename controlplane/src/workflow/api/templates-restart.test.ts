/** Templates and their requests, after a restart of the control plane. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { connect, operatorClients } from '@rackwright/rpc';
import { openSqliteStore } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { failureOf, startOn } from '../../services/rpc.fixture.ts';

let folder: string;
let running: Awaited<ReturnType<typeof start>>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-templates-'));
  running = await start();
});

afterEach(async () => {
  await running.stop();
  await rm(folder, { recursive: true });
});

async function start() {
  const path = join(folder, 'state.db');
  const store = await openSqliteStore({ path, random: nodeRandom(), clock: nodeClock() });
  const controlPlane = await startOn(folder, store);
  const token = (await readFile(join(folder, 'identity/admin.token'), 'utf8')).trim();
  const channel = connect({
    target: `127.0.0.1:${controlPlane.operatorsPort}`,
    caPem: controlPlane.identity.caCertificatePem,
  });
  const stop = async () => {
    channel.close();
    await controlPlane.close();
  };
  return { stop, ...operatorClients(channel, token) };
}

async function restart(): Promise<void> {
  await running.stop();
  running = await start();
}

const source = (seconds: number) => `steps:\n  - { name: a, wait: ${seconds}s }\n`;

test('each request acts once and answers the same, however often it restarts', async () => {
  const name = 'templates/a';
  const create = { templateId: 'a', template: { source: source(1) }, requestId: 'one' };
  const made = await running.templates.createTemplate(create);
  await restart();
  expect(await running.templates.createTemplate(create)).toEqual(made);
  const change = { template: { name, source: source(2) }, requestId: 'two' };
  const changed = await running.templates.updateTemplate(change);
  await restart();
  expect(await running.templates.updateTemplate(change)).toEqual(changed);
  const gone = await running.templates.deleteTemplate({ name, requestId: 'three' });
  await restart();
  expect(await running.templates.deleteTemplate({ name, requestId: 'three' })).toEqual(gone);
  expect((await failureOf(running.templates.getTemplate({ name }))).kind).toBe('notFound');
  expect((await running.templates.createTemplate(create)).uid).toBe(made.uid);
  const anew = { ...create, requestId: 'four' };
  expect((await running.templates.createTemplate(anew)).uid).not.toBe(made.uid);
});
