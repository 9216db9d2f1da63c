import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { nodeClock, nodeDisk } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ProgramRequest, Programs, RunningProgram } from '../program/program.ts';
import { linuxPrograms, type ProgramParts } from './programs.ts';

let folder = '';
const running: RunningProgram[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-programs-'));
});

afterEach(async () => {
  for (const program of running.splice(0)) {
    program.stop();
    await program.end;
  }
  rmSync(folder, { recursive: true });
});

function parts(): ProgramParts {
  return {
    disk: nodeDisk(),
    clock: nodeClock(),
    log: quietLog,
    bootId: 'boot',
    markPath: join(folder, 'program.json'),
    procRoot: '/proc',
    kill: (target, signal) => {
      try {
        process.kill(target, signal);
      } catch {
        // It has ended.
      }
    },
  };
}

async function run(
  script: string,
  change: Partial<ProgramRequest> = {},
  programs?: Programs,
): Promise<{ program: RunningProgram; output: () => string }> {
  const pieces: Uint8Array[] = [];
  const program = await (programs ?? (await linuxPrograms(parts()))).start(
    {
      operationId: `op-${folder}`,
      file: '/bin/sh',
      args: ['-c', script],
      environment: { PATH: '/usr/bin:/bin' },
      folder,
      ...change,
    },
    (piece) => pieces.push(piece),
  );
  running.push(program);
  return { program, output: () => Buffer.concat(pieces).toString() };
}

async function until(found: () => boolean): Promise<void> {
  await expect.poll(found, { message: String(found), interval: 20 }).toBe(true);
}

function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

test('the runner keeps the order of both outputs and says how it ended', async () => {
  const { program, output } = await run('echo a; echo b >&2; echo c; echo d >&2; exit 7');
  expect(await program.end).toEqual({ kind: 'exited', code: 7 });
  expect(output()).toBe('a\nb\nc\nd\n');
});

test('the runner gives exactly the environment, no input, and a group of its own', async () => {
  const environment = { PATH: '/usr/bin:/bin', GIVEN: 'x y' };
  const { program, output } = await run('env | sort; cat; cut -d" " -f5,6 /proc/$$/stat', {
    environment,
  });
  await program.end;
  const lines = output().trim().split('\n');
  const [group, session] = (lines.pop() ?? '').split(' ');
  expect(group).toBe(session);
  expect(Number(group)).not.toBe(process.pid);
  const own = lines.filter((line) => !/^(PWD|OLDPWD|SHLVL|_)=/.test(line));
  expect(own).toEqual(['GIVEN=x y', 'PATH=/usr/bin:/bin', `RACKWRIGHT_OPERATION=op-${folder}`]);
});

test('a program leaves no child behind, not even one in a session of its own', async () => {
  const { program, output } = await run('sleep 300 & echo $!; setsid sleep 300 & echo $!; exit 0');
  expect(await program.end).toEqual({ kind: 'exited', code: 0 });
  const pids = output().trim().split('\n').map(Number);
  expect(pids).toHaveLength(2);
  expect(pids.map(isAlive)).toEqual([false, false]);
});

/**
 * A control group of this test's own; undefined: none can be made here. By its name, which has the
 * name of the run's folder in it, the run's warden finds what a killed test left.
 */
function controlGroup(): string | undefined {
  const mounted = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/mounts', 'utf8'))?.[1];
  const own = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
  if (mounted === undefined || own === undefined) return undefined;
  const name = `rackwright-test-${basename(tmpdir())}-${process.pid}`;
  const path = join(mounted, own, name);
  try {
    mkdirSync(path);
    writeFileSync(join(path, 'cgroup.procs'), '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EINVAL') return undefined;
  }
  return path;
}

/** A daemon that has left group, session and environment, and has no living parent. */
const daemon = 'env -i setsid sh -c "sleep 300 & echo \\$!; exec >/dev/null 2>&1; wait" & sleep 1';

test('a program leaves no daemon behind, whatever marks it has dropped', async (context) => {
  const group = controlGroup();
  if (group === undefined) return context.skip('no control group can be made here');
  const programs = await linuxPrograms({ ...parts(), controlGroup: group });
  const { program, output } = await run(daemon, {}, programs);
  expect(await program.end).toEqual({ kind: 'exited', code: 0 });
  expect(isAlive(Number(output()))).toBe(false);
  expect(existsSync(group)).toBe(false);
});

test('without a control group it takes no file of the working folder for one', async () => {
  const other = spawn('/bin/sleep', ['600'], { stdio: 'ignore' });
  const ended = new Promise<NodeJS.Signals | null>((resolve) => {
    other.once('exit', (_code, signal) => resolve(signal));
  });
  writeFileSync(join(folder, 'cgroup.procs'), `${other.pid}\n`);
  const before = process.cwd();
  process.chdir(folder);
  try {
    await linuxPrograms(parts());
  } finally {
    process.chdir(before);
    other.kill('SIGTERM');
  }
  expect(await ended).toBe('SIGTERM');
});

