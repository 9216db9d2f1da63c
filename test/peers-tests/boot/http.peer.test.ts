/** Our boot files and curl as an HTTP client. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Peer, peer, runPeer } from '../peer.ts';
import { type Served, serve } from './served.ts';

const curl: Peer = peer('curl');

let served: Served;

beforeAll(async () => {
  served = await serve([1_000]);
});

afterAll(async () => {
  await served.close();
});

function url(path: string): string {
  return `http://127.0.0.1:${served.services.httpPort}${path}`;
}

test('curl resumes a download where it broke off', async (context) => {
  if (curl.kind === 'missing') return context.skip(curl.reason);
  const whole = served.contents.get('initrd') ?? new Uint8Array();
  const target = join(served.folder, 'resumed');
  await writeFile(target, whole.subarray(0, 123_456));
  const { code } = await runPeer(curl.path, [
    ...['-sSf', '-C', '-', '-o', target],
    url('/files/initrd'),
  ]);
  expect(code).toBe(0);
  expect(Buffer.compare(await readFile(target), whole)).toBe(0);
});

test('curl fetches two files over one connection', async (context) => {
  if (curl.kind === 'missing') return context.skip(curl.reason);
  const targets = ['a', 'b'].map((name) => join(served.folder, name));
  const { code, output } = await runPeer(curl.path, [
    ...['-sSfv', '-o', targets[0] ?? '', url('/files/vmlinuz')],
    ...['-o', targets[1] ?? '', url('/files/f1000')],
  ]);
  expect([code, output]).toEqual([0, expect.stringMatching(/Re-using existing connection/)]);
});

test('the server reports the length of a file without sending it', async (context) => {
  if (curl.kind === 'missing') return context.skip(curl.reason);
  const { output } = await runPeer(curl.path, ['-sSI', url('/files/initrd')]);
  expect(output.toLowerCase()).toContain('content-length: 300000');
});

test.for([
  ['/files/../../etc/passwd', '404'],
  ['/files/%2e%2e/%2e%2e/etc/passwd', '404'],
  ['/boot/52-54-00-77-00-99/script.ipxe', '404'],
  ['/boot/nonsense/script.ipxe', '400'],
])('the server refuses %s with %s', async ([path = '', status], context) => {
  if (curl.kind === 'missing') return context.skip(curl.reason);
  const write = ['-sS', '--path-as-is', '-o', '/dev/null', '-w', '%{http_code}'];
  const { output } = await runPeer(curl.path, [...write, url(path)]);
  expect(output).toBe(status);
});
