/** The demo as its users start it, in a temporary folder of its own: what it tells and leaves. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../lab/processes.ts';
import { processesOf } from './leftovers.ts';
import { compileCache, programFolder } from './programs.ts';

const program = join(import.meta.dirname, '../../packages/demo/src/main.ts');
const storyTimeoutMs = 1_500_000;
const waitMs = 400_000;
/** A user without files of its own on every Debian. */
const nobody = 65_534;
const script = `
say A rack that lives
wait h1 available
fault h1 silent
run host verify h1
wait h1 "verifying, waiting for bmc"
fault h1 none
wait h1 available 60
fail host get h9
kill r1
wait r1 away
start r1
wait r1 connected
run host list
`;

let folder: string;
const running = new Set<ChildProcess>();

beforeEach(() => {
  folder = mkdtempSync(join(realpathSync(tmpdir()), 'rackwright-demo-test-'));
});
afterEach(() => {
  for (const child of running) child.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
});

/** The bundles of all tests; one demo here makes its own. */
const bundled = (): string[] => ['--programs', programFolder()];

function startDemo(...args: string[]) {
  return startAs([], args);
}

/** `before` are the words of a command that runs another one. */
function startAs(before: readonly string[], args: readonly string[]) {
  const [file = '', ...programArgs] = [...before, process.execPath, program, ...args];
  const child = spawn(file, programArgs, {
    env: { PATH: process.env['PATH'], TMPDIR: folder, ...compileCache() },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const ended = once(child, 'close').then(([code]) => {
    running.delete(child);
    return code as number | null;
  });
  return { child, ended, said: () => said };
}

function processes(): string[] {
  return processesOf(folder).map(({ commandLine }) => commandLine);
}

/** Every port that the configuration files of the running demo name. */
function ports(): number[] {
  const [demo = ''] = readdirSync(folder).filter((name) => name.startsWith('rackwright-demo-'));
  const files = readdirSync(join(folder, demo)).filter((name) => name.endsWith('.json'));
  const text = files.map((name) => readFileSync(join(folder, demo, name), 'utf8')).join('\n');
  return Array.from(text.matchAll(/"port": (\d+)/g), ([, port]) => Number(port));
}

/** What the control plane of the running demo shows a browser first. */
async function frontPage(): Promise<string> {
  const [demo = ''] = readdirSync(folder).filter((name) => name.startsWith('rackwright-demo-'));
  const file = readFileSync(join(folder, demo, 'rackwright.json'), 'utf8');
  const { server } = JSON.parse(file) as { server: string };
  const asked = get(`https://${server}/`, { rejectUnauthorized: false, agent: false });
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return text(response);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  const outcome = await Promise.race([
    once(server, 'listening').then(() => true),
    once(server, 'error').then(() => false),
  ]);
  server.close();
  return outcome;
}

async function expectNothingLeft(used: readonly number[]): Promise<void> {
  expect(processes()).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
  expect(used.length).toBeGreaterThan(4);
  for (const port of used) expect(await isFree(port), `port ${port}`).toBe(true);
}

test(
  'the demo runs its story to the end, and leaves nothing behind',
  async () => {
    const demo = startDemo('--check', '--hosts', '2', ...bundled());
    await until('the enrolment', waitMs, () => demo.said().includes('enrolled'));
    const used = ports();
    const code = await demo.ended;
    expect(demo.said()).toContain('All 2 sound machines are available.');
    expect(demo.said()).toContain('2 machines and 4 with broken BMCs enrolled');
    expect(demo.said()).toContain('no power command');
    expect(demo.said()).toContain('shows no new command');
    expect(demo.said()).toContain('DOES NOT VERIFY');
    expect(demo.said()).toContain('The pool runs 1.2: every disk');
    expect(demo.said()).toContain('RolloutHalted');
    expect(demo.said()).toMatch(/Nothing starts on h\d; on 1\.0 as\s+before: h\d\./);
    expect(demo.said()).toContain('All of it held');
    expect(code).toBe(0);
    await expectNothingLeft(used);
  },
  storyTimeoutMs,
);

test(
  'the demo runs a script, and fails where it does not hold',
  async () => {
    const path = join(folder, 'script');
    writeFileSync(path, `${script}run host get nobody\n`);
    const demo = startDemo('--hosts', '1', '--script', path, ...bundled());
    expect(await demo.ended, demo.said()).toBe(1);
    expect(demo.said()).toContain('A rack that lives');
    expect(demo.said()).toContain('hosts/h1');
    expect(demo.said()).toContain('"host get nobody" ended with exit code 3');
    rmSync(path);
    expect(processes()).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  },
  storyTimeoutMs,
);

test(
  'the demo is cleaned up after kill -9, and says goodbye to Ctrl-C',
  async () => {
    const killed = startDemo('--check', '--hosts', '1', '--racks', '1');
    await until('an inspection', waitMs, () => killed.said().includes('inspecting'));
    const used = ports();
    // It has bundled its programs itself: the console stands beside them.
    expect(await frontPage()).toContain('<!doctype html>');
    killed.child.kill('SIGKILL');
    await killed.ended;
    const isGone = () => processes().length === 0 && readdirSync(folder).length === 0;
    await until('the end of the guard', waitMs, isGone);
    await expectNothingLeft(used);

    const interrupted = startDemo('--hosts', '1', '--racks', '1', ...bundled());
    await until('an inspection', waitMs, () => interrupted.said().includes('inspecting'));
    interrupted.child.kill('SIGINT');
    expect(await interrupted.ended).toBe(130);
    expect(interrupted.said()).toContain('nothing of it is left');
    expect(processes()).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  },
  storyTimeoutMs,
);

test(
  'the demo runs for a user who may write nothing but a temporary folder',
  async (context) => {
    if (process.getuid?.() !== 0) return context.skip('not root: there is no other user to be');
    const asNobody = [
      'setpriv',
      ...['--reuid', `${nobody}`, '--regid', `${nobody}`, '--clear-groups'],
    ];
    const [setpriv = '', ...programArgs] = asNobody;
    const mayRead = spawnSync(setpriv, [...programArgs, process.execPath, '--check', program]);
    if (mayRead.status !== 0) return context.skip('another user cannot read this clone');
    chownSync(folder, nobody, nobody);
    const path = join(folder, 'script');
    writeFileSync(path, 'wait all available\n');
    const args = ['--hosts', '1', '--racks', '1', '--script', path, ...bundled()];
    const demo = startAs(asNobody, args);
    expect(await demo.ended, demo.said()).toBe(0);
    rmSync(path);
    expect(processes()).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  },
  storyTimeoutMs,
);

test('the demo says in a line what is wrong with its arguments', async () => {
  const demo = startDemo('--hosts', 'many');
  expect(await demo.ended).toBe(2);
  expect(demo.said()).toContain('--hosts is "many"; it must be a whole number from 1 to 64');
});
