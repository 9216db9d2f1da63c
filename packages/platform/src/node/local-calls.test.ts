import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { nodeLocalCalls } from './local-calls.ts';

const folder = await mkdtemp(join(tmpdir(), 'rackwright-local-'));
afterAll(() => rm(folder, { recursive: true }));
const calls = nodeLocalCalls();

describe('local calls', () => {
  test('are answered, each with its own text', async () => {
    const path = join(folder, 'a.sock');
    const listener = await calls.listen(path, async (request) => `heard ${request}`);
    const asked = ['one', 'zwei ✓', 'x'.repeat(60_000)];
    const answers = await Promise.all(asked.map((text) => calls.call(path, text, 5_000)));
    expect(answers).toEqual(asked.map((text) => `heard ${text}`));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await listener.close();
    expect(await calls.call(path, 'again', 5_000)).toBeUndefined();
  });

  test('find nobody where no socket is, or one that was left behind', async () => {
    expect(await calls.call(join(folder, 'none.sock'), 'x', 5_000)).toBeUndefined();
    const path = join(folder, 'left.sock');
    await writeFile(path, '');
    expect(await calls.call(path, 'x', 5_000)).toBeUndefined();
    const listener = await calls.listen(path, async () => 'here');
    expect(await calls.call(path, 'x', 5_000)).toBe('here');
    await listener.close();
  });

  test('calls that are too long, or whose answer fails, end without one', async () => {
    const path = join(folder, 'b.sock');
    const listener = await calls.listen(path, () => Promise.reject(new Error('no')));
    await expect(calls.call(path, 'x', 5_000)).rejects.toThrow('hung up');
    await expect(calls.call(path, 'x'.repeat(70_000), 5_000)).rejects.toThrow();
    const rude = connect(path);
    await new Promise((resolve) => rude.once('connect', resolve));
    rude.destroy();
    await expect(calls.call(path, 'x', 5_000)).rejects.toThrow('hung up');
    await listener.close();
  });

  test('are held for a caller until it hangs up, which who answers learns', async () => {
    const path = join(folder, 'c.sock');
    const callers: AbortSignal[] = [];
    const listener = await calls.listen(path, async (request, gone) => {
      callers.push(gone);
      return request;
    });
    const one = await calls.callAndStay(path, 'one', 5_000);
    const two = await calls.callAndStay(path, 'two', 5_000);
    expect([one?.answer, two?.answer]).toEqual(['one', 'two']);
    await one?.release();
    expect(callers.map(({ aborted }) => aborted)).toEqual([true, false]);
    await one?.release();
    const last = new Promise((resolve) => callers[1]?.addEventListener('abort', resolve));
    await listener.close();
    await last;
    await two?.release();
    expect(await calls.callAndStay(path, 'three', 5_000)).toBeUndefined();
  });

  test('say that a path is too long for a socket', async () => {
    const path = join(folder, 'x'.repeat(120));
    await expect(calls.listen(path, async () => '')).rejects.toThrow('at most 107 bytes');
  });
});
