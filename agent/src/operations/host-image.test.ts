import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  asRunNumber,
  DeployProof,
  deploymentIdOf,
  type FailureName,
} from '@rackwright/messages';
import { digestOfHex, OciError, ociFailures } from '@rackwright/oci';
import type { FinalResult } from '@rackwright/results';
import { expect, test } from 'vitest';
import { type ComingHostImage, DetachedFetches, type HostImages } from '../images/index.ts';
import type { ImageOfOrder } from '../runner-gateway/index.ts';
import type { OperationContext, Progress } from '../session/index.ts';
import { TestClock } from '../session/testing/clock.ts';
import { resumeWithHostImage, withHostImage } from './host-image.ts';

const uid = 'ab'.repeat(16);
const hex = 'cd'.repeat(32);
const never = new AbortController().signal;
const reference = `registry.example.org/os/debian@sha256:${hex}`;
type Begin = HostImages['begin'];
type BeginParameters = Parameters<Begin>;

/** Internal addresses, as the fleet lists them. */
const internal = ['127.0.0.1:5000'];

function setUp(
  begin: (...asked: BeginParameters) => ReturnType<Begin>,
  proof: DeployProof = DeployProof.UNSPECIFIED,
  writeAsFetched = true,
) {
  const time = new TestClock();
  const { clock } = time.open();
  const stop = new AbortController();
  const told: Progress[] = [];
  const asked: BeginParameters[] = [];
  let credentials = true;
  const context: OperationContext = {
    signal: stop.signal,
    begin: async () => {},
    reportProgress: (progress) => told.push(progress),
    credential: async (name, version) => {
      if (!credentials) throw new Error('it has not come');
      return { name, version, username: name, password: 'imitated' };
    },
    isLeaseValid: () => true,
    leaseLeftMs: () => 9_000,
    brake: () => undefined,
    remainingMs: () => 60_000 - clock.suspendAwareMs(),
    openGrant: () => Promise.reject(new Error('no boot is opened')),
    closeGrants: async () => {},
  };
  const mirror = {
    ...{ registry: 'mirror:5000', prefix: 'm', credential: 'credentials/m', caPem: 'CA' },
    tokenService: 'auth.m',
  };
  const image = {
    ...{ reference, credential: 'credentials/r', plainHttp: true, mirrors: [mirror] },
    ...{ tokenService: 'auth', internalAddresses: [...internal] },
  };
  const deployment = {
    id: deploymentIdOf(uid, asRunNumber(3)),
    image,
    deploy: { proof },
    writeAsFetched,
  };
  const request = create(agent.RunStepSchema, { step: 'deploy.write_image', deployment });
  const operation = create(agent.OperationSchema, { id: `${uid}/3/4/1`, hostUid: uid });
  const parts = {
    images: {
      begin: async (...all: BeginParameters) => {
        if (!writeAsFetched) throw new Error('nobody begins before it is whole');
        asked.push(all);
        return begin(...all);
      },
      pin: async (...all: BeginParameters) => {
        if (writeAsFetched) throw new Error('nobody waits until it is whole');
        asked.push(all);
        const coming = await begin(...all);
        await coming.whole;
        return coming;
      },
    },
    ...({ clock, architecture: 'arm64' } as const),
    ...{ phoneHomePath: (id: string) => `/phone-home/${id}`, carriedOn: new DetachedFetches() },
  };
  return {
    ...{ asked, context, parts, stop, time, told, operation, request },
    withholdCredentials: (isSo: boolean) => void (credentials = !isSo),
    run: (order: (image: ImageOfOrder, within: OperationContext) => Promise<FinalResult>) =>
      withHostImage(parts, operation, request, undefined, context, order),
  };
}

function pinnedImage(
  released: string[] = [],
  changes: Partial<ComingHostImage> = {},
): ComingHostImage {
  const digest = digestOfHex(hex);
  const blob = { mediaType: 'x', digest, sizeBytes: 5 };
  return {
    image: { version: '', disk: { blob, format: 'raw', architecture: 'arm64', contentBytes: 9 } },
    ...{ digests: [], giveBackSlot: () => {}, release: () => void released.push('released') },
    ...{ isWhole: async () => true, doubt: () => void released.push('doubted') },
    ...{ whole: Promise.resolve(), restarted: never, ...changes },
  };
}

