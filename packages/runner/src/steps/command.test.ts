import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { access, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { RerunClass } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { digestOf, plainBlobs } from '@rackwright/oci';
import {
  type Page,
  pagesWeb,
  rangePage,
  type WrittenImage,
  writeImage,
  writeIndex,
  writeTar,
} from '@rackwright/oci/testing';
import { invalid, valid } from '@rackwright/platform';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { linuxCommandRoots } from '../linux/command-roots.ts';
import type { ProgramRequest, Programs } from '../program/program.ts';
import { runCommand } from './command.ts';
import type { StepContext } from './step.ts';
import { runStep } from './steps.fixture.ts';

let folder = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-command-'));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const layer = writeTar([
  { name: 'bin/tool', content: 'program', mode: 0o755 },
  { name: 'dev/null', type: '3' },
]);
const config = { Entrypoint: ['/bin/tool', '--x'], Cmd: ['usual'], Env: ['PATH=/bin', 'A=1'] };

const imageOf = (reference: string): agent.CommandImage =>
  create(agent.CommandImageSchema, { reference });

interface Rig {
  readonly image?: WrittenImage;
  readonly page?: (hex: string, range: string | undefined) => Page | undefined;
  readonly digest?: string;
  readonly order?: MessageInitShape<typeof agent.RunStepSchema>;
  readonly mayBegin?: StepContext['requestBegin'];
}

/** The step with programs that only note their requests, and a web that serves the image. */
function rig(given: Record<string, string>, options: Rig = {}) {
  const { image = writeImage([layer], { config }), page, order = {}, mayBegin } = options;
  const { digest = image.manifest } = options;
  const started: { request: ProgramRequest; tool: string }[] = [];
  const programs: Programs = {
    start: async (request, onOutput) => {
      const root = join(folder, 'command/root');
      started.push({ request, tool: await readFile(join(root, 'bin/tool'), 'utf8') });
      onOutput(Buffer.from('said\n'));
      return { end: Promise.resolve({ kind: 'exited', code: 0 }), stop: () => {} };
    },
  };
  const { web, requests } = pagesWeb(({ url, headers }) => {
    const hex = url.split('/').at(-1) ?? '';
    const own = page?.(hex, headers['range']);
    if (own !== undefined) return own;
    const blob = image.blobs.get(`sha256:${hex}` as typeof image.manifest);
    return blob === undefined ? { status: 404 } : rangePage(blob, headers['range']);
  });
  const place = {
    programs,
    roots: linuxCommandRoots({
      folder: join(folder, 'command'),
      path: '/usr/bin:/bin',
      procRoot: '/proc',
      chowns: false,
    }),
    architecture: 'amd64' as const,
    blobsAt: (endpoint: string) => plainBlobs(web, `http://${endpoint}`),
  };
  const run = runStep(
    runCommand(valid(place)),
    given,
    {
      destructive: false,
      image: imageOf(`registry.example.org/tools/x@${digest}`),
      ...order,
    },
    {
      imageEndpoint: '10.0.0.3:8080',
      secretEnvironment: { TOKEN: 'hunter2-hunter2' },
      ...(mayBegin === undefined ? {} : { requestBegin: mayBegin }),
    },
  );
  return { ...run, started, requests };
}

/** The part behind the assignments of an entered program. */
function inside({ args }: ProgramRequest): readonly string[] {
  return args.slice(args.findIndex((arg) => arg.endsWith('/unshare')));
}

