/** Views of consoles on simulated time: BMCs in memory, and what the agent sends of them. */
import { create } from '@bufbuild/protobuf';
import { type BmcResult, failed, type OnConsoleOutput, transient } from '@rackwright/bmc';
import { agent, asAgentSessionId, ConsoleState, FailureType } from '@rackwright/messages';
import { quietLog } from '@rackwright/platform/testing';
import { beforeEach, expect, test } from 'vitest';
import { SharedConsoles } from './console/index.ts';
import { RackConsoles } from './console-views.ts';
import { TestClock } from './session/testing/clock.ts';

const guid = Uint8Array.from({ length: 16 }, (_, index) => index * 17);
const guidHex = Buffer.from(guid).toString('hex');
const access = create(agent.BmcAccessSchema, {
  ...{ address: '10.0.0.1', credential: 'credentials/bmc', credentialVersion: 1n },
  protocol: 'ipmi',
});
const limits = {
  ...{ viewsMax: 2, pendingBytesMax: 64, pieceBytesMax: 16, pieceEveryMs: 50 },
  ...{ untakenBytesMax: 32, retryMs: 1_000, sessionCheckMs: 5_000 },
};

const ok = <T>(value: T) => ({ kind: 'ok', value }) as const;

let time: TestClock;
let views: RackConsoles;
let told: agent.ConsoleOutput[];
let machine: OnConsoleOutput;
let closes: number;
let preempt: () => void;
/** The BMC's answer to a request for its console; undefined: it opens it. */
let refusal: BmcResult<never> | undefined;
let endIt: () => void;
let isConnected: boolean;

beforeEach(() => {
  time = new TestClock();
  [told, closes, refusal, isConnected] = [[], 0, undefined, true];
  const openConsole = async (hear: OnConsoleOutput, signal?: AbortSignal) => {
    if (signal?.aborted === true) return transient('cancelled', 'given up');
    if (refusal !== undefined) return refusal;
    machine = hear;
    const ended = Promise.withResolvers<void>();
    endIt = ended.resolve;
    const close = (): void => {
      closes += 1;
      ended.resolve();
    };
    return ok({ close, ended: ended.promise });
  };
  const driver = { readIdentity: async () => ok({ guidHex }), openConsole };
  const drivers = {
    driver: (_: unknown, use?: { readonly preempt?: () => void }) => {
      preempt = use?.preempt ?? (() => undefined);
      return driver;
    },
  };
  const credential = { name: access.credential, version: 1n, username: 'u', password: 'p' };
  views = new RackConsoles({
    ...{ clock: time.open().clock, log: quietLog, consoles: new SharedConsoles(() => undefined) },
    drivers,
    session: () => ({
      credential: () => credential,
      status: () =>
        isConnected
          ? { kind: 'connected', sessionId: asAgentSessionId('s') }
          : { kind: 'connecting' },
      reportConsole: (output) => void told.push(output),
    }),
    limits,
  });
});

function watch(id: string, changes: Partial<agent.WatchConsole> = {}): void {
  const order = { id, hostUid: `u${id}`, bmc: access, expectedIdentity: { guid } };
  views.watch(Object.assign(create(agent.WatchConsoleSchema, order), changes));
}
const say = (text: string): void => machine(new TextEncoder().encode(text));
const contentOf = (outputs: readonly agent.ConsoleOutput[]): string =>
  outputs.map(({ content }) => new TextDecoder().decode(content)).join('');
const statesOf = () => told.map(({ state }) => state).filter((state) => state !== 0);

test('a view shows kept and new output; the last view to close releases the BMC', async () => {
  watch('1');
  await time.run(100);
  expect(told).toMatchObject([{ id: '1', hostUid: 'u1', state: ConsoleState.HEARD }]);
  say('GRUB ');
  await time.run(100);
  views.end('1');
  await time.run(0);
  expect(closes).toBe(1);
  told.length = 0;
  watch('2', { hostUid: 'u1' });
  await time.run(100);
  say('login:');
  await time.run(100);
  expect(contentOf(told)).toBe('GRUB login:');
  expect(told.every(({ id }) => id === '2')).toBe(true);
});

test('a flood is sent in acknowledged pieces, and loses its oldest bytes', async () => {
  watch('1');
  await time.run(100);
  told.length = 0;
  say('x'.repeat(1_000));
  say('last words');
  await time.run(10_000);
  expect(told.map(({ content }) => content.length)).toEqual([16, 16]);
  views.taken(32);
  views.taken(1_000_000);
  await time.run(10_000);
  expect(told.reduce((sum, { content }) => sum + content.length, 0)).toBe(64);
  expect(contentOf(told).endsWith('last words')).toBe(true);
  expect(told[0]?.droppedBytes).toBe(1_010n - 64n);
});

test('views are served in turn, and each gets only its own output', async () => {
  watch('1');
  await time.run(100);
  const first = machine;
  watch('2');
  await time.run(100);
  told.length = 0;
  first(new Uint8Array(64));
  say('short');
  await time.run(100);
  expect(told.map(({ id }) => id)).toEqual(['1', '2']);
});

test('a view is tried again when the console is taken, ends, or gives way to work', async () => {
  refusal = transient('busy', 'somebody else has it');
  watch('1');
  await time.run(500);
  expect(told).toMatchObject([{ state: ConsoleState.WAITING, message: 'somebody else has it' }]);
  refusal = undefined;
  await time.run(1_000);
  endIt();
  await time.run(2_000);
  const { HEARD, WAITING } = ConsoleState;
  expect(statesOf()).toEqual([WAITING, HEARD, WAITING, HEARD]);
  views.end('1');
  watch('2');
  preempt();
  await time.run(100);
  expect(statesOf().at(-1)).toBe(WAITING);
  await time.run(2_000);
  expect(statesOf().at(-1)).toBe(HEARD);
});

test('a view that cannot open ends with a reason: another BMC, no console, too many', async () => {
  watch('1', {
    expectedIdentity: create(agent.SetPowerSchema, {
      expectedIdentity: { guid, serial: 'ANOTHER' },
    }).expectedIdentity,
  });
  await time.run(100);
  refusal = failed('unsupported', 'none here');
  watch('2');
  await time.run(100);
  expect(told.map(({ failure }) => failure)).toEqual([
    FailureType.IDENTITY_MISMATCH,
    FailureType.UNSUPPORTED,
  ]);
  refusal = undefined;
  for (const id of ['3', '4', '5']) watch(id);
  await time.run(500);
  const refused = told.filter(({ failure }) => failure === FailureType.CONFLICT);
  expect(refused).toMatchObject([
    { id: '5', message: '2 consoles are shown by this agent already' },
  ]);
  views.end('3');
  views.end('4');
  await time.run(0);
  expect(closes).toBe(2);
});

test('a view ends with its session; the next session counts bytes from 0', async () => {
  watch('1');
  await time.run(100);
  say('x'.repeat(40));
  await time.run(1_000);
  views.sessionOpened();
  await time.run(0);
  expect(closes).toBe(1);
  told.length = 0;
  await time.run(10_000);
  expect(told).toEqual([]);
  watch('1');
  await time.run(1_000);
  expect(contentOf(told)).toBe('x'.repeat(32));
});

test('the BMC is released when a session is lost and no other session opens', async () => {
  watch('1');
  await time.run(20_000);
  expect(closes).toBe(0);
  isConnected = false;
  await time.run(5_000);
  expect(closes).toBe(1);
});
