/** Against an agent that a test plays: the bytes that it keeps, and its false answers. */
import { createHash } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import * as runner from '@rackwright/messages/runner';
import { nodeClock } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { exchangeBytes, type OpenExchange } from './exchange.ts';

type Said = NonNullable<MessageInitShape<typeof runner.ExchangeResponseSchema>['message']>;

const bytes = 200_000;
const digest = (content: Uint8Array) => createHash('sha256').update(content).digest();

/** `answer` gets all received messages, and returns the next ones. */
function agent(answer: (came: Buffer) => Said[]): OpenExchange {
  return async function* (requests) {
    const say = (message: Said) => create(runner.ExchangeResponseSchema, { message });
    yield say({ case: 'ready', value: true });
    const pieces: Uint8Array[] = [];
    for await (const { message } of requests) {
      if (message?.case === 'piece') pieces.push(new Uint8Array(message.value ?? []));
    }
    for (const message of answer(Buffer.concat(pieces))) yield say(message);
  };
}

async function exchange(open: OpenExchange) {
  const { signal } = new AbortController();
  const parts = { open, clock: nodeClock(), bootToken: 't', operationId: 'op', signal };
  return await exchangeBytes(parts, { bytes, content: new Uint8Array(70_000).fill(7) });
}

const back = Buffer.alloc(bytes, 9);
const honest = (came: Buffer): Said[] => [
  { case: 'receivedSha256', value: digest(came) },
  { case: 'piece', value: back },
  { case: 'sentSha256', value: digest(back) },
];

test('as many bytes come back as were sent, and all digests agree', async () => {
  const end = await exchange(agent(honest));
  expect(end).toMatchObject({ kind: 'done', sent: { bytes }, received: { bytes } });
});

test.each<[string, (came: Buffer) => Said[]]>([
  ['what was sent arrived changed', (came) => honest(came.fill(0, 5, 6))],
  [
    'what the agent sent arrived changed',
    (came) => honest(came).with(2, { case: 'sentSha256', value: digest(came) }),
  ],
  ['what the agent sent arrived changed', (came) => honest(came).toSpliced(1, 1)],
])('the runner finds a problem of the exchange: %s', async (problem, answer) => {
  expect(await exchange(agent(answer))).toMatchObject({ kind: 'changed', problem });
});

test.each<[string, (came: Buffer) => Said[]]>([
  ['the agent sends too much', (came) => honest(came).toSpliced(1, 0, ...honest(came).slice(1, 2))],
  ['the agent sends too much', (came) => [...honest(came).slice(0, 1), ...honest(came)]],
  ['the agent skips half of it', (came) => honest(came).slice(1)],
  ['the agent ended the exchange', (came) => honest(came).slice(0, 2)],
])('the exchange breaks off where %s', async (reason, answer) => {
  expect(await exchange(agent(answer))).toEqual({ kind: 'broken', reason });
});

test('a refused exchange, and a call that fails, leave no sender behind', async () => {
  const refusing: OpenExchange = async function* () {
    const message = { case: 'refused', value: 'no' } as const;
    yield create(runner.ExchangeResponseSchema, { message });
  };
  expect(await exchange(refusing)).toEqual({ kind: 'refused', reason: 'no' });
  const failing: OpenExchange = () => {
    throw new Error('reset');
  };
  expect(await exchange(failing)).toEqual({ kind: 'broken', reason: 'reset' });
});