const done: FinalResult = { kind: 'complete' };
const untilStopped = (within: OperationContext): Promise<FinalResult> =>
  new Promise((resolve) => {
    const stopped: FinalResult = { kind: 'failed', type: 'cancelled', message: 'stopped' };
    if (within.signal.aborted) resolve(stopped);
    within.signal.addEventListener('abort', () => resolve(stopped));
  });

test('the runner is ordered once the image begins to come, and the image is pinned', async () => {
  const released: string[] = [];
  const { asked, run, told } = setUp(async (_host, _wanted, _signal, tell) => {
    tell({ phase: 'queued', position: 3 });
    tell({ phase: 'fetching', fetchedBytes: 1_500_000, allBytes: 3_000_000 });
    return pinnedImage(released);
  });
  const ended = await run(async (image) => {
    expect(released).toEqual([]);
    expect(image).toEqual({
      phoneHomePath: `/phone-home/${uid}/3`,
      imageFile: {
        ...{ digest: `sha256:${hex}`, sizeBytes: 5n, format: 'raw', compression: '' },
        ...{ contentBytes: 9n, contentDigest: '', architecture: 'arm64' },
      },
    });
    return done;
  });
  expect(ended).toBe(done);
  expect(released).toEqual(['released']);
  expect(told.map(({ text }) => text)).toEqual([
    'queued for the image, place 3',
    'fetches the image: 1.5 of 3.0 MB',
  ]);
  const credential = (name: string) => ({ username: name, password: 'imitated' });
  expect(asked[0]?.slice(0, 2)).toEqual([
    uid,
    {
      ...{ architecture: 'arm64', needs: 'disk' },
      from: {
        ...{ kind: 'registry', reference, plainHttp: true },
        ...{ credential: credential('credentials/r'), tokenService: 'auth', internal },
        mirrors: [
          {
            ...{ registry: 'mirror:5000', prefix: 'm', plainHttp: false, caPem: 'CA' },
            ...{ credential: credential('credentials/m'), tokenService: 'auth.m', internal },
          },
        ],
      },
    },
  ]);
});

test('a host that proves itself by its power gets no address to call', async () => {
  const { run } = setUp(async () => pinnedImage(), DeployProof.POWER_ON);
  await run(async ({ phoneHomePath }) => {
    expect(phoneHomePath).toBe('');
    return done;
  });
});

const refuse = (kind: OciError['kind'], retryAfterMs?: number) =>
  setUp(() => Promise.reject(new OciError(kind, 'the words', { retryAfterMs })));
const notOrdered = () => Promise.reject(new Error('the runner was ordered'));

test('each failure of a registry is told apart before a runner is ordered', async () => {
  const told: Record<string, string> = {};
  for (const kind of ociFailures) {
    const result = await refuse(kind).run(notOrdered);
    expect('message' in result && result.message).toMatch(/^the words/);
    told[kind] = result.kind === 'failed' ? result.type : result.kind;
  }
  expect(told).toEqual({
    unauthorized: 'registryUnauthorized',
    untrusted: 'registryUnreachable',
    forbidden: 'notAllowed',
    refused: 'registryUnreachable',
    notFound: 'imageNotFound',
    noPlatform: 'wrongArchitecture',
    digestMismatch: 'imageDigestMismatch',
    truncated: 'imageTruncated',
    tooLarge: 'noSpace',
    noSpace: 'noSpace',
    malformed: 'badImage',
    tooMany: 'transientError',
    unreachable: 'transientError',
    cancelled: 'transientError',
  });
});

test('a registry’s Retry-After sets the delay of the next attempt', async () => {
  const told = await refuse('tooMany', 7_000).run(notOrdered);
  expect(told).toMatchObject({ kind: 'transientError', cause: 'registry', delayMs: 7_000 });
});

test('the step fails when its time is over while the image is fetched', async () => {
  const { run, time } = setUp(
    (_host, _wanted, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new OciError('cancelled', 'given up')));
      }),
  );
  const ended = run(notOrdered);
  await time.run(60_000);
  expect(await ended).toMatchObject({ kind: 'failed', type: 'deadline' });
});

const withSlotTime = { turnTimeout: durationFromMs(20_000) };

