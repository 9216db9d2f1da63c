/**
 * The step `deploy.write_image`: the image of a host onto its root disk.
 *
 * W1 Nothing is written before every guard has passed: the order is well-formed, this is the right
 *    machine (guard 0), exactly one disk is meant, none that is kept and none that came after the
 *    inspection of the run, the image is for this machine, and the agent says at that moment that
 *    it may begin (R11).
 * W2 Until the end the disk boots nothing (`provision/provision.ts`); so the step may be repeated.
 * W3 The result names the disk's content, also when the step has failed after the first write. It
 *    also says when nothing was written, for each reason of a refusal.
 * W4 Once the disk is written to, the step waits for an agent that is away. An agent that never
 *    comes back interrupts the step, and is no fault of the image.
 */

import { create } from '@bufbuild/protobuf';
import {
  type BootableFirmware,
  chooseTarget,
  compressions,
  diskFormats,
  ImageError,
  removableLoader,
  type Seed,
} from '@rackwright/disk-image';
import {
  type DeviceFacts,
  decideScope,
  deviceIdentity,
  orderedScopePolicy,
} from '@rackwright/erasure';
import { RerunClass, writeImageStep } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import type * as runner from '@rackwright/messages/runner';
import { invalid, type Read, valid } from '@rackwright/platform';
import type { FailedAttempt } from '@rackwright/results';
import { withImageDisk } from '../linux/image-disk.ts';
import { DeviceError } from '../machine/block-devices.ts';
import type { ImageFile } from '../provision/prepared-image.ts';
import { type InstalledDisk, type ProvisionResult, provisionDisk } from '../provision/provision.ts';
import { readingLimitsWhileWriting } from '../provision/web-source.ts';
import { guardIdentity } from '../steps/guard.ts';
import type { Step, StepContext, StepResult } from '../steps/step.ts';
import { firstBootOf } from './first-boot.ts';
import type { ImageTools } from './image-tools.ts';
import { writtenImage } from './written.ts';

/** The name in the menu of UEFI firmware; it identifies our entries. */
const entryDescription = 'Rackwright image';
/** The delay before another try of an image that the agent did not serve. */
const retryDelayMs = 10_000;

type ProvisionFailed = Extract<ProvisionResult, { readonly kind: 'failed' }>;

const failureTypes: {
  readonly [Fault in ProvisionFailed['fault']]: FailedAttempt['type'];
} = {
  unreachable: 'registryUnreachable',
  truncated: 'imageTruncated',
  tooLong: 'imageDigestMismatch',
  digestMismatch: 'imageDigestMismatch',
  wrongFormat: 'badImage',
  malformed: 'badImage',
  unsupported: 'badImage',
  tooLarge: 'imageTooLarge',
  notReadBack: 'writeError',
  ioError: 'writeError',
  notBootable: 'notBootable',
  noRootDisk: 'noRootDisk',
  badSeed: 'invalidArgument',
  cancelled: 'cancelled',
  notPermitted: 'cancelled',
};

/** A well-formed order. */
interface ImageOrder {
  readonly deployment: agent.Deployment;
  readonly file: runner.ImageFile;
  readonly image: ImageFile;
  readonly url: string;
  readonly seed: Seed | undefined;
}

/** All that is known before the disk is opened. */
interface Work extends ImageOrder {
  readonly context: StepContext;
  readonly tools: ImageTools;
  readonly device: DeviceFacts;
  readonly firmware: BootableFirmware | undefined;
}

/** Writes the image that the order brings onto the root disk. */
export function writeImage(tools: ImageTools): Step {
  return {
    description: {
      name: writeImageStep,
      priority: 0,
      rerunClass: RerunClass.SAFE,
      destructive: true,
      abortable: true,
      description: 'Writes the image of the host onto its root disk and reads it back.',
      arguments: {},
    },
    run: (context) => run(context, tools),
  };
}

