/** Which consoles are heard, and for how long. */
import { type BmcResult, failed, type OnConsoleOutput, transient } from '@rackwright/bmc';
import { quietLog } from '@rackwright/platform/testing';
import { beforeEach, expect, test } from 'vitest';
import { TestClock } from '../session/testing/clock.ts';
import { BootConsoles, defaultBootConsoleLimits } from './boot-consoles.ts';
import type { OpenConsole } from './shared-consoles.ts';

let time: TestClock;
let consoles: BootConsoles;
let hear: OnConsoleOutput;
let opens: number;
let closes: number;

beforeEach(() => {
  time = new TestClock();
  [opens, closes] = [0, 0];
  const limits = { ...defaultBootConsoleLimits, consolesMax: 2, triesMax: 3, retryMs: 1_000 };
  consoles = new BootConsoles({ clock: time.open().clock, log: quietLog, limits });
});

function boot(n: number) {
  const expiresAtMs = time.nowMs + time.wallAheadMs + 600_000;
  return { hostUid: `u${n}`, operationId: `u${n}/1/1/1`, expiresAtMs };
}

const opening: OpenConsole = async (heard) => {
  opens += 1;
  hear = heard;
  const ended = Promise.withResolvers<void>();
  const close = (): void => {
    closes += 1;
    ended.resolve();
  };
  return { kind: 'ok', value: { close, ended: ended.promise } };
};

const refusing = (result: BmcResult<never>): OpenConsole => {
  return async () => {
    opens += 1;
    return result;
  };
};

const say = (text: string): void => hear(new TextEncoder().encode(text));

test('the last screen is kept until the runner comes; then the console closes', async () => {
  consoles.follow(boot(1), opening);
  await time.run(10);
  say('\x1b[31mpanic\x1b[0m\r\n');
  expect(consoles.lastScreen('u1/1/1/1')).toEqual(['panic']);
  consoles.over('u1/1/1/1');
  expect([consoles.lastScreen('u1/1/1/1'), closes]).toEqual([[], 1]);
  await time.run(700_000);
  expect(opens).toBe(1);
});

test('a console closes when its boot times out, and at the next boot of the host', async () => {
  consoles.follow(boot(1), opening);
  await time.run(10);
  consoles.follow({ ...boot(1), operationId: 'u1/2/1/1' }, opening);
  await time.run(10);
  expect([opens, closes]).toEqual([2, 1]);
  await time.run(600_000);
  expect(closes).toBe(2);
});

test('a console that is in use is tried a few times; a missing one is not', async () => {
  consoles.follow(boot(1), refusing(transient('busy', 'taken')));
  consoles.follow(boot(2), refusing(failed('unsupported', 'none')));
  await time.run(60_000);
  expect(opens).toBe(3 + 1);
});

test('no more consoles are open at once than the limit', async () => {
  for (const n of [1, 2, 3]) consoles.follow(boot(n), opening);
  await time.run(10);
  expect(opens).toBe(2);
  consoles.stop();
  expect(closes).toBe(2);
});
