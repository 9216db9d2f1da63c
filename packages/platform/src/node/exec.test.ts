import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ExecRequest } from '../exec.ts';
import { nodeExec } from './exec.ts';

const exec = nodeExec();
const shell = (script: string, more: Partial<ExecRequest> = {}): ExecRequest => ({
  file: 'sh',
  args: ['-c', script],
  timeoutMs: 20_000,
  outputBytesMax: 1_000,
  ...more,
});

test('exec answers the exit code and both outputs', async () => {
  const result = await exec.run(shell('echo out; echo err >&2; exit 3'));
  expect(result).toEqual({ kind: 'exited', code: 3, stdout: 'out\n', stderr: 'err\n' });
});

test('exec gives the child PATH and LC_ALL and nothing else', async () => {
  const result = await exec.run({
    file: 'env',
    args: [],
    timeoutMs: 20_000,
    outputBytesMax: 10_000,
  });
  expect(result).toMatchObject({
    stdout: 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nLC_ALL=C\n',
  });
});

test('exec passes standard input and closes it', async () => {
  const result = await exec.run({ ...shell('cat'), stdin: 'secret' });
  expect(result).toMatchObject({ code: 0, stdout: 'secret' });
});

test('exec keeps input open until told otherwise, and reports output as it comes', async () => {
  const until = new AbortController();
  let heard = '';
  const onOutput = (bytes: Uint8Array): void => {
    heard += new TextDecoder().decode(bytes);
    if (heard === 'first') until.abort();
  };
  const input = { stdin: 'first', inputOpenUntil: until.signal, outputBytesMax: 3, onOutput };
  const result = await exec.run({ ...shell('cat; echo second'), ...input });
  expect(result).toMatchObject({ kind: 'exited', code: 0 });
  expect(heard).toBe('firstsecond\n');
});

test('exec takes a child that does not read its input', async () => {
  const result = await exec.run({ ...shell('exit 0'), stdin: 'x'.repeat(1_000_000) });
  expect(result).toMatchObject({ kind: 'exited', code: 0 });
});

test('exec says why a program did not start', async () => {
  const missing = await exec.run({ ...shell(''), file: 'no-such-program' });
  expect(missing).toEqual({ kind: 'notStarted', message: expect.stringContaining('ENOENT') });
  const badArgument = await exec.run({ ...shell(''), args: ['a\0b'] });
  expect(badArgument).toEqual({ kind: 'notStarted', message: expect.stringContaining('null') });
});

test('exec cuts long output, says so, and lets the child finish', async () => {
  const result = await exec.run(shell('head -c 300000 /dev/zero | tr "\\0" x; echo end >&2'));
  expect(result).toMatchObject({ kind: 'exited', code: 0, stderr: 'end\n' });
  expect(result).toMatchObject({
    stdout: `${'x'.repeat(1_000)}\n[output cut: 1000 of 300000 bytes kept]`,
  });
});

test('exec kills the whole process group on timeout and keeps what was said', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'exec-'));
  const pidFile = join(folder, 'pid');
  const start = performance.now();
  const result = await exec.run(
    shell(`sleep 600 & echo $! >${pidFile}; echo begun; wait`, { timeoutMs: 2_000 }),
  );
  expect(performance.now() - start).toBeLessThan(60_000);
  expect(result).toEqual({ kind: 'timedOut', stdout: 'begun\n', stderr: '' });
  const pid = readFileSync(pidFile, 'utf8').trim();
  rmSync(folder, { recursive: true });
  await expect.poll(() => isRunning(pid), { message: 'the child runs' }).toBe(false);
});

test('exec leaves no child of the group behind after a normal end', async () => {
  const result = await exec.run(shell('sleep 600 & echo $!'));
  expect(result).toMatchObject({ kind: 'exited', code: 0 });
  const pid = result.kind === 'exited' ? result.stdout.trim() : '';
  await expect.poll(() => isRunning(pid), { message: 'the child runs' }).toBe(false);
});

test('exec settles although a process in another session holds the output open', async () => {
  const start = performance.now();
  const result = await exec.run(shell('setsid sleep 40 & sleep 0.3; echo parent'));
  expect(result).toMatchObject({ kind: 'exited', code: 0, stdout: 'parent\n' });
  expect(performance.now() - start).toBeLessThan(30_000);
});

test('exec kills on abort, and does not start when aborted before', async () => {
  const abort = new AbortController();
  const running = exec.run(shell('sleep 600'), abort.signal);
  setTimeout(() => abort.abort(), 50);
  expect(await running).toMatchObject({ kind: 'exited', code: 137 });
  expect(await exec.run(shell('exit 0'), abort.signal)).toMatchObject({ kind: 'notStarted' });
});

/** A zombie is not running: its parent has only not looked yet. */
function isRunning(pid: string): boolean {
  const path = `/proc/${pid}/stat`;
  if (!existsSync(path)) return false;
  try {
    return !readFileSync(path, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

test('exec keeps children in our process group when asked to', async () => {
  const ours = await nodeExec(undefined, 'ours').run(shell('cut -d" " -f5 /proc/self/stat'));
  const own = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ')[2];
  expect(ours).toMatchObject({ code: 0, stdout: `${own}\n` });
  const slow = shell('sleep 60', { timeoutMs: 200 });
  expect((await nodeExec(undefined, 'ours').run(slow)).kind).toBe('timedOut');
});
