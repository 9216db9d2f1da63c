/**
 * The step `run.command`: a program that comes in an image.
 *
 * 1. Nothing runs before guard 0 has passed, unless the order says that the step destroys nothing.
 * 2. Nothing of an image runs before all of it was found to match its digests.
 * 3. Destructive work begins only when the agent says, after everything that takes time, that it
 *    may.
 * 4. The unpacked files are gone when the step has ended, or before the next one begins.
 */
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { commandStep, RerunClass } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import {
  type Architecture,
  type BlobSource,
  type Digest,
  isOciError,
  type Layer,
  OciError,
  parseReference,
  RunningDigest,
  verifiedBlob,
} from '@rackwright/oci';
import { invalid, parsedJson, type Read, valid } from '@rackwright/platform';
import type { FailedAttempt } from '@rackwright/results';
import { commandLine, configProblem, readImage } from '../command/image.ts';
import { type CommandRoot, type CommandRoots, defaultUnpackLimits } from '../command/roots.ts';
import type { Programs } from '../program/program.ts';
import { runProgram } from '../program/run-program.ts';
import { withoutSecrets } from '../program/without-secrets.ts';
import { readEnvironment, readSecretEnvironment, unknownArguments } from './arguments.ts';
import { guardIdentity } from './guard.ts';
import { environmentOf, secretEnvironmentText } from './script.ts';
import type { Step, StepContext, StepResult } from './step.ts';

/** What a command needs of this machine. */
export interface CommandParts {
  readonly programs: Programs;
  readonly roots: CommandRoots;
  readonly architecture: Architecture;
  /** Blobs that are served at "host:port". */
  readonly blobsAt: (endpoint: string) => BlobSource;
}

/** Arguments of one command. */
const argumentsMax = 100;
/** The size of all of them together, UTF-8 bytes. */
const argumentBytesMax = 64 * 1024;
const directoryCharactersMax = 1_024;
const knownArguments = ['image', 'arguments', 'environment', 'secretEnvironment', 'directory'];
/** For an image that sets no PATH and HOME. */
const usualEnvironment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
};
/** The delay before another try of an image that the agent did not serve. */
const retryDelayMs = 10_000;

const notStarted = 'It was cancelled before its program was started.';

interface Command {
  readonly digest: Digest;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  /** Empty: as the image says. */
  readonly directory: string;
}

/** `parts`: what it needs of this machine, or why nothing can run here. */
export function runCommand(parts: Read<CommandParts>): Step {
  return {
    description: {
      name: commandStep,
      priority: 0,
      rerunClass: RerunClass.NEVER_TWICE,
      destructive: true,
      abortable: true,
      description: 'Runs a program that comes in an image; it succeeds when that ends with 0.',
      typedArguments: [
        { name: 'image', description: 'REGISTRY/REPOSITORY@sha256:DIGEST' },
        { name: 'arguments', description: 'as a JSON list of texts' },
        { name: 'environment', description: 'variables, as a JSON object of texts' },
        { name: 'secretEnvironment', description: secretEnvironmentText },
        { name: 'directory', description: 'where it works, an absolute path in the image' },
      ],
    },
    check: (context) => check(context, parts),
    run: (context) => run(context, parts),
  };
}

/** Why it cannot run at all; nothing has been done then. */
async function check(
  context: StepContext,
  parts: Read<CommandParts>,
): Promise<StepResult | undefined> {
  if (parts.kind === 'bad') return failed('unsupported', parts.problem);
  const command = readCommand(context);
  if (command.kind === 'bad') return failed('invalidArgument', command.problem);
  if (context.imageEndpoint === '') {
    return failed('imageUnusable', 'the agent of this rack serves no images');
  }
  if (context.order.destructive === false) return undefined;
  const guard = await guardIdentity(context);
  return guard.kind === 'failed' ? guard.end : undefined;
}

async function run(context: StepContext, parts: Read<CommandParts>): Promise<StepResult> {
  const refused = await check(context, parts);
  if (refused !== undefined) return refused;
  const command = readCommand(context);
  if (command.kind === 'bad' || parts.kind === 'bad') {
    return failed('invalidArgument', 'the order cannot be read');
  }
  try {
    return await runImage(context, parts.value, command.value);
  } catch (error) {
    if (context.signal.aborted) {
      return failed('cancelled', notStarted);
    }
    return endOf(error, context.order);
  }
}