test('the wait for a slot does not count against the step’s own time', async () => {
  const order = Promise.withResolvers<FinalResult>();
  const { request, run, told, time } = setUp(async (_host, _wanted, _signal, tell) => {
    tell({ phase: 'queued', position: 1 });
    await new Promise<void>((resolve) => void time.open().clock.after(30_000, resolve));
    tell({ phase: 'admitted' });
    return pinnedImage();
  });
  Object.assign(request, withSlotTime);
  let leftMs = 0;
  const ended = run((_image, { remainingMs }) => {
    leftMs = remainingMs();
    return order.promise;
  });
  await time.run(30_000);
  expect(leftMs, 'of 60 s to the deadline').toBe(20_000);
  expect(told.map(({ queuePlace }) => queuePlace)).toEqual([1, undefined]);
  order.resolve(done);
  expect(await ended).toBe(done);
});

test('the wait for a slot ends early enough to leave the step its own time', async () => {
  const { request, run, time } = setUp((_host, _wanted, signal, tell) => {
    tell({ phase: 'queued', position: 7 });
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new OciError('cancelled', 'given up')));
    });
  });
  Object.assign(request, withSlotTime);
  let type = '';
  void run(notOrdered).then((result) => (type = result.kind === 'failed' ? result.type : ''));
  await time.run(39_000);
  expect(type).toBe('');
  await time.run(1_000);
  expect(type).toBe('queueTimeout');
});

test('the step fails when its own time ends in the fetch, before the deadline', async () => {
  const { request, run, time } = setUp((_host, _wanted, signal, tell) => {
    tell({ phase: 'admitted' });
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new OciError('cancelled', 'given up')));
    });
  });
  Object.assign(request, withSlotTime);
  const ended = run(notOrdered);
  await time.run(20_000);
  expect(await ended).toMatchObject({ kind: 'failed', type: 'deadline' });
});

/** One that is ordered while its image comes, and ends by what becomes of that. */
function setUpComing() {
  const whole = Promise.withResolvers<void>();
  const [anew, released] = [new AbortController(), [] as string[]];
  whole.promise.catch(() => {});
  let begun = 0;
  const rig = setUp(async () => {
    begun += 1;
    if (begun > 1) return pinnedImage(released);
    return pinnedImage(released, { whole: whole.promise, restarted: anew.signal });
  });
  return { ...rig, whole, anew, released, begun: () => begun };
}

const lostDisk: FinalResult = {
  ...{ kind: 'failed', type: 'cancelled', message: 'stopped' },
  observations: create(agent.ObservationsSchema, { writtenImage: { serial: 'S-sda' } }),
};

test('a runner is stopped when the image proves wrong, and the lost disk is reported', async () => {
  const { run, whole, released } = setUpComing();
  const ended = run(async (_image, within) => {
    whole.reject(new OciError('digestMismatch', 'it is another'));
    await untilStopped(within);
    return lostDisk;
  });
  expect(await ended).toMatchObject({
    ...{ kind: 'failed', type: 'imageDigestMismatch' },
    message: 'it is another; what the disk S-sda held is lost',
    observations: { writtenImage: { serial: 'S-sda' } },
  });
  expect(released).toContain('released');
});

test('a registry that is away does not stop a runner that writes', async () => {
  const { begun, run, time, whole, released } = setUpComing();
  const over = Promise.withResolvers<FinalResult>();
  let isStopped = false;
  const ended = run((_image, within) => {
    void untilStopped(within).then(() => (isStopped = true));
    return over.promise;
  });
  await time.run(10);
  whole.reject(new OciError('unreachable', 'no route'));
  await time.run(10_000);
  expect([begun(), isStopped, released]).toEqual([2, false, ['released']]);
  over.resolve(done);
  await time.run(10);
  expect(await ended).toBe(done);
  expect(released).toEqual(['released', 'released']);
});

test('a runner that has read discarded bytes is stopped, and the step is tried again', async () => {
  const { anew, run } = setUpComing();
  const ended = run(async (_image, within) => {
    anew.abort();
    await untilStopped(within);
    return lostDisk;
  });
  expect(await ended).toMatchObject({ kind: 'transientError', cause: 'registry' });
});