async function run(context: StepContext, tools: ImageTools): Promise<StepResult> {
  const wanted = readWanted(context);
  if (wanted.kind === 'bad') return failed('invalidArgument', wanted.problem);
  const { deployment, file } = wanted.value;
  const guard = await guardIdentity(context);
  if (guard.kind === 'failed') return untouched(guard.end);
  if (file.architecture !== '' && file.architecture !== tools.architecture) {
    const message = `the image is for ${file.architecture}; this host is ${tools.architecture}`;
    return failed('wrongArchitecture', message);
  }
  const keep = deployment.deploy?.keepDisks ?? [];
  const { devices } = await context.devices.list();
  const chosen = chooseTarget(decideScope(devices, orderedScopePolicy), deployment.rootDisk, keep);
  if (chosen.kind === 'refused') return failed(chosen.type, chosen.message);
  const { device } = chosen;
  const stranger = strangerTo(context.order, device);
  if (stranger !== undefined) return failed('deviceChanged', stranger);
  const work = { ...wanted.value, context, tools, device, firmware: await tools.firmware() };
  context.log.info({ device: device.name, image: file.digest }, 'an image is to be written');
  const end = await provision(work);
  return end.kind === 'failed' ? failureOf(work, end) : await completed(work, end.installed);
}

/** The owner of a disk that came after the host was inspected is unknown. */
function strangerTo({ devices }: agent.RunStep, device: DeviceFacts): string | undefined {
  const known = devices.flatMap((plan) =>
    plan.device === undefined ? [] : [deviceIdentity(plan.device)],
  );
  // A control plane of the previous release names none.
  if (devices.length === 0 || known.includes(deviceIdentity(device))) return undefined;
  return `disk ${deviceIdentity(device)} was not there when the host was inspected`;
}

async function provision(work: Work): Promise<ProvisionResult> {
  const { context, tools, device, image, deployment, seed, firmware } = work;
  const plan = {
    image,
    grow: deployment.deploy?.grow ?? true,
    ...(seed === undefined ? {} : { seed }),
    ...(firmware === undefined ? {} : { firmware }),
  };
  let hasBegun = false;
  const parts = {
    unxz: tools.unxz,
    hashes: tools.hashes,
    limits: readingLimitsWhileWriting(tools.limits, () => hasBegun, context.signal),
    requestBegin: async () => {
      await context.recordStage(deviceIdentity(device), 'begun');
      const may = await context.requestBegin();
      hasBegun = may.kind === 'granted';
      return may;
    },
    reached: (point: string) => context.crashPoint(`runner.image.${point}`),
  };
  const source = tools.sourceAt(work.url);
  const tell = progressOf(context, device);
  try {
    return await withImageDisk(context.devices, device, (disk) =>
      provisionDisk(plan, source, disk, tell, context.signal, parts),
    );
  } catch (error) {
    // The disk could not be opened, written to or closed.
    if (!(error instanceof DeviceError)) throw error;
    return { kind: 'failed', fault: 'ioError', message: error.message, begun: hasBegun };
  }
}

/** Reports each percent once: pieces come by the thousand. */
function progressOf(context: StepContext, { name }: DeviceFacts) {
  let reported = '';
  return (fraction: number, action: string): void => {
    const percent = Math.floor(100 * fraction);
    const text = `${action} (${name})`;
    if (reported === `${percent} ${text}`) return;
    reported = `${percent} ${text}`;
    context.reportProgress(percent, text);
  };
}

async function completed(work: Work, installed: InstalledDisk): Promise<StepResult> {
  const { context, tools, device, file, firmware } = work;
  await tools.settle(device).catch((error: unknown) => {
    // The host is switched off and on next; nothing here depends on it.
    if (!(error instanceof DeviceError)) throw error;
    context.log.warn({}, 'the kernel keeps the old partitions', error);
  });
  const entry = firmware === 'uefi' ? await bootEntry(work, installed) : {};
  const written = writtenImage({ file, device, firmware, installed, ...entry });
  const observations = create(agent.ObservationsSchema, { writtenImage: written });
  return { result: { kind: 'complete', observations } };
}