describe('a command', () => {
  test('runs what its image says, with the given arguments and variables', async () => {
    const { end, started, output } = rig({
      arguments: '["--all","a b"]',
      environment: '{"B":"2"}',
      directory: '/work/here',
    });
    const { result } = await end;
    expect(result).toMatchObject({ kind: 'complete', output: { exit: { code: 0 } } });
    const [{ request, tool } = { request: undefined, tool: '' }] = started;
    if (request === undefined) throw new Error('nothing was started');
    expect(tool).toBe('program');
    const root = join(folder, 'command/root');
    expect(inside(request)).toEqual([
      expect.stringMatching(/unshare$/),
      `--root=${root}`,
      '--wd=/work/here',
      ...['--', '/bin/tool', '--x', '--all', 'a b'],
    ]);
    expect(request.args).toEqual(
      expect.arrayContaining(['PATH=/bin', 'A=1', 'B=2', 'HOME=/root', 'RACKWRIGHT_RUN=uid/7']),
    );
    expect(output()).toBe(
      'rackwright: 1 devices and pipes of the image were left out: dev/null\nsaid\n',
    );
    // Nothing of it stays.
    expect(await readdir(join(folder, 'command'))).toEqual([]);
  });

  test('gets its secrets in its environment, and in no list of arguments', async () => {
    const named = { credential: 'credentials/hub', part: 'password' };
    const { end, started } = rig({ secretEnvironment: JSON.stringify({ TOKEN: named }) });
    expect((await end).result.kind).toBe('complete');
    const [{ request } = { request: undefined }] = started;
    expect(request?.environment).toMatchObject({ TOKEN: 'hunter2-hunter2' });
    expect(request?.args.join('\n')).not.toContain('hunter2');
    // The last line before the program, as a shell runs it here: only its own variables are left.
    const script = request?.args[4]?.split('\n').at(-1)?.replace('exec ', '') ?? '';
    const out = execFileSync('/bin/sh', ['-c', script, 'sh', 'A=1', 'PATH=/usr/bin:/bin', 'env'], {
      env: { ...request?.environment, RACKWRIGHT_OPERATION: 'uid/7/3/1' },
      encoding: 'utf8',
    });
    expect(out.trim().split('\n').sort()).toEqual([
      'A=1',
      'PATH=/usr/bin:/bin',
      'RACKWRIGHT_OPERATION=uid/7/3/1',
      'TOKEN=hunter2-hunter2',
    ]);
  });

  test('a command without arguments runs with those of its image', async () => {
    const { end, started } = rig({});
    expect((await end).result.kind).toBe('complete');
    expect(started.map(({ request }) => inside(request).slice(4))).toEqual([
      ['/bin/tool', '--x', 'usual'],
    ]);
  });

  test('a command of an index is the one for this machine', async () => {
    const image = writeImage([layer], { config });
    const other = writeImage([], { config, architecture: 'arm64' });
    const index = writeIndex({ arm64: other, amd64: image });
    const digest = digestOf(index);
    const page = (hex: string): Page | undefined =>
      digest.endsWith(hex) ? { body: index } : undefined;
    const { end, started } = rig({}, { image, digest, page });
    expect((await end).result.kind).toBe('complete');
    expect(started).toHaveLength(1);
  });

  test('goes on with a layer where the connection broke', async () => {
    const large = writeTar([
      { name: 'bin/tool', content: 'program' },
      { name: 'random', content: deflateRawSync(Buffer.alloc(200_000, 'x'), { level: 0 }) },
    ]);
    const image = writeImage([large], { config, compression: 'none' });
    const [digest] = image.layers;
    const bytes = image.blobs.get(digest ?? image.config) ?? Buffer.alloc(0);
    let broken = 0;
    const page = (hex: string, range: string | undefined): Page | undefined => {
      if (digest?.endsWith(hex) !== true) return undefined;
      broken += 1;
      return broken > 3 ? undefined : { ...rangePage(bytes, range), breaksAfter: 20_000 };
    };
    const { end } = rig({}, { image, page });
    expect((await end).result.kind).toBe('complete');
    expect(broken).toBe(4);
  });
});

