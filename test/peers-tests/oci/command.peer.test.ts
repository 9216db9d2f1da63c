/**
 * A command from a registry to its end: pushed by skopeo, fetched and served by the agent, unpacked
 * and run by the runner in a root of its own. As root, for that is what a runner is.
 */

import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { BlobCache, type BootServices, Images, startBoot } from '@rackwright/agent';
import { quietLog } from '@rackwright/agent/testing';
import { agent } from '@rackwright/messages';
import { plainBlobs } from '@rackwright/oci';
import {
  type ImageOptions,
  type WrittenImage,
  writeImage,
  writeTar,
} from '@rackwright/oci/testing';
import { valid } from '@rackwright/platform';
import {
  callersHashes,
  nodeClock,
  nodeDisk,
  nodeHttp,
  nodeLargeFiles,
  nodeUdp,
  nodeWebClient,
} from '@rackwright/platform/node';
import {
  type CommandParts,
  fileDisks,
  fileMachine,
  linuxCommandRoots,
  linuxPrograms,
  runCommand,
  type StepResult,
} from '@rackwright/runner';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { peer, runPeer } from '../peer.ts';
import { push, type Registry, startRegistry } from './registry.ts';

const peers = {
  registry: peer('docker-registry'),
  skopeo: peer('skopeo'),
  busybox: peer('busybox'),
  unshare: peer('unshare'),
};
const timeoutMs = 600_000;
const clock = nodeClock();
const web = nodeWebClient();
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

let folder = '';
let registry: Registry | undefined;
let images: Images | undefined;
let boot: BootServices | undefined;
/** Why nothing of this can be tested here. */
let reason: string | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-command-'));
  reason = await whyNot();
  if (reason !== undefined || peers.registry.kind === 'missing') return;
  registry = await startRegistry(peers.registry.path, false);
  await mkdir(join(folder, 'blobs'));
  const cache = await BlobCache.open({
    hashes: callersHashes,
    ...{ clock, log: quietLog, files: nodeLargeFiles(), folder: join(folder, 'blobs') },
    bytesMax: 100_000_000,
  });
  images = new Images({ cache, web, architecture });
  boot = await startAgentHttp(images);
}, timeoutMs);

afterAll(async () => {
  await boot?.close();
  await registry?.close();
  await rm(folder, { recursive: true });
});

async function whyNot(): Promise<string | undefined> {
  for (const each of Object.values(peers)) if (each.kind === 'missing') return each.reason;
  if (process.getuid?.() !== 0) return 'needs root: it mounts and changes its root';
  const { unshare } = peers;
  if (unshare.kind === 'missing') return unshare.reason;
  const { code } = await runPeer(unshare.path, ['--mount', '--', 'true']);
  return code === 0 ? undefined : 'this machine lets nobody make a mount namespace';
}

/** The agent's boot path, as far as runners fetch from it. */
async function startAgentHttp(kept: Images): Promise<BootServices> {
  const files = ['vmlinuz', 'initrd'].map((name) => ({ name, path: join(folder, name) }));
  for (const { path } of files) await nodeDisk().writeAtomic(path, new Uint8Array(1), 0o600);
  return startBoot(
    {
      interfaces: [{ serverAddress: '127.0.0.1', dhcp: { mode: 'off' } }],
      tftp: { address: '127.0.0.1', port: 0 },
      http: { address: '127.0.0.1', port: 0 },
      loaders: {},
      loaderFiles: [],
      files,
      runner: {
        kernel: 'vmlinuz',
        initrd: 'initrd',
        agentPort: 7443,
        fingerprint: '00'.repeat(32),
        kernelArguments: [],
      },
    },
    {
      ...{ udp: nodeUdp(), http: nodeHttp(), disk: nodeDisk(), clock, log: quietLog },
      memory: () => ({ snapshot: { generation: 1, hosts: [] }, grants: [] }),
      onNetboot: () => {},
      imageBlob: (hex) => kept.blob(hex),
    },
  );
}

/** An image with busybox and whatever else, in two layers. */
async function busyboxImage(options: ImageOptions): Promise<WrittenImage> {
  const busybox = peers.busybox.kind === 'found' ? await readFile(peers.busybox.path) : '';
  const layers = [
    writeTar([
      { name: 'bin/busybox', content: busybox, mode: 0o755 },
      { name: 'bin/sh', type: '2', target: '/bin/busybox' },
      { name: 'greeting', content: 'below' },
      { name: 'gone', content: 'x' },
      { name: 'dev', type: '2', target: 'etc' },
    ]),
    writeTar([
      { name: 'greeting', content: 'hello from above' },
      { name: '.wh.gone' },
      { name: 'work/', type: '5' },
    ]),
  ];
  return writeImage(layers, { architecture, ...options });
}

interface Run {
  readonly end: StepResult;
  readonly output: string;
}

