/** One console for all its viewers. */
import { type BmcResult, failed, type OnConsoleOutput } from '@rackwright/bmc';
import fc from 'fast-check';
import { beforeEach, expect, test } from 'vitest';
import { Scrollback } from './scrollback.ts';
import { type OpenConsole, SharedConsoles } from './shared-consoles.ts';

const token = 'f0'.repeat(16);
const never = new AbortController().signal;

let consoles: SharedConsoles;
let bootToken: string | undefined;
let machine: OnConsoleOutput;
let opens: number;
let closes: number;
let endIt: () => void;

beforeEach(() => {
  [opens, closes, bootToken] = [0, 0, undefined];
  consoles = new SharedConsoles(() => bootToken, { keptBytesMax: 64, keptMax: 2 });
});

const open: OpenConsole = async (hear) => {
  opens += 1;
  machine = hear;
  const ended = Promise.withResolvers<void>();
  endIt = ended.resolve;
  const close = (): void => {
    closes += 1;
    ended.resolve();
  };
  return { kind: 'ok', value: { close, ended: ended.promise } };
};
const say = (text: string): void => machine(new TextEncoder().encode(text));
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

async function listen(hostUid = 'u1', signal = never, how = open) {
  let heard = '';
  const opened = await consoles.hear(
    hostUid,
    how,
    (bytes) => void (heard += textOf(bytes)),
    signal,
  );
  const close = (): void => void (opened?.kind === 'ok' && opened.value.close());
  return { opened, heard: () => heard, close };
}

test('all viewers share one session, and the BMC is released with the last of them', async () => {
  const first = await listen();
  say('a');
  const second = await listen();
  say('b');
  first.close();
  say('c');
  expect([first.heard(), second.heard(), opens, closes]).toEqual(['ab', 'bc', 1, 0]);
  second.close();
  await Promise.resolve();
  expect(closes).toBe(1);
  expect(textOf(consoles.since('u1', 0).content)).toBe('abc');
  await listen();
  expect(opens).toBe(2);
});

test('a viewer that leaves during the opening ends it, unless another one waits too', async () => {
  const opening = Promise.withResolvers<void>();
  const slow: OpenConsole = async (hear, signal) => {
    await opening.promise;
    const opened = signal.aborted ? undefined : await open(hear, signal);
    return opened ?? failed('unsupported', 'given up');
  };
  const [one, other] = [new AbortController(), new AbortController()];
  const [first, second] = [listen('u1', one.signal, slow), listen('u1', other.signal, slow)];
  one.abort();
  expect((await first).opened).toMatchObject({ kind: 'transient', reason: 'cancelled' });
  opening.resolve();
  expect((await second).opened).toMatchObject({ kind: 'ok' });
  expect([opens, closes]).toEqual([1, 0]);
});

test('an end by the BMC and a refusal reach everybody, and the next one opens again', async () => {
  const [first, second] = [await listen(), await listen()];
  endIt();
  for (const { opened } of [first, second]) if (opened?.kind === 'ok') await opened.value.ended;
  const refused: BmcResult<never> = failed('unsupported', 'none');
  const refusing: OpenConsole = async () => refused;
  expect((await listen('u1', never, refusing)).opened).toBe(refused);
  expect(
    await consoles.hear(
      'u2',
      () => undefined,
      () => {},
      never,
    ),
  ).toBeUndefined();
  await listen();
  expect(opens).toBe(2);
});

test('a token of a boot reaches nobody, also when the boot begins meanwhile', async () => {
  const { heard } = await listen();
  bootToken = token;
  consoles.bootBegins('u1');
  say(`token=${token.slice(0, 9)}`);
  consoles.bootBegins('u1');
  say(`${token.slice(9)} quiet`);
  const masked = `token=${'*'.repeat(token.length)} quiet`;
  expect(heard()).toBe(masked);
  expect(textOf(consoles.since('u1', 0).content)).toBe(masked);
});

test('kept output is bounded, sent from a given place, and forgotten with its host', async () => {
  await listen();
  say('x'.repeat(100));
  const { content, end } = consoles.since('u1', 0);
  expect([content.length, end]).toEqual([64, 100]);
  say('yz');
  expect(textOf(consoles.since('u1', end).content)).toBe('yz');
  consoles.forgetHost('u1');
  say('new');
  expect(textOf(consoles.since('u1', end).content)).toBe('new');
  for (const hostUid of ['u2', 'u3']) {
    await listen(hostUid);
    say('text');
  }
  expect(consoles.since('u1', 0).content.length).toBe(0);
});

test('a scrollback is the end of the output, and says how much was dropped', () => {
  const step = fc.oneof(fc.uint8Array({ maxLength: 50 }), fc.constant('take' as const));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const scrollback = new Scrollback(40);
      let [model, dropped] = [Buffer.alloc(0), 0];
      for (const each of steps) {
        if (each === 'take') {
          const taken = scrollback.take(7);
          expect(Buffer.from(taken.content)).toEqual(model.subarray(0, 7));
          expect(taken.dropped).toBe(dropped);
          [model, dropped] = [model.subarray(taken.content.length), 0];
        } else {
          scrollback.write(each);
          const all = Buffer.concat([model, each]);
          const excess = Math.max(0, all.length - 40);
          [model, dropped] = [all.subarray(excess), dropped + excess];
        }
        expect(Buffer.from(scrollback.bytes())).toEqual(model);
        expect(scrollback.length).toBe(model.length);
      }
    }),
  );
});