describe('an image is refused', () => {
  const failing = async (options: Rig): Promise<string> => {
    const { end, started } = rig({}, options);
    const { result } = await end;
    expect(started).toEqual([]);
    if (result.kind === 'complete') return 'complete';
    return `${result.kind === 'failed' ? result.type : result.kind}: ${result.message}`;
  };
  const changed = (of: 'config' | 'layer' | 'manifest') => {
    const image = writeImage([layer], { config });
    const digest = of === 'layer' ? image.layers[0] : image[of];
    const bytes = Buffer.from(image.blobs.get(digest ?? image.config) ?? '');
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    const page = (hex: string) => (digest?.endsWith(hex) === true ? { body: bytes } : undefined);
    return { image, page };
  };

  test.each(['manifest', 'config', 'layer'] as const)(
    'an image whose %s was changed is refused',
    async (of) => {
      expect(await failing(changed(of))).toMatch(/^imageUnusable: what /);
      expect(await leftovers()).toEqual([]);
    },
  );

  test('an image whose layer is another than its configuration says is refused', async () => {
    const image = writeImage([layer], { config });
    const text = String(image.blobs.get(image.config));
    const configBytes = text.replace(digestOf(layer), digestOf(writeTar([{ name: 'y' }])));
    const digest = digestOf(Buffer.from(configBytes));
    const manifest = String(image.blobs.get(image.manifest)).replace(image.config, digest);
    const named = digestOf(Buffer.from(manifest));
    const page = (hex: string): Page | undefined => {
      if (named.endsWith(hex)) return { body: manifest };
      return digest.endsWith(hex) ? { body: configBytes } : undefined;
    };
    expect(await failing({ image, page, digest: named })).toContain('is not what its config');
  });

  test.each([
    ['with bytes after its end', Buffer.concat([gzipSync(layer), Buffer.from('loose')])],
    ['that is no archive', gzipSync('nonsense'.repeat(100))],
    ['that is not packed as it says', Buffer.from('nonsense'.repeat(100))],
    ['cut within', gzipSync(layer).subarray(0, 100)],
  ])('an image with a layer %s is refused', async (_, bytes) => {
    const written = writeImage([layer], { config });
    const [old = written.config] = written.layers;
    const size = written.blobs.get(old)?.length ?? 0;
    const digest = digestOf(bytes);
    const manifest = String(written.blobs.get(written.manifest))
      .replace(old, digest)
      .replace(`"size":${size}`, `"size":${bytes.length}`);
    const named = digestOf(Buffer.from(manifest));
    const page = (hex: string): Page | undefined => {
      if (named.endsWith(hex)) return { body: manifest };
      return digest.endsWith(hex) ? { body: bytes } : undefined;
    };
    const found = await failing({ image: written, page, digest: named });
    if (bytes.includes('loose')) expect(found).toMatch(/^(complete|imageUnusable)/);
    else expect(found).toMatch(/^imageUnusable/);
    expect(await leftovers()).toEqual([]);
  });

  test.each([
    ['for another user', { ...config, User: 'nobody' }, 'only root (0) is taken'],
    ['without a program', {}, 'names no program'],
  ])('an image %s is refused', async (_, other, text) => {
    expect(await failing({ image: writeImage([layer], { config: other }) })).toContain(text);
  });

  test('an image for another machine is refused', async () => {
    const image = writeImage([layer], { config, architecture: 'arm64' });
    expect(await failing({ image })).toContain('the image is for linux/arm64; this is linux/amd64');
  });

  test('an image that leads out of its folder is refused', async () => {
    const image = writeImage([writeTar([{ name: '../../x' }])], { config });
    expect(await failing({ image })).toContain('with ".."');
    expect(await leftovers()).toEqual([]);
  });

  test('an image is refused for now when the agent does not serve it', async () => {
    const page = (): Page => ({ status: 503 });
    const text = 'the agent does not serve the image';
    const safe = { rerunClass: RerunClass.SAFE };
    expect(await failing({ page, order: safe })).toContain(`retryAfter: ${text}`);
    // Nothing has run: that is known, and its template decides the next action.
    const once = { rerunClass: RerunClass.NEVER_TWICE };
    expect(await failing({ page, order: once })).toContain(`imageUnusable: ${text}`);
    expect(await failing({ page: () => ({ status: 404 }) })).toMatch(/^imageUnusable/);
  });
});

async function leftovers(): Promise<string[]> {
  const found = await access(join(folder, 'command')).then(
    () => readdir(join(folder, 'command')),
    () => [],
  );
  return found;
}

