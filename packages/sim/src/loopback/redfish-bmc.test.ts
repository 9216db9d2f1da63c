import { nodeHttpClient } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { type RedfishBmc, startRedfishBmc } from './redfish-bmc.ts';

const limits = {
  connectTimeoutMs: 10_000,
  requestTimeoutMs: 10_000,
  bodyBytesMax: 100_000,
  headerBytesMax: 16_384,
};

function start(number: number): Promise<RedfishBmc> {
  return startRedfishBmc({
    address: `127.0.0.${number + 1}`,
    user: 'admin',
    password: 'secret',
    identity: { uuid: `${number}`, serial: `HOST-${number}`, manufacturer: 'm', model: 'o' },
    machine: { powerOn: () => {}, powerOff: () => {}, isOn: () => false },
  });
}

function ask({ address, port, certificateSha256 }: RedfishBmc) {
  const peer = nodeHttpClient().peer({ address, port, certificateSha256 }, limits);
  const answer = peer.request({ method: 'GET', path: '/redfish/v1/', headers: {} });
  return answer.finally(() => peer.close());
}

test('dozens stand in one process, each with a certificate of its own', async () => {
  const bmcs = await Promise.all(Array.from({ length: 40 }, (_, number) => start(number)));
  const answers = await Promise.all(bmcs.map(ask));
  expect(answers.map((answer) => answer.kind === 'answered' && answer.status)).toEqual(
    bmcs.map(() => 200),
  );
  expect(new Set(bmcs.map(({ certificateSha256 }) => certificateSha256)).size).toBe(40);
  await Promise.all(bmcs.map((bmc) => bmc.close()));
  expect(await Promise.all(bmcs.map(async (bmc) => (await ask(bmc)).kind))).toEqual(
    bmcs.map(() => 'broken'),
  );
});

test('closing ends requests that it never answered', async () => {
  const bmc = await start(1);
  bmc.setFault({ kind: 'silent', how: 'hang' });
  const waiting = ask(bmc);
  await expect.poll(() => bmc.calls(), { interval: 5 }).toHaveLength(1);
  await bmc.close();
  expect(await waiting).toMatchObject({ kind: 'broken' });
  expect(bmc.calls()).toEqual([{ method: 'GET', path: '/redfish/v1/' }]);
});
