/**
 * The runner as a process, killed while it writes an image. The disk's content decides: nothing
 * that boots, or all of the image.
 */
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import {
  asRunNumber,
  BmcIdentitySchema,
  DeployProof,
  deploymentIdOf,
  FirstBootFormat,
  type OperationId,
} from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import * as runner from '@rackwright/messages/runner';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bootToken, startRunner } from '../process.fixture.ts';
import { startTestAgent, type TestAgent } from '../session/test-agent.ts';
import {
  addDisk,
  contentOf,
  diskImage,
  mib,
  removeDisks,
  type ServedImages,
  serveImages,
  sha256,
} from './deploy.fixture.ts';

const guid = '00112233445566778899aabbccddeeff';
const image = diskImage();
let folder = '';
let images: ServedImages;
let testAgent: TestAgent;
let child: ChildProcess | undefined;

beforeEach(async () => {
  folder = addDisk('sda', { serial: 'S-sda' });
  writeFileSync(join(folder, 'dmi'), JSON.stringify({ uuid: guid, bootId: 'boot-1' }));
  images = await serveImages(image);
  testAgent = await startTestAgent(bootToken, images.endpoint);
});

afterEach(async () => {
  child?.kill('SIGKILL');
  images.close();
  await testAgent.close();
  removeDisks(folder);
});

async function start(kernelArgs = ''): Promise<string | null> {
  const started = startRunner(folder, testAgent, kernelArgs);
  child = started.child;
  return (await started.ended).signal;
}

async function order(operationId: OperationId): Promise<void> {
  const deploy = {
    proof: DeployProof.POWER_ON,
    firstBoot: { format: FirstBootFormat.NONE },
    grow: false,
  };
  const value = create(agent.RunStepSchema, {
    step: 'deploy.write_image',
    mode: agent.StepMode.RUN,
    destructive: true,
    expectedIdentity: create(BmcIdentitySchema, { guid: Buffer.from(guid, 'hex') }),
    deployment: { id: deploymentIdOf('u', asRunNumber(7)), hostName: 'h1', deploy },
  });
  const imageFile = { digest: `sha256:${sha256(image)}`, sizeBytes: BigInt(image.length) };
  const message = { operationId, kind: { case: 'runStep' as const, value }, imageFile };
  await testAgent.send({ case: 'order', value: create(runner.OrderSchema, message) });
}

function finalOf(operationId: OperationId) {
  return testAgent.until(({ results }) => {
    const mine = results.filter((each) => each.operationId === operationId);
    return mine.map(({ result }) => result).find(({ kind }) => kind !== 'continuing');
  });
}

const disk = (from: number, to: number): Buffer => contentOf(folder, 'sda').subarray(from, to);
const isOld = (from: number, to: number): boolean =>
  disk(from, to).equals(Buffer.alloc(to - from, 'PATTERN!'));
const isImage = (from: number, to: number): boolean =>
  disk(from, to).equals(image.subarray(from, to));
const isBlank = (from: number, to: number): boolean => disk(from, to).every((byte) => byte === 0);
const end = image.length;

/** Point → the disk's content when the runner is killed there. */
test.each<[string, () => boolean]>([
  ['runner.image.begun', () => isOld(0, 14 * mib)],
  ['runner.image.writing:2', () => isBlank(0, mib) && isImage(mib, 2 * mib) && isOld(3 * mib, end)],
  ['runner.image.readBack', () => isBlank(0, mib) && isImage(mib, end)],
])('killed at %s, it leaves no table, and the next attempt is whole', async (point, isLeft) => {
  const killed = start(`rackwright.lab.crash=${point}`);
  await order('a');
  expect(await killed).toBe('SIGKILL');
  expect(isLeft()).toBe(true);

  void start(`rackwright.lab.crash=${point}`);
  expect(await finalOf('a')).toMatchObject({
    kind: 'failed',
    type: 'interrupted',
    lastProgress: expect.stringContaining('"S-sda":"begun"'),
  });
  expect(isLeft()).toBe(true);

  const value = create(runner.ReportReceivedSchema, { operationId: 'a' });
  await testAgent.send({ case: 'reportReceived', value });
  await order('b');
  expect(await finalOf('b')).toMatchObject({ kind: 'complete' });
  expect(isImage(0, end)).toBe(true);
});
