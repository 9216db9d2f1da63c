/** Running a disk tool. Its exit code only says whether it thought it worked. */
import { type Exec, firstInheritedDescriptor, parsedJson } from '@rackwright/platform';
import { boundText } from '@rackwright/results';
import { DeviceError } from '../machine/block-devices.ts';

/**
 * The path by which a tool opens the descriptor that it gets as number `index` of `descriptors`.
 */
export function inheritedPath(index: number): string {
  return `/dev/fd/${firstInheritedDescriptor + index}`;
}

/** No device that works is slower, bytes per millisecond: 20 MB/s. */
const slowestBytesPerMs = 20_000;
/** The minimum time limit, also for a small device, milliseconds. */
const toolLimitMinMs = 3_600_000;
/** Timers take no longer delay, milliseconds. */
const limitMsMax = 2 ** 31 - 1;

/** How long a tool may take over so many bytes before it is given up, milliseconds. */
export function workMsMax(bytes: number): number {
  return Math.min(limitMsMax, toolLimitMinMs + Math.ceil(bytes / slowestBytesPerMs));
}

/** Output kept of one tool, bytes. */
export const toolOutputBytesMax = 256 * 1024;
/** The size of a failed tool's output in its failure; outcomes and certificates hold it. */
const textBytesMax = 768;

/**
 * The tool's output, line by line. Rejects with `DeviceError` unless it ended with 0. The tool gets
 * `descriptors` as its `/dev/fd/3` and so on.
 */
export async function runTool(
  exec: Exec,
  file: string,
  args: readonly string[],
  timeoutMs: number,
  descriptors: readonly number[] = [],
): Promise<string[]> {
  const outputBytesMax = toolOutputBytesMax;
  const result = await exec.run({ file, args, timeoutMs, outputBytesMax, descriptors });
  const command = [file, ...args].join(' ');
  switch (result.kind) {
    case 'notStarted':
      throw new DeviceError(`${command}: cannot be started: ${result.message}`, {
        operation: 'tool',
      });
    case 'timedOut':
      throw new DeviceError(`${command}: no end after ${timeoutMs} ms`, { operation: 'tool' });
    case 'exited': {
      const lines = linesOf(result.stdout, result.stderr);
      if (result.code === 0) return [`${command}: exit 0`, ...lines];
      const text = boundText(lines.join(' | '), textBytesMax);
      throw new DeviceError(`${command}: exit ${result.code}: ${text}`, { operation: 'tool' });
    }
  }
}

/** The tool's output as JSON, or undefined when it failed or gave none. */
export async function runToolForJson(
  exec: Exec,
  file: string,
  args: readonly string[],
  timeoutMs: number,
  descriptors: readonly number[] = [],
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const outputBytesMax = toolOutputBytesMax;
  const result = await exec.run({ file, args, timeoutMs, outputBytesMax, descriptors });
  if (result.kind !== 'exited' || result.code !== 0) return undefined;
  const value = parsedJson(result.stdout);
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}

/** The tool's output, with any exit code; empty when it gave none. Its exit code proves nothing. */
export async function toolOutput(...call: Parameters<typeof toolOutputIfRun>): Promise<string> {
  return (await toolOutputIfRun(...call)) ?? '';
}

/** As `toolOutput`; undefined when the tool could not be started, or did not end in time. */
export async function toolOutputIfRun(
  exec: Exec,
  file: string,
  args: readonly string[],
  timeoutMs: number,
  descriptors: readonly number[] = [],
): Promise<string | undefined> {
  const outputBytesMax = toolOutputBytesMax;
  const result = await exec.run({ file, args, timeoutMs, outputBytesMax, descriptors });
  return result.kind === 'exited' ? `${result.stdout}\n${result.stderr}` : undefined;
}

function linesOf(...outputs: readonly string[]): string[] {
  return outputs
    .join('\n')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}