test('a successor ends such a daemon too, without any mark on the disk', async (context) => {
  const group = controlGroup();
  if (group === undefined) return context.skip('no control group can be made here');
  const programs = await linuxPrograms({ ...parts(), controlGroup: group });
  const { program, output } = await run(`${daemon}; sleep 300`, {}, programs);
  await until(() => output().includes('\n'));
  const stray = Number(output());
  rmSync(parts().markPath);
  expect(isAlive(stray)).toBe(true);
  await linuxPrograms({ ...parts(), controlGroup: group });
  expect(isAlive(stray)).toBe(false);
  expect(await program.end).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
});

test('a program is stopped by SIGTERM, so that it can tidy up', async () => {
  const { program, output } = await run('trap "echo tidy; exit 3" TERM; echo on; sleep 300 & wait');
  await until(() => output().includes('on'));
  program.stop();
  expect(await program.end).toEqual({ kind: 'exited', code: 3 });
  expect(output()).toBe('on\ntidy\n');
});

test('a program is killed when it does not heed SIGTERM', async () => {
  const clock = nodeClock();
  const hurried = { ...clock, after: (ms: number, call: () => void) => clock.after(ms / 20, call) };
  const programs = await linuxPrograms({ ...parts(), clock: hurried });
  const script = 'trap "" TERM; echo on; while :; do sleep 0.1; done';
  const { program, output } = await run(script, {}, programs);
  await until(() => output().includes('on'));
  program.stop();
  expect(await program.end).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
});

test('an error says which program cannot be started', async () => {
  const missing = await run('true', { folder: join(folder, 'no') });
  expect(await missing.program.end).toEqual({
    kind: 'notStarted',
    message: `there is no folder ${join(folder, 'no')}`,
  });
  const unknown = await run('', { file: '/no/such/program', args: [] });
  expect(await unknown.program.end).toEqual({ kind: 'exited', code: 127 });
  expect(unknown.output()).toContain('/no/such/program');
});

test('a successor ends what a killed runner has left, before it starts anything', async () => {
  const { program, output } = await run('setsid sleep 300 & echo $!; sleep 300');
  await until(() => output().includes('\n'));
  const stray = Number(output());
  expect(isAlive(stray)).toBe(true);
  await linuxPrograms(parts());
  expect(isAlive(stray)).toBe(false);
  expect(await program.end).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
});

test('the runner touches nothing by the mark of another boot', async () => {
  const { program, output } = await run('echo on; sleep 300');
  await until(() => output().includes('on'));
  await linuxPrograms({ ...parts(), bootId: 'another' });
  expect(await Promise.race([program.end, Promise.resolve('runs')])).toBe('runs');
});

test('a program ends with its runner, however that dies', async () => {
  const source = join(folder, 'runner.mjs');
  const heartbeat = join(folder, 'heartbeat');
  const modulePath = join(import.meta.dirname, 'programs.ts');
  const platformPath = join(import.meta.dirname, '../../../platform/src/node/index.ts');
  writeFileSync(
    source,
    `import { linuxPrograms } from '${modulePath}';
import { nodeClock, nodeDisk } from '${platformPath}';
const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const programs = await linuxPrograms({ disk: nodeDisk(), clock: nodeClock(), log, bootId: 'b',
  markPath: '${folder}/mark', procRoot: '/proc', kill: () => {} });
await programs.start({ operationId: 'o', file: '/bin/sh', environment: { PATH: '/usr/bin:/bin' },
  args: ['-c', 'echo $$ > ${heartbeat}; sleep 300'], folder: '/' }, () => {});
`,
  );
  const child = spawn(process.execPath, [source], { stdio: 'inherit' });
  await until(() => existsSync(heartbeat) && readFileSync(heartbeat, 'utf8').endsWith('\n'));
  const pid = Number(readFileSync(heartbeat, 'utf8'));
  expect(isAlive(pid)).toBe(true);
  child.kill('SIGKILL');
  await until(() => !isAlive(pid));
});

test('a program gets another folder as its root', async (context) => {
  try {
    execFileSync('unshare', ['--root=/', '--wd=/tmp', '--', 'true'], { stdio: 'ignore' });
  } catch {
    context.skip('another root takes privileges that this user does not have');
  }
  const busybox = '/usr/bin/busybox';
  if (!existsSync(busybox)) context.skip('no busybox to stand in the other root');
  execFileSync('mkdir', ['-p', join(folder, 'root/bin'), join(folder, 'root/work')]);
  execFileSync('cp', [busybox, join(folder, 'root/bin/busybox')]);
  const { program, output } = await run('', {
    file: 'busybox',
    args: ['sh', '-c', 'pwd; ls /'],
    environment: { PATH: '/bin:/usr/bin' },
    folder: '/work',
    root: join(folder, 'root'),
  });
  expect(await program.end).toEqual({ kind: 'exited', code: 0 });
  expect(output()).toBe('/work\nbin\nwork\n');
});