test('unless the control plane permits it, no runner is ordered before all is proved', async () => {
  const whole = Promise.withResolvers<void>();
  const begin = async () => pinnedImage([], { whole: whole.promise });
  const { run, time, ...rig } = setUp(begin, DeployProof.UNSPECIFIED, false);
  const ordered: string[] = [];
  const ended = run(async () => {
    ordered.push('first');
    return done;
  });
  const { parts, operation, request, context } = rig;
  const again = resumeWithHostImage(parts, operation, request, context, async (image) => {
    while (image() === undefined) await new Promise(setImmediate);
    ordered.push('again');
    return done;
  });
  await time.run(5_000);
  await new Promise(setImmediate);
  expect(ordered).toEqual([]);
  whole.resolve();
  expect([await ended, await again]).toEqual([done, done]);
  expect(ordered.sort()).toEqual(['again', 'first']);
});

test('the fetch that the step before began continues without waiting for a slot', async () => {
  const released: string[] = [];
  const { asked, parts, run } = setUp(() => Promise.reject(new Error('it comes already')));
  const whole = Promise.withResolvers<void>();
  const coming = pinnedImage(released, { whole: whole.promise });
  const key = {
    hostUid: uid,
    deploymentId: deploymentIdOf(uid, asRunNumber(3)),
    architecture: 'arm64',
  } as const;
  parts.carriedOn.carry(key, coming, { signal: never, end: () => {} });
  const ended = await run(async () => {
    expect(released).toEqual([]);
    whole.resolve();
    return done;
  });
  expect([ended, asked, released]).toEqual([done, [], ['released']]);
});

test('after a restart the image is pinned again, however long its registry is away', async () => {
  const released: string[] = [];
  let tries = 0;
  const rig = setUp(async () => {
    tries += 1;
    if (tries < 3) throw new OciError('unreachable', 'no route');
    return pinnedImage(released);
  });
  rig.withholdCredentials(true);
  const over = Promise.withResolvers<FinalResult>();
  let image: (() => ImageOfOrder | undefined) | undefined;
  const { parts, operation, request, context, time } = rig;
  const ended = resumeWithHostImage(parts, operation, request, context, (its) => {
    image = its;
    return over.promise;
  });
  await time.run(5_000);
  expect([tries, image?.()]).toEqual([0, undefined]);
  rig.withholdCredentials(false);
  await time.run(10_000);
  expect(tries).toBe(3);
  expect(image?.()).toMatchObject({ imageFile: { digest: `sha256:${hex}` } });
  expect(released).toEqual([]);
  over.resolve(done);
  await time.run(10);
  expect(await ended).toBe(done);
  expect(released).toEqual(['released']);
});

test('after a restart the runner is stopped when its image can be had no more', async () => {
  const rig = setUp(() => Promise.reject(new OciError('notFound', 'it is gone')));
  const { parts, operation, request, context, time } = rig;
  const ended = resumeWithHostImage(parts, operation, request, context, (_, within) =>
    untilStopped(within),
  );
  await time.run(10);
  expect(await ended).toMatchObject({ type: 'imageNotFound', message: 'it is gone' });
});

const told = (type: FailureName): FinalResult => ({ kind: 'failed', type, message: 'its words' });

test.each<[string, FinalResult, string[]]>([
  ['another digest', told('imageDigestMismatch'), ['doubted', 'released']],
  ['a format that is none', told('badImage'), ['doubted', 'released']],
  ['being cut short', told('interrupted'), ['doubted', 'released']],
  ['its deadline', told('deadline'), ['doubted', 'released']],
  [
    'having read nothing',
    { kind: 'retryAfter', reason: 'fault', message: 'it does not come', delayMs: 1 },
    ['doubted', 'released'],
  ],
  ['an error of the disk', told('ioError'), ['released']],
  ['a disk that is too small', told('imageTooLarge'), ['released']],
  ['success', { kind: 'complete' }, ['released']],
])('the image that a runner has read is verified again after %s', async (_, end, done) => {
  const released: string[] = [];
  expect(await setUp(async () => pinnedImage(released)).run(async () => end)).toBe(end);
  expect(released).toEqual(done);
  const resumed: string[] = [];
  const { parts, operation, request, context } = setUp(async () => pinnedImage(resumed));
  await resumeWithHostImage(parts, operation, request, context, async (image) => {
    await expect.poll(image).toBeDefined();
    return end;
  });
  expect(resumed).toEqual(done);
});
