/** The page answers at once and from memory, and a port in use stops nothing. */
import type { Http, HttpRequest, HttpServer } from '@rackwright/platform';
import { recordingLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { answers, Registry, serveMetrics } from './index.ts';

const asked: HttpRequest = {
  ...{ method: 'GET', target: '/metrics', headers: {} },
  ...{ remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' },
};

function clockAt() {
  const due: { readonly atMs: number; readonly run: () => void }[] = [];
  const clock = {
    ms: 0,
    nowMs: () => clock.ms,
    suspendAwareMs: () => clock.ms,
    after: (delayMs: number, run: () => void) => {
      const timer = { atMs: clock.ms + delayMs, run };
      due.push(timer);
      return () => void due.splice(due.indexOf(timer), due.includes(timer) ? 1 : 0);
    },
    pass: async (byMs: number) => {
      clock.ms += byMs;
      for (const timer of due.filter(({ atMs }) => atMs <= clock.ms)) {
        due.splice(due.indexOf(timer), 1);
        timer.run();
      }
      await Promise.resolve();
      await Promise.resolve();
    },
  };
  return clock;
}

const lines: string[] = [];
const log = recordingLog(({ level, message }) => {
  if (level === 'error') lines.push(message);
});

test('all who ask within a second get the bytes of one answer', async () => {
  const clock = clockAt();
  const registry = new Registry();
  let reads = 0;
  registry.gauge('g', 'G.', {}, () => {
    reads += 1;
    return [{ labels: {}, value: reads }];
  });
  const answer = answers({ clock, log, registry });
  const first = answer(asked);
  expect(first.status).toBe(200);
  expect(first.headers['content-type']).toContain('version=0.0.4');
  for (let at = 0; at < 100; at += 1) expect(answer(asked).body).toBe(first.body);
  expect(reads).toBe(1);
  await clock.pass(1_000);
  expect(answer(asked).body).not.toBe(first.body);
  const open = answer({ ...asked, headers: { accept: 'application/openmetrics-text' } });
  expect(open.headers['content-type']).toContain('openmetrics');
  expect(reads).toBe(3);
});

test.each([
  ['127.0.0.1', '127.0.0.1:7445', 200],
  ['127.0.0.1', 'localhost', 200],
  ['::1', '[::1]:7445', 200],
  ['::ffff:127.0.0.1', 'LOCALHOST:7445', 200],
  ['127.0.0.1', 'metrics.example.org', 421],
  ['127.0.0.1', '127.0.0.1.example.org:7445', 421],
  ['::1', 'localhost.example.org', 421],
  ['127.0.0.1', '', 421],
  ['192.0.2.1', 'cp.example.org:7445', 200],
])('a caller at %s that asks for "%s" is answered with %d', (localAddress, host, status) => {
  const answer = answers({ clock: clockAt(), log, registry: new Registry() });
  const { status: answered, body } = answer({ ...asked, localAddress, headers: { host } });
  expect(answered).toBe(status);
  if (status === 421) expect(body).toContain('ask localhost');
});

test.each([
  ['POST', '/metrics', 405],
  ['GET', '/', 200],
  ['HEAD', '/', 200],
  ['GET', '/metrics/../etc', 404],
  ['GET', '/metrics?x=1', 200],
])('the request %s %s is answered with %d', (method, target, status) => {
  const answer = answers({ clock: clockAt(), log, registry: new Registry() });
  expect(answer({ ...asked, method, target }).status).toBe(status);
});

test('the error of a family is logged once, until the family can be read again', () => {
  const told: unknown[][] = [];
  const keeping = { ...log, error: (...line: unknown[]) => void told.push(line) };
  const clock = clockAt();
  const registry = new Registry();
  const gone = new Error('gone');
  let isBroken = true;
  registry.gauge('bad', 'Throws.', {}, () => {
    if (isBroken) throw gone;
    return [];
  });
  const answer = answers({ clock, log: keeping, registry });
  const scrape = () => {
    clock.ms += 1_000;
    expect(answer(asked).status).toBe(200);
    return told.length;
  };
  expect([scrape(), scrape()]).toEqual([1, 1]);
  expect(told).toEqual([[{ family: 'bad' }, 'a family of the metrics cannot be read', gone]]);
  isBroken = false;
  scrape();
  isBroken = true;
  expect(scrape()).toBe(2);
});

test('a port that is in use is tried again, and nobody waits for it', async () => {
  const clock = clockAt();
  let isFree = false;
  let isOpen = false;
  const server = { address: '127.0.0.1', port: 7, problem: async () => undefined };
  const close = async () => void (isOpen = false);
  const http: Http = {
    listen: async (): Promise<HttpServer> => {
      if (!isFree) throw new Error('EADDRINUSE');
      isOpen = true;
      return { ...server, close };
    },
  };
  const parts = { http, clock, log, registry: new Registry() };
  const page = await serveMetrics({ address: '127.0.0.1', port: 7 }, parts);
  expect(page.port).toBeUndefined();
  expect(lines).toEqual(['the port of the metrics cannot be opened']);
  await clock.pass(30_000);
  isFree = true;
  await clock.pass(30_000);
  expect([page.port, isOpen]).toEqual([7, true]);
  await page.close();
  expect(isOpen).toBe(false);
});
