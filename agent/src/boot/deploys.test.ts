/** What the boot path gives to hosts of deployments, over real HTTP. */

import { asMac } from '@rackwright/dhcp';
import { valid } from '@rackwright/platform';
import { nodeClock, nodeHttp } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { afterEach, expect, test } from 'vitest';
import { BootEvents } from './boot-events.ts';
import { httpLimitsDefault } from './config.ts';
import type { DeployPages, NetbootBoot } from './deploy-pages.ts';
import { type HttpShell, startHttp } from './http.ts';
import { BootScripts } from './scripts.ts';
import { bootUrls } from './urls.ts';

const mac = '52:54:00:77:00:01';
const token = 'ab'.repeat(32);
let shell: HttpShell | undefined;

afterEach(() => shell?.close());

const names = { kernel: 'kernel', initrd: 'initrd' };

function noBootEvents(): BootEvents {
  const memory = () => ({ snapshot: { generation: 1, hosts: [] }, grants: [] });
  return new BootEvents({ clock: nodeClock(), log: quietLog, memory, onEvent: () => {}, ...names });
}

async function serve(pages: Partial<DeployPages>, addresses = ['127.0.0.1']) {
  const lines: string[] = [];
  const note = (fields: object, message: string): void => {
    lines.push(`${message} ${JSON.stringify(fields)}`);
  };
  const runner = { kernel: 'kernel', initrd: 'initrd', agentPort: 1, fingerprint: '00'.repeat(32) };
  const deploys: DeployPages = {
    phoneHome: async () => 'wrong',
    netboot: () => ({ kind: 'waiting', text: 'on its way' }),
    seedFile: () => undefined,
    ...pages,
  };
  const parts = {
    ...{ clock: nodeClock(), log: { ...quietLog, warn: note }, deploys },
    bootGate: () => ({ kind: 'image', hostUid: 'u1', hostName: 'one' }) as const,
  };
  const bootOf = () => valid({ loaders: {}, kernelArguments: [] });
  const scripts = new BootScripts({ ...parts, bootOf, runner: { ...runner, kernelArguments: [] } });
  const listening = await startHttp(
    nodeHttp(),
    { address: '127.0.0.1', port: 0 },
    {
      ...{ ...parts, scripts, limits: httpLimitsDefault, files: new Map() },
      bootEvents: noBootEvents(),
      knownHost: () => undefined,
      fileState: async () => undefined,
      imageBlob: () => 'later',
    },
    (asked) => (addresses.includes(asked) ? bootUrls(asked, 8080) : undefined),
  );
  shell = listening;
  const ask = (path: string, init?: RequestInit) =>
    fetch(`http://127.0.0.1:${listening.port}${path}`, init);
  return { ask, lines };
}

const home = `/phone-home/u1.3/${token}`;
const body = `instance_id=u1%2F3&pub_key_rsa=${'x'.repeat(4_000)}`;

test('a host that phones home is heard once it is written down, whatever it sends', async () => {
  const heard: string[][] = [];
  const written = Promise.withResolvers<'proved'>();
  const { ask } = await serve({
    phoneHome: (...call) => {
      heard.push(call);
      return written.promise;
    },
  });
  let isAnswered = false;
  const asked = ask(home, { method: 'POST', body }).finally(() => (isAnswered = true));
  await expect.poll(() => heard).toEqual([['u1.3', token, '127.0.0.1']]);
  expect(isAnswered).toBe(false);
  written.resolve('proved');
  expect((await asked).status).toBe(200);
  expect((await ask(home, { method: 'POST' })).status).toBe(200);
  expect((await ask(home, { method: 'POST', body: 'x'.repeat(100_000) })).status).toBe(413);
});

test.each([
  ['wrong', 403],
  ['outdated', 409],
  ['notDurable', 503],
] as const)('a call that is %s is refused, and no token stands in the log', async (why, status) => {
  const { ask, lines } = await serve({ phoneHome: async () => why });
  expect((await ask(home, { method: 'POST', body })).status).toBe(status);
  expect(lines).toEqual([expect.stringMatching(/HTTP request refused .*\/phone-home\/u1\.3\/…/)]);
  expect(lines.join()).not.toContain(token);
});

test('a host that phones home has to POST, to an address that hosts are told of', async () => {
  const pages = { phoneHome: async () => 'proved' as const };
  expect((await (await serve(pages)).ask(home)).status).toBe(405);
  await shell?.close();
  const elsewhere = await serve(pages, ['10.0.0.1']);
  expect((await elsewhere.ask(home, { method: 'POST' })).status).toBe(421);
});

const ready: NetbootBoot = {
  kind: 'ready',
  kernel: 'aa'.repeat(32),
  initrds: ['bb'.repeat(32), 'cc'.repeat(32)],
  kernelArguments: ['console=ttyS0', 'quiet'],
  seedPath: `/seed/u1.3/${token}/`,
};
const script = `/boot/${mac}/script.ipxe`;