test('a layer packed with zstd is unpacked', async () => {
  const written = writeImage([layer], { config });
  const bytes = zstdCompressSync(layer);
  const [old = written.config] = written.layers;
  const size = written.blobs.get(old)?.length ?? 0;
  const digest = digestOf(bytes);
  const manifest = String(written.blobs.get(written.manifest))
    .replace(old, digest)
    .replace(`"size":${size}`, `"size":${bytes.length}`)
    .replace('tar+gzip', 'tar+zstd');
  const named = digestOf(Buffer.from(manifest));
  const page = (hex: string): Page | undefined => {
    if (named.endsWith(hex)) return { body: manifest };
    return digest.endsWith(hex) ? { body: bytes } : undefined;
  };
  const { end, started } = rig({}, { image: written, page, digest: named });
  expect((await end).result.kind).toBe('complete');
  expect(started.map(({ tool }) => tool)).toEqual(['program']);
});

test.each<[Record<string, string>, Rig['order'], string]>([
  [{ shell: 'x' }, {}, 'unknown arguments shell'],
  [{ arguments: 'x' }, {}, 'arguments: must be a JSON list'],
  [{ arguments: '[1]' }, {}, 'arguments: must be a JSON list'],
  [{ arguments: JSON.stringify(Array(101).fill('')) }, {}, 'arguments: at most 100'],
  [{ environment: '{"1":"x"}' }, {}, 'is no name of a variable'],
  [{ directory: 'work' }, {}, 'directory: must be an absolute path'],
  [{ directory: '/a/../..' }, {}, 'directory: must be an absolute path'],
  [{}, { image: imageOf('registry.example.org/x:tag') }, 'must be named by its digest'],
  [{}, { image: imageOf('x') }, 'must begin with its registry'],
  [{}, { mode: agent.StepMode.CHECK }, 'can only be run'],
])('the step refuses %o with %o', async (given, order, text) => {
  const { end, requests } = rig(given, { order: order ?? {} });
  expect((await end).result).toMatchObject({
    kind: 'failed',
    type: 'invalidArgument',
    message: expect.stringContaining(text),
  });
  expect(requests).toEqual([]);
});

test('a machine that is not proved runs nothing that may destroy', async () => {
  const { end, requests } = rig({}, { order: { destructive: true } });
  expect((await end).result).toMatchObject({ kind: 'failed', type: 'identityUnproven' });
  expect(requests).toEqual([]);
});

describe('a destructive command begins only when it is permitted, after all was unpacked', () => {
  const order = { destructive: true, allowUnprovenIdentity: true };
  const unpacked = () => existsSync(join(folder, 'command/root/bin/tool'));

  test('a destructive command begins once it is granted', async () => {
    const found: boolean[] = [];
    const mayBegin = async () => {
      found.push(unpacked());
      return { kind: 'granted' } as const;
    };
    const { end, started } = rig({}, { order, mayBegin });
    expect((await end).result.kind).toBe('complete');
    expect(found).toEqual([true]);
    expect(started).toHaveLength(1);
  });

  test.each([
    [{ kind: 'aborted' } as const, 'It was cancelled before its program was started.'],
    [{ kind: 'over', reason: 'why' } as const, 'Its program was not started: why.'],
  ])('a destructive command never begins when the question ends as %j', async (answer, message) => {
    const { end, started } = rig({}, { order, mayBegin: async () => answer });
    expect((await end).result).toEqual({ kind: 'failed', type: 'cancelled', message });
    expect(started).toEqual([]);
    expect(unpacked()).toBe(false);
  });

  test('a command that destroys nothing begins without a question', async () => {
    const mayBegin = () => Promise.reject(new Error('was asked'));
    const { end } = rig({}, { mayBegin });
    expect((await end).result.kind).toBe('complete');
  });
});

test('the step says why no command runs on this machine', async () => {
  const { end } = runStep(runCommand(invalid('no images here')), {});
  expect((await end).result).toMatchObject({ type: 'unsupported', message: 'no images here' });
});

test('a command that is cancelled while it is unpacked starts nothing', async () => {
  const { end, stop, started } = rig({});
  stop();
  expect((await end).result).toMatchObject({ kind: 'failed', type: 'cancelled' });
  expect(started).toEqual([]);
});
