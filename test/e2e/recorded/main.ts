/**
 * Records the state of an older version, so that the present one is tried on it:
 *
 *     node test/e2e/recorded/main.ts COMMIT
 *
 * That commit's own programs make it, in a copy of its tree with this tree's dependencies: a rack
 * with an agent, a host that is available, another whose disk is being written, a template. Both
 * programs are killed then, and their folders are packed into `COMMIT.tar.gz` beside this file.
 * Then this tree's control plane is started on a copy, and the older one on what that has left:
 * what it says is printed, for there has to be a refusal. No test starts an older program.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const here = import.meta.dirname;
const root = join(here, '../../..');
const program = 'controlplane/src/main.ts';
const oldStartMs = 20_000;

/** Runs in the older tree, with its own parts; what it imports has not changed since 2767d96. */
const driver = `
import { execFileSync } from 'node:child_process';
import { HostState } from '@rackwright/messages';
import { diskLog } from './machines.ts';
import { eventually, Rack } from './rack.ts';

const disk = { name: 'vda', serial: 'DISK-1', kind: 'overwrite' };
const slow = [{ kind: 'slow', operation: 'write', delayMs: 40 }];
const machine = (n, faults) => ({
  name: 'h' + n, bmcAddress: '127.0.0.2' + n, mac: '52:54:00:00:00:0' + n,
  uuid: '0' + n + '02030405060708090a0b0c0d0e0f10', serial: 'SN-' + n,
  disks: [{ ...disk, serial: 'DISK-' + n, ...faults }],
});
const plans = [machine(1, {}), machine(2, { faults: slow })];
const rack = await Rack.start({ machines: plans, programs: 'source' });
try {
  const { templates } = rack.clients;
  const source = 'steps:\\n  - name: pause\\n    wait: 1s\\n';
  await templates.createTemplate({ templateId: 'pause', template: { source } });
  await rack.untilHost('h1', 'available', ({ status }) => status.state === HostState.AVAILABLE);
  await eventually('h2 to be written', () => {
    if (!diskLog(rack.machines[1], plans[1].disks[0]).some(({ kind }) => kind === 'write')) {
      throw new Error('not yet');
    }
  });
  await rack.pause('controlplane');
  await rack.pause('agent');
  for (const name of ['controlplane', 'agent']) {
    execFileSync('cp', ['-a', rack.folder + '/' + name, process.argv[2]]);
  }
} finally {
  await rack.stop();
}
process.exit(0);
`;

/** The older tree, ready to run. */
function unpackTree(commit: string, folder: string): string {
  const tree = join(folder, 'tree');
  mkdirSync(join(tree, 'node_modules/@rackwright'), { recursive: true });
  const archive = execFileSync('git', ['-C', root, 'archive', commit], { maxBuffer: 2 ** 30 });
  execFileSync('tar', ['-x', '-C', tree], { input: archive });
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name === '@rackwright') continue;
    symlinkSync(join(root, 'node_modules', name), join(tree, 'node_modules', name));
  }
  const packages = readdirSync(join(tree, 'packages')).map((name) => join(tree, 'packages', name));
  for (const part of [...packages, join(tree, 'agent'), join(tree, 'controlplane')]) {
    const { name } = JSON.parse(readFileSync(join(part, 'package.json'), 'utf8')) as {
      readonly name: string;
    };
    symlinkSync(part, join(tree, 'node_modules', name));
  }
  return tree;
}

/** Starts this tree's control plane on the state, until it is ready. */
async function upgrade(config: string): Promise<void> {
  const words = [join(root, program), '--config', config];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'ignore', 'pipe'] });
  let isReady = false;
  for await (const line of createInterface({ input: child.stderr })) {
    isReady ||= line.includes('"ready"');
    if (isReady) break;
  }
  if (!isReady) throw new Error('this tree’s control plane does not start on the older state');
  child.kill('SIGTERM');
  await once(child, 'exit');
}

/** What the older control plane says of the newer one's state. */
function wordsOfOlder(tree: string, config: string): string {
  const words = [join(tree, program), '--config', config];
  const ended = spawnSync(process.execPath, words, { encoding: 'utf8', timeout: oldStartMs });
  if (ended.status === 0 || ended.signal !== null) {
    throw new Error('the older program has started on the newer one’s state');
  }
  const lines = `${ended.stdout}${ended.stderr}`.trim().split('\n');
  return lines.filter((line) => !line.startsWith('{')).join('\n');
}

async function record(commit: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'rackwright-record-'));
  try {
    const tree = unpackTree(commit, folder);
    const state = join(folder, 'state');
    mkdirSync(state);
    writeFileSync(join(tree, 'test/e2e/record-driver.ts'), driver);
    const words = [join(tree, 'test/e2e/record-driver.ts'), state];
    execFileSync(process.execPath, words, { stdio: 'inherit', cwd: tree });
    const file = join(here, `${commit}.tar.gz`);
    const names = ['--owner=0', '--group=0', '--numeric-owner', '--sort=name'];
    const tar = execFileSync('tar', ['-c', ...names, '-C', state, 'agent', 'controlplane'], {
      maxBuffer: 2 ** 30,
    });
    writeFileSync(file, execFileSync('gzip', ['-9n'], { input: tar, maxBuffer: 2 ** 30 }));
    const later = join(folder, 'later');
    execFileSync('cp', ['-a', join(state, 'controlplane'), later]);
    const config = join(folder, 'controlplane.json');
    const ports = {
      metrics: { port: 0 },
      operators: { address: '127.0.0.1', port: 0 },
      agents: { address: '127.0.0.1', port: 0, advertise: '127.0.0.1:1' },
    };
    const base = { names: ['127.0.0.1'] };
    writeFileSync(config, JSON.stringify({ dataFolder: later, ...base, ...ports }));
    const key = readFileSync(join(later, 'identity/ca.key'));
    await upgrade(config);
    process.stdout.write(`${file}\nThe older one says: ${wordsOfOlder(tree, config)}\n`);
    writeFileSync(join(later, 'identity/ca.key'), key, { mode: 0o600 });
    process.stdout.write(`With its ca.key put back: ${wordsOfOlder(tree, config)}\n`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const [commit = ''] = process.argv.slice(2);
if (/^[0-9a-f]{7,40}$/.test(commit)) await record(commit);
else process.stderr.write('usage: node test/e2e/recorded/main.ts COMMIT\n');