test('a host without a disk boots what its snapshot names, and asks again for ever', async () => {
  const { ask } = await serve({ netboot: () => ready });
  const blob = (hex: string): string => `http://127.0.0.1:8080/v2/blobs/sha256/${hex.repeat(32)}`;
  const own = 'BOOTIF=01-52-54-00-77-00-01';
  const seed = `ds=nocloud-net;s=http://127.0.0.1:8080/seed/u1.3/${token}/`;
  expect(await (await ask(script)).text()).toBe(
    [
      '#!ipxe',
      'echo Rackwright: one boots its image over the network',
      `kernel --name kernel ${blob('aa')} initrd=initrd0 initrd=initrd1 console=ttyS0 quiet ` +
        `${own} ${seed} && initrd --name initrd0 ${blob('bb')} && ` +
        `initrd --name initrd1 ${blob('cc')} && boot ||`,
      ':again',
      'imgfree',
      'sleep 5',
      'chain --replace --autofree http://127.0.0.1:8080/boot/52-54-00-77-00-01/script.ipxe || ' +
        'goto again',
      '',
    ].join('\n'),
  );
});

test('a host waits for an image that is not here, in words that iPXE does not read', async () => {
  const { ask } = await serve({
    netboot: () => ({ kind: 'waiting', text: 'no ${net0/mac} && x' }),
  });
  const lines = (await (await ask(script)).text()).split('\n');
  expect(lines[1]).toBe('echo Rackwright: one waits for its image: no __net0_mac_ __ x');
  expect(lines.at(-2)).toMatch(/^chain --replace --autofree http/);
});

test('an image with a word that GRUB cannot be given has no script', async () => {
  const { ask } = await serve({ netboot: () => ({ ...ready, kernelArguments: ['a\nhalt'] }) });
  const answer = await ask(`/boot/${mac}/grub.cfg`);
  expect([answer.status, await answer.text()]).toEqual([500, '']);
});

test('U-Boot gets the image of a host without a disk, unless it could not boot it', () => {
  const one = { ...ready, initrds: ['bb'.repeat(32)] };
  let lines = 0;
  const log = { ...quietLog, error: () => void (lines += 1) };
  const scriptsFor = (boot: NetbootBoot) => {
    const bootGate = () => ({ kind: 'image', hostUid: 'u1', hostName: 'one' }) as const;
    const deploys: DeployPages = {
      phoneHome: async () => 'wrong',
      netboot: () => boot,
      seedFile: () => undefined,
    };
    const bootOf = () => valid({ loaders: {}, kernelArguments: [] });
    const runner = { ...names, agentPort: 1, fingerprint: '', kernelArguments: [] };
    return new BootScripts({ clock: nodeClock(), log, bootGate, bootOf, runner, deploys });
  };
  const ask = (scripts: BootScripts) =>
    scripts.of(asMac(mac), 'uBoot', bootUrls('10.77.0.1', 8080));
  const answerTo = (boot: NetbootBoot) => ask(scriptsFor(boot));
  const text = expect.stringContaining(`  initrd /v2/blobs/sha256/${'bb'.repeat(32)}\n`);
  expect(answerTo(one)).toEqual({ kind: 'script', text });
  const waiting = expect.stringMatching(/waits for its image: on its way\n$/);
  expect(answerTo({ kind: 'waiting', text: 'on its way' })).toEqual({
    kind: 'script',
    text: waiting,
  });
  expect(answerTo(ready)).toEqual({ kind: 'fault' });
  expect(answerTo({ ...one, kernelArguments: ['${serverip}'] })).toEqual({ kind: 'fault' });
  const asked = scriptsFor(ready);
  lines = 0;
  for (let count = 0; count < 1_000; count += 1) expect(ask(asked)).toEqual({ kind: 'fault' });
  expect(lines).toBe(30);
});

test('first-boot data is given to who has its token, and never logged with it', async () => {
  const seen: string[][] = [];
  const { ask, lines } = await serve({
    seedFile: (...asked) => {
      seen.push(asked);
      return asked[1] === token
        ? asked[2] === 'user-data'
          ? '#cloud-config\n'
          : undefined
        : false;
    },
  });
  const answer = await ask(`/seed/u1.3/${token}/user-data`);
  expect([answer.status, await answer.text()]).toEqual([200, '#cloud-config\n']);
  expect(seen).toEqual([['u1.3', token, 'user-data', 'http://127.0.0.1:8080']]);
  expect((await ask(`/seed/u1.3/${token}/other`)).status).toBe(404);
  expect((await ask('/seed/u1.3/00/user-data')).status).toBe(403);
  expect(lines).toHaveLength(2);
  expect(lines.join()).not.toContain(token);
});

test('a blob whose rest nobody fetches at this moment is to be asked for again', async () => {
  const { ask } = await serve({});
  const answer = await ask(`/v2/blobs/sha256/${'aa'.repeat(32)}`);
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2']);
});
