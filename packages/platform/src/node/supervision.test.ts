import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { recordingLog } from '../testing/index.ts';
import { nodeSupervision, watchdogIntervalMs } from './supervision.ts';

let folder: string;
let heard: string;
let program: string;
let logged: string[];
const log = recordingLog(({ fields, message }) => {
  logged.push(`${message} ${JSON.stringify(fields)}`);
});

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'supervision-'));
  heard = join(folder, 'heard');
  program = join(folder, 'notify');
  logged = [];
  await writeFile(heard, '');
  await writeFile(program, `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >> ${heard}\n`);
  await chmod(program, 0o755);
});
// A sign of life that was under way may still be written down meanwhile.
afterEach(() => rm(folder, { recursive: true, maxRetries: 5 }));

const supervised = (watchdogMicroseconds?: number) =>
  nodeSupervision(
    {
      NOTIFY_SOCKET: '/run/x',
      PATH: process.env['PATH'],
      ...(watchdogMicroseconds === undefined
        ? {}
        : { WATCHDOG_USEC: String(watchdogMicroseconds), WATCHDOG_PID: String(process.pid) }),
    },
    process.pid,
    log,
    program,
  );
const words = async () => (await readFile(heard, 'utf8')).split('\n').filter(Boolean);

describe('what a program tells its supervisor', () => {
  test('includes that it is ready and that it stops', async () => {
    const supervision = supervised();
    await supervision.ready();
    await supervision.stopping();
    expect(await words()).toEqual(['/run/x READY=1', '/run/x STOPPING=1']);
  });

  test('is not sent without a supervisor', async () => {
    const supervision = nodeSupervision({}, process.pid, log, program);
    await supervision.ready();
    supervision.watch(() => Promise.reject(new Error('asked')))();
    expect(await words()).toEqual([]);
  });

  test('includes a sign of life at intervals while it is well', async () => {
    const end = supervised(30_000).watch(async () => undefined);
    await expect.poll(async () => (await words()).length).toBeGreaterThan(2);
    end();
    expect(new Set(await words())).toEqual(new Set(['/run/x WATCHDOG=1']));
  });

  test.each([
    ['says what is wrong', async () => 'the port is deaf', 'the port is deaf'],
    ['fails', () => Promise.reject(new Error('no disk')), 'no disk'],
    ['never answers', () => new Promise<undefined>(() => {}), 'no answer within'],
  ])('stops, with a log line, while the program %s', async (_, problem, line) => {
    const end = supervised(30_000).watch(problem);
    await expect.poll(() => logged.join()).toContain(line);
    end();
    expect(await words()).toEqual([]);
  });

  test('is logged if it cannot be sent', async () => {
    const path = join(folder, 'absent');
    await nodeSupervision({ NOTIFY_SOCKET: '/run/x' }, process.pid, log, path).ready();
    expect(logged.join()).toContain(`${path} cannot be started`);
  });
});

test('a watchdog of another process, or a missing one, gets no sign of life', () => {
  expect(watchdogIntervalMs({}, 7)).toBeUndefined();
  expect(watchdogIntervalMs({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '8' }, 7)).toBeUndefined();
  expect(watchdogIntervalMs({ WATCHDOG_USEC: 'x' }, 7)).toBeUndefined();
  expect(watchdogIntervalMs({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '7' }, 7)).toBe(10_000);
});