/** The host boots without it as well, from where firmware looks on every disk. */
async function bootEntry(
  { context, tools, device, deployment }: Work,
  { efiSystem }: InstalledDisk,
): Promise<{ readonly entry?: string; readonly problem?: string }> {
  try {
    if (efiSystem === undefined) throw new ImageError('notBootable', 'no EFI system partition');
    const wanted = {
      description: entryDescription,
      partition: efiSystem,
      blockBytes: device.regions[0]?.logicalBlockBytes ?? 0,
      loader: removableLoader[tools.architecture],
    };
    const position = deployment.networkFirst ? 'afterNetwork' : 'first';
    return { entry: await tools.addBootEntry(wanted, position) };
  } catch (error) {
    if (!(error instanceof ImageError) && !(error instanceof DeviceError)) throw error;
    context.log.warn({}, 'no boot entry was made', error);
    return { problem: error.message };
  }
}

function failureOf(
  { context, device, file, firmware }: Work,
  { fault, message, begun }: ProvisionFailed,
): StepResult {
  if (!begun && fault === 'unreachable' && !context.signal.aborted) {
    return {
      result: { kind: 'retryAfter', reason: 'fault', message, delayMs: retryDelayMs },
    };
  }
  if (!begun) return failed(failureTypes[fault], message);
  const type = fault === 'unreachable' ? 'interrupted' : failureTypes[fault];
  const written = writtenImage({ file, device, firmware });
  const observations = create(agent.ObservationsSchema, { writtenImage: written });
  const lost = `${message}; what the disk ${deviceIdentity(device)} held is lost`;
  return { result: { kind: 'failed', type, message: lost, observations } };
}

function readWanted(context: StepContext): Read<ImageOrder> {
  const { order, imageFile: file, imageEndpoint, phoneHomeUrl = '' } = context;
  const { deployment, mode } = order;
  if (mode !== agent.StepMode.RUN)
    return invalid('mode: an image can only be written, not checked');
  if (deployment === undefined) return invalid('deployment: is missing');
  if (file === undefined) return invalid('image_file: is missing');
  if (imageEndpoint === '') return invalid('the agent of this rack serves no images');
  const image = imageOf(file);
  if (image.kind === 'bad') return image;
  const seed = firstBootOf(deployment, phoneHomeUrl);
  if (seed.kind === 'bad') return seed;
  const url = `http://${imageEndpoint}/v2/blobs/sha256/${image.value.sha256}`;
  return valid({ deployment, file, image: image.value, url, seed: seed.value });
}

function imageOf(file: runner.ImageFile): Read<ImageFile> {
  const sha256 = hexIn(file.digest);
  if (sha256 === undefined) return invalid('image_file.digest: must be sha256: and 64 hex digits');
  const contentSha256 = hexIn(file.contentDigest);
  if (contentSha256 === undefined && file.contentDigest !== '') {
    return invalid('image_file.content_digest: must be sha256: and 64 hex digits');
  }
  const format = diskFormats.find((each) => each === file.format);
  if (format === undefined && file.format !== '') {
    return invalid(`image_file.format: must be one of ${diskFormats.join(', ')}`);
  }
  const compression = compressions.find((each) => each === file.compression);
  if (compression === undefined && file.compression !== '') {
    return invalid(`image_file.compression: must be one of ${compressions.join(', ')}`);
  }
  return valid({
    sha256,
    ...(file.sizeBytes === 0n ? {} : { sizeBytes: Number(file.sizeBytes) }),
    ...(format === undefined ? {} : { format }),
    ...(compression === undefined ? {} : { compression }),
    ...(contentSha256 === undefined ? {} : { contentSha256 }),
    ...(file.contentBytes === 0n ? {} : { contentSizeBytes: Number(file.contentBytes) }),
  });
}

function hexIn(digest: string): string | undefined {
  return /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1];
}

/** Before the first write (W3). */
function failed(type: FailedAttempt['type'], message: string): StepResult {
  return untouched({ result: { kind: 'failed', type, message } });
}

function untouched(end: StepResult): StepResult {
  const { result } = end;
  return result.kind === 'failed' ? { ...end, result: { ...result, disksUntouched: true } } : end;
}
