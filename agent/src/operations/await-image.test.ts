import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { agent, asRunNumber, DeployProof, deploymentIdOf } from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { OperationContext, Progress } from '../session/index.ts';
import { TestClock } from '../session/testing/clock.ts';
import { awaitImage } from './await-image.ts';

const id = deploymentIdOf('ab'.repeat(16), asRunNumber(3));

function setUp(deployment: MessageInitShape<typeof agent.DeploymentSchema> = { id }) {
  const time = new TestClock();
  const { clock } = time.open();
  const stop = new AbortController();
  const told: Progress[] = [];
  let begun = 0;
  const context: OperationContext = {
    signal: stop.signal,
    begin: async () => void (begun += 1),
    reportProgress: (progress) => told.push(progress),
    credential: () => Promise.reject(new Error('no secret is needed')),
    isLeaseValid: () => false,
    leaseLeftMs: () => 0,
    brake: () => undefined,
    remainingMs: () => 1_200_000 - clock.suspendAwareMs(),
    openGrant: () => Promise.reject(new Error('no boot is opened')),
    closeGrants: async () => {},
  };
  let isProved = false;
  const signs: agent.HostSign[] = [];
  const see = (kind: agent.HostSignKind) => signs.push(create(agent.HostSignSchema, { kind }));
  const waits: { wake: () => void }[] = [];
  const proofs = {
    waitUntilProved: async (_: string, waitMs: number, signal: AbortSignal) => {
      if (isProved || signal.aborted) return isProved;
      await new Promise<void>((resolve) => {
        waits.push({ wake: resolve });
        clock.after(waitMs, resolve);
        signal.addEventListener('abort', () => resolve());
      });
      return isProved;
    },
    signsSince: () => [...signs],
  };
  const step = 'deploy.await_image';
  const request = create(agent.RunStepSchema, { step, deployment });
  const operation = create(agent.OperationSchema, { id: `${id}/4/1`, hostUid: 'ab'.repeat(16) });
  const run = () => awaitImage({ proofs, clock }, operation, request, context);
  const prove = (): void => {
    isProved = true;
    for (const { wake } of waits) wake();
  };
  return { begun: () => begun, prove, run, see, stop, time, told };
}

test('the step ends once the host has called, and begins no work', async () => {
  const { begun, prove, run, told, time } = setUp();
  const ended = run();
  await time.run(1_000);
  expect(told).toEqual([expect.objectContaining({ text: 'waits until the host phones home' })]);
  prove();
  expect(await ended).toEqual({ kind: 'complete' });
  expect(begun()).toBe(0);
});

test('a host that called before the step began is not waited for', async () => {
  const { prove, run } = setUp();
  prove();
  expect(await run()).toEqual({ kind: 'complete' });
});

test('the step ends at once if power counts as proof', async () => {
  const { run } = setUp({ id, deploy: { proof: DeployProof.POWER_ON } });
  expect(await run()).toEqual({ kind: 'complete' });
});

test('a host that never proves its image fails, and the failure says what was seen', async () => {
  const { run, see, time, told } = setUp();
  const { ADDRESS_ASKED, NETBOOT } = agent.HostSignKind;
  const ended = run();
  see(NETBOOT);
  await time.run(600_000);
  see(ADDRESS_ASKED);
  await time.run(600_000);
  expect(await ended).toMatchObject({
    ...{ kind: 'failed', type: 'notProved' },
    message: expect.stringMatching(/waited for since 2023-.* has not phoned home/),
    observations: { signs: [{ kind: NETBOOT }, { kind: ADDRESS_ASKED }] },
  });
  const kinds = told.map(({ signs = [] }) => signs.map(({ kind }) => kind));
  expect(kinds, 'and while it waits, once for each kind').toEqual([
    [],
    [NETBOOT],
    [NETBOOT, ADDRESS_ASKED],
  ]);
});

test('the step can be cancelled', async () => {
  const { run, stop, time } = setUp();
  const ended = run();
  await time.run(10);
  stop.abort();
  expect(await ended).toMatchObject({ kind: 'failed', type: 'cancelled' });
});
