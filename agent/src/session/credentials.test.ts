import type { Clock } from '@rackwright/platform';
import { recordingLog } from '@rackwright/platform/testing';
import { beforeEach, expect, test } from 'vitest';
import { Credentials } from './credentials.ts';

const dayMs = 86_400_000;
let nowMs = 0;
let timers: { atMs: number; callback: () => void }[] = [];
const clock: Clock = {
  nowMs: () => nowMs,
  suspendAwareMs: () => nowMs,
  after: (delayMs, callback) => {
    const timer = { atMs: nowMs + delayMs, callback };
    timers.push(timer);
    return () => void (timers = timers.filter((each) => each !== timer));
  },
};
const lines: string[] = [];
const log = recordingLog(({ fields, message }) => {
  lines.push(`${message} ${JSON.stringify(fields)}`);
});
const secret = { name: 'credentials/c1', version: 3n, username: 'root', password: 'hunter2' };

let credentials: Credentials;
beforeEach(() => {
  nowMs = 0;
  timers = [];
  lines.length = 0;
  credentials = new Credentials(clock, log, 2, dayMs);
});

function passTime(ms: number): void {
  nowMs += ms;
  const due = timers.filter(({ atMs }) => atMs <= nowMs);
  timers = timers.filter(({ atMs }) => atMs > nowMs);
  for (const { callback } of due) callback();
}

test('credentials are dropped a day after the control plane was heard last, and not before', () => {
  credentials.keep(secret);
  passTime(dayMs - 1);
  expect(credentials.find('credentials/c1', 3n)).toEqual(secret);
  credentials.noteContact();
  passTime(dayMs - 1);
  expect(credentials.find('credentials/c1', 3n)).toEqual(secret);
  passTime(1);
  expect(credentials.find('credentials/c1', 3n)).toBeUndefined();
  expect(timers).toEqual([]);
  expect(lines.join('\n')).toContain('no control plane for long');
  expect(lines.join('\n')).not.toContain('hunter2');
});

test('credentials that come again are kept as the first ones were', () => {
  credentials.keep(secret);
  passTime(dayMs);
  credentials.noteContact();
  credentials.keep(secret);
  passTime(dayMs - 1);
  expect(credentials.find('credentials/c1', 3n)).toEqual(secret);
  expect(timers).toHaveLength(1);
});

test('credentials give way to a newer version only, and go with their last host', () => {
  credentials.keep(secret);
  credentials.keep({ ...secret, version: 2n, password: 'older' });
  expect(credentials.find('credentials/c1', 1n)?.password).toBe('hunter2');
  credentials.noteUse('credentials/c1', 'h1');
  credentials.noteUse('credentials/c1', 'h2');
  credentials.forgetHost('h1');
  expect(credentials.find('credentials/c1', 1n)).toBeDefined();
  credentials.forgetHost('h2');
  expect(credentials.find('credentials/c1', 1n)).toBeUndefined();
});
