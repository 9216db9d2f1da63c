/**
 * The step `run.file`: writes a file in the ramdisk, or on a partition of a disk.
 *
 * 1. No disk is written to before guard 0 has passed, for every order. The same holds for the
 *    ramdisk, unless the order says that nothing is destroyed.
 * 2. A disk is named by serial or world wide name, never by the kernel's name, and only the host's
 *    own disks are written to.
 * 3. Success is what was read back.
 */

import { type DeviceFacts, decideScope, orderedScopePolicy } from '@rackwright/erasure';
import { ArgumentType, fileStep, RerunClass } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { invalid, type Read, valid } from '@rackwright/platform';
import type { FailedAttempt } from '@rackwright/results';
import {
  type FileContent,
  FileError,
  type Filesystem,
  filesystems,
  type MachineFiles,
} from '../machine/files.ts';
import { unknownArguments } from './arguments.ts';
import { guardIdentity } from './guard.ts';
import type { Step, StepContext, StepResult } from './step.ts';

/** Bytes of one file. */
export const fileBytesMax = 64 * 1024;
const pathBytesMax = 4096;
const nameBytesMax = 255;
export const partitionMax = 128;
const modeDefault = '0644';
const knownArguments = ['path', 'content', 'encoding', 'mode', 'disk', 'partition', 'filesystem'];

interface WantedFile {
  readonly path: string;
  readonly file: FileContent;
  readonly disk?: {
    readonly identity: string;
    readonly partition: number;
    readonly filesystem: Filesystem;
  };
}

export function runFile(files: MachineFiles): Step {
  return {
    description: {
      name: fileStep,
      priority: 0,
      rerunClass: RerunClass.NEVER_TWICE,
      destructive: true,
      abortable: false,
      description: 'Writes a file in the ramdisk or on a disk, and proves it by reading it back.',
      typedArguments: [
        { name: 'path', required: true, description: 'where, from the root of its file system' },
        { name: 'content', description: 'what it holds' },
        {
          name: 'encoding',
          type: ArgumentType.CHOICE,
          values: ['text', 'base64'],
          defaultValue: 'text',
          description: 'how the content is written',
        },
        { name: 'mode', defaultValue: modeDefault, description: 'its permission bits, octal' },
        { name: 'disk', description: 'serial or world wide name of the disk; none: the ramdisk' },
        {
          name: 'partition',
          type: ArgumentType.INTEGER,
          minimum: 1n,
          maximum: BigInt(partitionMax),
          description: 'number of the partition on the disk',
        },
        {
          name: 'filesystem',
          type: ArgumentType.CHOICE,
          values: [...filesystems],
          description: 'what the partition holds',
        },
      ],
    },
    run: (context) => run(context, files),
  };
}

async function run(context: StepContext, files: MachineFiles): Promise<StepResult> {
  const wanted = readFile(context.order);
  if (wanted.kind === 'bad') return failed('invalidArgument', wanted.problem);
  const { path, file, disk } = wanted.value;
  if (disk !== undefined || context.order.destructive !== false) {
    const guard = await guardIdentity(context);
    if (guard.kind === 'failed') return guard.end;
  }
  const write = disk === undefined ? undefined : await diskWriter(context, files, disk);
  if (write !== undefined && 'result' in write) return write;
  if (context.signal.aborted) return failed('cancelled', 'It was cancelled before it wrote.');
  if (disk !== undefined && context.order.destructive !== false) {
    // To list the disks takes time: the permission of the order may be over (R11).
    const may = await context.requestBegin();
    if (may.kind === 'over') return failed('cancelled', `It wrote nothing: ${may.reason}.`);
    if (may.kind === 'aborted') return failed('cancelled', 'It was cancelled before it wrote.');
  }
  context.crashPoint('runner.begun');
  try {
    const read = await (write ?? files.writeHere)(path, file);
    return { result: judge(read, file, disk?.filesystem) };
  } catch (error) {
    if (!isOfFiles(error)) throw error;
    const type = error.name === 'BadPath' ? 'invalidArgument' : 'ioError';
    return failed(type, `${path} was not written: ${error.message}`);
  }
}

/** Failures of a path or a file system, whose words a person can act on. */
function isOfFiles(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  return error instanceof FileError || error.name === 'BadPath' || 'code' in error;
}

type Write = MachineFiles['writeHere'];

async function diskWriter(
  { devices }: StepContext,
  files: MachineFiles,
  wanted: NonNullable<WantedFile['disk']>,
): Promise<Write | StepResult> {
  const { writeOnDisk } = files;
  const { identity, partition, filesystem } = wanted;
  if (writeOnDisk === undefined) {
    return failed('unsupported', 'the disks of a machine made of software hold no file systems');
  }
  const listing = await devices.list();
  const found = findDisk(listing.devices, identity);
  if (found.kind === 'bad') return failed('deviceChanged', found.problem);
  return (path, file) => writeOnDisk({ device: found.value, partition, filesystem }, path, file);
}