/**
 * Why an image could not be unpacked: nothing of it has run, but the order has begun. For a step
 * that never runs twice a conflict would look like an interruption, while it is known to have
 * failed.
 */
function endOf(error: unknown, { rerunClass }: agent.RunStep): StepResult {
  if (isOciError(error, 'unreachable')) {
    const message = `the agent does not serve the image: ${error.message}`;
    const again = rerunClass === RerunClass.SAFE || rerunClass === RerunClass.CHECK_FIRST;
    if (!again) return failed('imageUnusable', message);
    return {
      result: { kind: 'retryAfter', reason: 'fault', message, delayMs: retryDelayMs },
    };
  }
  if (isOciError(error)) return failed('imageUnusable', error.message);
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC') {
    return failed('imageUnusable', 'the image does not fit into the memory of the host');
  }
  if (code === 'Z_DATA_ERROR' || code === 'Z_BUF_ERROR' || code?.startsWith('ZSTD_') === true) {
    return failed('imageUnusable', `a layer of the image cannot be unpacked: ${message}`);
  }
  throw error;
}

async function runImage(
  context: StepContext,
  parts: CommandParts,
  command: Command,
): Promise<StepResult> {
  const { operationId, signal } = context;
  const source = parts.blobsAt(context.imageEndpoint);
  context.reportProgress(0, 'reads the image');
  const { config, layers } = await readImage(source, command.digest, parts.architecture, signal);
  const problem = configProblem(config);
  if (problem !== undefined) return failed('imageUnusable', problem);
  const root = await parts.roots.make(defaultUnpackLimits);
  try {
    for (const [index, layer] of layers.entries()) {
      context.reportProgress(0, `unpacks layer ${index + 1} of ${layers.length}`);
      await unpack(source, layer, config.diffIds[index], root, signal);
    }
    const environment = {
      ...usualEnvironment,
      ...ownNamesOnly(config.environment),
      ...ofRun(context),
      ...command.environment,
    };
    const request = await root.enter({
      operationId,
      commandLine: commandLine(config, command.arguments),
      environment,
      secrets: command.secrets,
      folder: command.directory || config.directory || '/',
    });
    const kept = await whatKeepsIt(context);
    if (kept !== undefined) return kept;
    context.reportProgress(0, 'runs');
    const programs = withoutSecrets(parts.programs, command.secrets);
    return await runProgram(context, saying(programs, leftOutText(root)), request);
  } finally {
    await root.remove();
  }
}

/** To fetch and unpack an image takes minutes: the permission of the order may be over (R11). */
async function whatKeepsIt(context: StepContext): Promise<StepResult | undefined> {
  if (context.order.destructive === false) return undefined;
  const end = await context.requestBegin();
  switch (end.kind) {
    case 'granted':
      return undefined;
    case 'aborted':
      return failed('cancelled', notStarted);
    case 'over':
      return failed('cancelled', `Its program was not started: ${end.reason}.`);
  }
}

/** One layer: fetched, checked packed and unpacked, and put over those below. */
async function unpack(
  source: BlobSource,
  layer: Layer,
  diffId: Digest | undefined,
  root: CommandRoot,
  signal: AbortSignal,
): Promise<void> {
  let isProved = false;
  async function* packed(): AsyncGenerator<Uint8Array> {
    yield* verifiedBlob(source, layer, { signal });
    isProved = true;
  }
  const unpacked = new RunningDigest();
  const apply = (archive: AsyncIterable<Uint8Array>): Promise<void> =>
    root.apply(counted(archive, unpacked));
  switch (layer.compression) {
    case 'none':
      await pipeline(packed, apply);
      break;
    case 'gzip':
      await pipeline(packed, createGunzip(), apply);
      break;
    case 'zstd':
      await pipeline(packed, createZstdDecompress(), apply);
      break;
  }
  // A decompressor may end before its input does.
  if (!isProved) throw new OciError('digestMismatch', `layer ${layer.digest} has a loose end`);
  if (unpacked.digest() === diffId) return;
  throw new OciError('digestMismatch', `layer ${layer.digest} is not what its configuration says`);
}