/** Pushes, fetches and runs; `stopAt` cancels it once its output holds that. */
async function run(
  config: Readonly<Record<string, unknown>>,
  given: Record<string, string> = {},
  stopAt = '',
): Promise<Run> {
  const { skopeo } = peers;
  if (registry === undefined || images === undefined || skopeo.kind === 'missing') {
    throw new Error('nothing was started');
  }
  const image = await busyboxImage({ config });
  await push(skopeo.path, registry, 'tools/busy', image);
  const reference = `${registry.name}/tools/busy@${image.manifest}`;
  const wanted = { reference, plainHttp: true, credential: undefined };
  const pinned = await images.fetch(wanted, new AbortController().signal, () => {});
  const stop = new AbortController();
  let output = '';
  const parts: CommandParts = {
    programs: await linuxPrograms({
      ...{ disk: nodeDisk(), clock, log: quietLog, bootId: 'boot', procRoot: '/proc' },
      markPath: join(folder, 'program.json'),
      kill: (target, signal) => {
        try {
          process.kill(target, signal);
        } catch {
          // It has ended.
        }
      },
    }),
    roots: linuxCommandRoots({
      folder: join(folder, 'roots'),
      path: '/usr/sbin:/usr/bin:/sbin:/bin',
      procRoot: '/proc',
      chowns: true,
    }),
    architecture,
    blobsAt: (endpoint) => plainBlobs(web, `http://${endpoint}`),
  };
  const step = runCommand(valid(parts));
  const end = await step.run({
    operationId: 'uid/7/3/1',
    order: create(agent.RunStepSchema, {
      step: 'run.command',
      mode: agent.StepMode.RUN,
      destructive: false,
      arguments: given,
      image: create(agent.CommandImageSchema, { reference }),
    }),
    devices: fileDisks(folder, clock),
    machine: fileMachine(join(folder, 'dmi'), clock),
    clock,
    log: quietLog,
    crashPoint: () => {},
    signal: stop.signal,
    reportProgress: () => {},
    recordStage: () => Promise.resolve(),
    reportOutput: (piece) => {
      output += Buffer.from(piece).toString();
      if (stopAt !== '' && output.includes(stopAt)) stop.abort();
    },
    requestBegin: async () => ({ kind: 'granted' }),
    verdictSwitchedOff: false,
    runnerVersion: '0.0.0',
    hostName: 'h1',
    imageEndpoint: `127.0.0.1:${boot?.httpPort}`,
    secretEnvironment: {},
  });
  pinned.release();
  return { end, output };
}

const script = (text: string) => ({
  Entrypoint: ['/bin/sh', '-c', text],
  Env: ['PATH=/bin', 'WORD=of the image'],
});

/** What is mounted below the test's folder, as this process sees it. */
async function mounts(): Promise<string[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  return lines.filter((line) => line.includes(folder));
}

test(
  'a command runs in its own root, with its layers, variables, folder and devices',
  async (context) => {
    if (reason !== undefined) return context.skip(reason);
    const text =
      'b=/bin/busybox; $b cat /greeting; echo; echo $WORD, $MORE, $RACKWRIGHT_HOST; $b pwd; ' +
      '$b ls /; $b ls -d /proc/self/mem /sys/kernel; echo x >/dev/null && $b ls -l /dev/null; ' +
      '$b id -u; echo left >/left; echo "$@" $0; exit 0';
    const { end, output } = await run(script(text), {
      arguments: '["last","words"]',
      environment: '{"MORE":"of the step"}',
      directory: '/work/deep',
    });
    expect([end.result.kind, output]).toEqual(['complete', expect.any(String)]);
    const lines = output.split('\n');
    expect(lines.slice(0, 3)).toEqual([
      'hello from above',
      'of the image, of the step, h1',
      '/work/deep',
    ]);
    const found = ['bin', 'dev', 'greeting', 'proc', 'sys', 'work', '/proc/self/mem'];
    expect(lines.slice(3, 10)).toEqual(found);
    expect(output).toMatch(/\/proc\/self\/mem\n\/sys\/kernel\ncrw-rw-rw-.*\/dev\/null\n0\n/);
    expect(output).toContain('words last\n');
    expect(await mounts()).toEqual([]);
    expect(await readdir(join(folder, 'roots'))).toEqual([]);
  },
  timeoutMs,
);

test(
  'a command reports its exit code and its last words',
  async (context) => {
    if (reason !== undefined) return context.skip(reason);
    const { end } = await run(script('echo no such disk; exit 7'));
    expect(end.result).toMatchObject({
      kind: 'failed',
      type: 'exitCode',
      message: 'exit code 7: no such disk',
      output: { exit: { code: 7 } },
    });
  },
  timeoutMs,
);

test(
  'a command says when its program is not there',
  async (context) => {
    if (reason !== undefined) return context.skip(reason);
    const { end } = await run({ Entrypoint: ['/bin/missing'] });
    expect(end.result).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('/bin/missing'),
    });
  },
  timeoutMs,
);

test(
  'a command is ended with all that it has started, and leaves no mount',
  async (context) => {
    if (reason !== undefined) return context.skip(reason);
    const text = '/bin/busybox sleep 4711 & echo started; /bin/busybox sleep 4711';
    const { end } = await run(script(text), {}, 'started');
    expect(end.result).toMatchObject({ kind: 'failed', type: 'cancelled' });
    const { output } = await runPeer('/bin/ps', ['-eo', 'args']);
    expect(output).not.toContain('sleep 4711');
    expect(await mounts()).toEqual([]);
    expect(await readdir(join(folder, 'roots'))).toEqual([]);
  },
  timeoutMs,
);

test(
  'goes, and the devices of the machine stay',
  async (context) => {
    if (reason !== undefined) return context.skip(reason);
    const { end } = await run(script('/bin/busybox ls /dev/null /proc/self/status >/dev/null'));
    expect(end.result.kind).toBe('complete');
    // Of this machine, and as before.
    const { output } = await runPeer('/bin/ls', ['/dev/null', '/proc/self/status']);
    expect(output).toBe('/dev/null\n/proc/self/status\n');
  },
  timeoutMs,
);