/** The one disk of that name that may be written to, or why there is none. */
function findDisk(devices: readonly DeviceFacts[], identity: string): Read<DeviceFacts> {
  const named = decideScope(devices, orderedScopePolicy).filter(
    ({ device }) => device.serial === identity || device.wwn === identity,
  );
  const [decision] = named;
  if (decision === undefined)
    return invalid(`no disk has the serial or world wide name ${identity}`);
  if (named.length > 1) return invalid(`${named.length} disks say that they are ${identity}`);
  if (decision.kind !== 'inScope') {
    return invalid(`${identity} is not written to: ${decision.reason}`);
  }
  const { holders } = decision.device;
  if (holders.length > 0) return invalid(`${identity} is in use: ${holders.join(', ')}`);
  return valid(decision.device);
}

function judge(
  read: FileContent,
  wanted: FileContent,
  filesystem: Filesystem | undefined,
): StepResult['result'] {
  const same = Buffer.from(read.content).equals(wanted.content);
  // FAT keeps no permission bits.
  const modeKept = filesystem === 'vfat' || read.mode === wanted.mode;
  if (same && modeKept) return { kind: 'complete' };
  const state = same
    ? `its mode reads back as ${octal(read.mode)} instead of ${octal(wanted.mode)}`
    : 'what reads back is not what was written';
  return { kind: 'failed', type: 'unverified', message: `The file is not proved: ${state}.` };
}

function readFile({ mode: stepMode, arguments: given }: agent.RunStep): Read<WantedFile> {
  if (stepMode !== agent.StepMode.RUN)
    return invalid('mode: a file can only be written, not checked');
  const unknown = unknownArguments(given, knownArguments);
  if (unknown !== undefined) return invalid(unknown);
  const path = given['path'] ?? '';
  const problem = problemOfPath(path);
  if (problem !== undefined) return invalid(`path: ${problem}`);
  const content = readContent(given['content'] ?? '', given['encoding'] || 'text');
  if (content.kind === 'bad') return content;
  const mode = given['mode'] || modeDefault;
  if (!/^0?[0-7]{3,4}$/.test(mode)) return invalid(`mode: "${mode}" is not octal, as 0644`);
  const disk = readDisk(given);
  if (disk.kind === 'bad') return disk;
  return valid({
    path,
    file: { content: content.value, mode: Number.parseInt(mode, 8) },
    ...(disk.value === undefined ? {} : { disk: disk.value }),
  });
}

function problemOfPath(path: string): string | undefined {
  if (!path.startsWith('/')) return 'must begin with "/"';
  if (path.endsWith('/')) return 'must name a file';
  if (path.includes('\0')) return 'holds a zero byte';
  if (Buffer.byteLength(path) > pathBytesMax) return `has more than ${pathBytesMax} bytes`;
  for (const part of path.split('/')) {
    if (part === '..' || part === '.') return 'must not contain "." or ".."';
    if (Buffer.byteLength(part) > nameBytesMax) return 'has a name of more than 255 bytes';
  }
  return undefined;
}

function readContent(text: string, encoding: string): Read<Uint8Array> {
  if (encoding !== 'text' && encoding !== 'base64') {
    return invalid(`encoding: "${encoding}" is not one of text, base64`);
  }
  const compact = text.replace(/\s/g, '');
  if (
    encoding === 'base64' &&
    !/^(?:[A-Za-z0-9+/]{4})*(?:[\w+/]{2}==|[\w+/]{3}=)?$/.test(compact)
  ) {
    return invalid('content: is no base64');
  }
  const content = encoding === 'text' ? Buffer.from(text) : Buffer.from(compact, 'base64');
  if (content.length > fileBytesMax) {
    return invalid(`content: has ${content.length} bytes; at most ${fileBytesMax} are taken`);
  }
  return valid(new Uint8Array(content));
}

function readDisk(given: agent.RunStep['arguments']): Read<WantedFile['disk']> {
  const identity = given['disk'] ?? '';
  const partition = given['partition'] ?? '';
  const filesystem = given['filesystem'] ?? '';
  if (identity === '') {
    if (partition === '' && filesystem === '') return valid(undefined);
    return invalid('disk: is missing; partition and filesystem say where on it');
  }
  const number = /^\d{1,3}$/.test(partition) ? Number(partition) : 0;
  if (number < 1 || number > partitionMax) {
    return invalid(`partition: must be a number from 1 to ${partitionMax}`);
  }
  const known = filesystems.find((name) => name === filesystem);
  if (known === undefined) {
    return invalid(`filesystem: "${filesystem}" is not one of ${filesystems.join(', ')}`);
  }
  return valid({ identity, partition: number, filesystem: known });
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0');
}

function failed(type: FailedAttempt['type'], message: string): StepResult {
  return { result: { kind: 'failed', type, message } };
}
