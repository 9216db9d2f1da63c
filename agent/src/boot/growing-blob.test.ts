/** A blob that is still being fetched, as a runner gets it over HTTP. */
import { nodeClock, nodeHttp } from '@rackwright/platform/node';
import { afterEach, expect, test } from 'vitest';
import { quietLog } from '../runner-gateway/testing.ts';
import { httpLimitsDefault } from './config.ts';
import { type HttpShell, startHttp } from './http.ts';
import { bootUrls } from './urls.ts';

const bytes = Buffer.from('0123456789');
const hex = 'ab'.repeat(32);
let shell: HttpShell | undefined;

afterEach(() => shell?.close());

/** Serves one blob whose bytes come from `read`. */
async function serve(read: (start: number, end: number) => AsyncIterable<Uint8Array>) {
  const [kernel, initrd] = ['kernel', 'initrd'];
  const runner = { kernel, initrd, agentPort: 1, fingerprint: '00'.repeat(32) };
  shell = await startHttp(
    nodeHttp(),
    { address: '127.0.0.1', port: 0 },
    {
      ...{ clock: nodeClock(), log: quietLog, limits: httpLimitsDefault, files: new Map() },
      gate: () => ({ kind: 'unknownHost', reason: 'off' }),
      runner: { ...runner, kernelArguments: [] },
      imageBlob: (asked) => (asked === hex ? { sizeBytes: bytes.length, read } : undefined),
    },
    () => bootUrls('127.0.0.1', 1),
  );
  const url = `http://127.0.0.1:${shell.port}/v2/blobs/sha256/${hex}`;
  return (headers: Record<string, string> = {}, method = 'GET') => fetch(url, { method, headers });
}

async function* slowly(start: number, end: number) {
  for (let at = start; at <= end; at += 1) yield bytes.subarray(at, at + 1);
}

test('is sent as it grows, whole or from a place on', async () => {
  const ask = await serve(slowly);
  expect(await (await ask()).text()).toBe('0123456789');
  const part = await ask({ range: 'bytes=4-' });
  expect([part.status, part.headers.get('content-range')]).toEqual([206, 'bytes 4-9/10']);
  expect(await part.text()).toBe('456789');
  const head = await ask({}, 'HEAD');
  expect([head.status, head.headers.get('content-length')]).toEqual([200, '10']);
  expect((await ask({ range: 'bytes=10-' })).status).toBe(416);
});

test('that turns out to be another one breaks the connection', async () => {
  const ask = await serve(async function* () {
    yield bytes.subarray(0, 9);
    throw new Error('another blob');
  });
  await expect(ask().then((answer) => answer.text())).rejects.toThrow();
});