/** The size of an archive with its headers and padding. */
const archiveBytesMax = 2 * defaultUnpackLimits.bytesMax;

async function* counted(
  archive: AsyncIterable<Uint8Array>,
  digest: RunningDigest,
): AsyncGenerator<Uint8Array> {
  for await (const piece of archive) {
    digest.update(piece);
    if (digest.bytes > archiveBytesMax) {
      throw new OciError('tooLarge', `a layer unpacks to more than ${archiveBytesMax} bytes`);
    }
    yield piece;
  }
}

/** Images may not pretend to be us, and a name that no shell could set is no variable. */
function ownNamesOnly(environment: Readonly<Record<string, string>>): Record<string, string> {
  const taken = Object.entries(environment).filter(
    ([name]) => /^[A-Za-z_][A-Za-z0-9_.-]*$/.test(name) && !name.startsWith('RACKWRIGHT_'),
  );
  return Object.fromEntries(taken);
}

/** The variables that identify the run; the rest is the image's affair. */
function ofRun(context: StepContext): Record<string, string> {
  const { PATH: _, LC_ALL: __, ...rest } = environmentOf(context, '');
  return rest;
}

function leftOutText({ leftOut: { count, names } }: CommandRoot): string {
  if (count === 0) return '';
  const more = count > names.length ? ', …' : '';
  const named = `${names.join(', ')}${more}`;
  return `rackwright: ${count} devices and pipes of the image were left out: ${named}\n`;
}

/** Programs whose output begins with `text`. */
function saying(programs: Programs, text: string): Programs {
  if (text === '') return programs;
  return {
    start: (request, onOutput) => {
      onOutput(new TextEncoder().encode(text));
      return programs.start(request, onOutput);
    },
  };
}

function readCommand({ order, secretEnvironment }: StepContext): Read<Command> {
  const { mode, arguments: given, image } = order;
  if (mode !== agent.StepMode.RUN) return invalid('mode: a command can only be run, not checked');
  const unknown = unknownArguments(given, knownArguments);
  if (unknown !== undefined) return invalid(unknown);
  const reference = parseReference(image?.reference ?? '');
  if (reference.kind === 'bad') return invalid(`image: ${reference.problem}`);
  const { digest } = reference.reference;
  if (digest === undefined)
    return invalid('image: must be named by its digest, as NAME@sha256:HEX');
  const list = readList(given['arguments'] ?? '');
  if (list.kind === 'bad') return list;
  const environment = readEnvironment(given['environment']);
  if (environment.kind === 'bad') return environment;
  const secrets = readSecretEnvironment(given['secretEnvironment'], secretEnvironment);
  if (secrets.kind === 'bad') return secrets;
  const directory = given['directory'] ?? '';
  const isFit = directory === '' || (directory.startsWith('/') && !directory.includes('\0'));
  const leadsUp = directory.split('/').includes('..');
  if (!isFit || leadsUp || directory.length > directoryCharactersMax) {
    return invalid('directory: must be an absolute path without ".."');
  }
  return valid({
    ...{ digest, arguments: list.value, directory },
    ...{ environment: environment.value, secrets: secrets.value },
  });
}

function readList(text: string): Read<readonly string[]> {
  if (text === '') return valid([]);
  const list = parsedJson(text);
  const isTexts = (items: unknown): items is string[] =>
    Array.isArray(items) && items.every((item) => typeof item === 'string' && !item.includes('\0'));
  if (!isTexts(list)) return invalid('arguments: must be a JSON list of texts without zero bytes');
  if (list.length > argumentsMax || Buffer.byteLength(text) > argumentBytesMax) {
    return invalid(`arguments: at most ${argumentsMax}, of ${argumentBytesMax} bytes together`);
  }
  return valid(list);
}

function failed(type: FailedAttempt['type'], message: string): StepResult {
  return { result: { kind: 'failed', type, message } };
}
