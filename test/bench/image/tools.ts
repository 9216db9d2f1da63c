/** What Debian's programs make of the same bytes, each alone. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** In the shell; of one that runs N times, each has a disk of its own. */
export interface Tool {
  readonly many: number;
  command(disk: string): string;
}

/** The bytes: in the registry, as a file, as what stands on the disk, and onto these disks. */
export interface Bytes {
  readonly blobUrl: string;
  readonly packed: string;
  readonly raw: string;
  readonly disks: readonly string[];
  readonly mib: number;
  readonly compression: Compression;
  /** A file that is not there. */
  readonly to: string;
}

/** How an image is packed, and unpacked. */
export const compressions = {
  zstd: { pack: 'zstd -q -3 -c', unpack: 'zstd -d -c' },
  gzip: { pack: 'gzip -1 -c', unpack: 'gzip -d -c' },
} as const;

export type Compression = keyof typeof compressions;

export type ToolName =
  | 'curl'
  | 'hashFile'
  | 'unpack'
  | 'hashBoth'
  | 'ddWrite'
  | 'hashContent'
  | 'ddRead'
  | 'pipe';

/** `pipe`: all that writing takes, by the same tools at once; shown, and nobody's yardstick. */
export function toolsFor(bytes: Bytes): Readonly<Record<ToolName, Tool>> {
  const { blobUrl, packed, raw, mib, compression, to } = bytes;
  const many = bytes.disks.length;
  const { unpack } = compressions[compression];
  const curl = `curl --silent --fail ${blobUrl}`;
  const hash = 'openssl dgst -sha256';
  const dd = 'dd bs=1M status=none';
  const onto = (disk: string): string => `of=${disk} oflag=direct conv=notrunc,fsync`;
  // Pipes with names, so that the shell waits for both hashes and counts their time.
  const hashed = (pipe: string): string => `tee ${pipe}`;
  const hashOf = (pipe: string): string => `${hash} ${pipe} > /dev/null &`;
  return {
    // With what makes it durable, as ours is.
    curl: { many: 1, command: () => `${curl} --output ${to} && sync ${to}` },
    hashFile: { many: 1, command: () => `${hash} ${packed}` },
    unpack: { many, command: () => `${unpack} ${packed} > /dev/null` },
    hashBoth: { many, command: () => `${hash} ${packed} ${raw}` },
    ddWrite: { many, command: (disk) => `${dd} if=${raw} ${onto(disk)}` },
    hashContent: { many, command: () => `${hash} ${raw}` },
    ddRead: { many, command: (disk) => `${dd} if=${disk} of=/dev/null count=${mib} iflag=direct` },
    pipe: {
      many,
      command: (disk) => {
        const [file, content] = [`${disk}.file`, `${disk}.content`];
        const hashes = `${hashOf(file)} ${hashOf(content)}`;
        const write = `${dd} iflag=fullblock ${onto(disk)}`;
        const pipe = [curl, hashed(file), unpack, hashed(content), write].join(' | ');
        return `rm -f ${file} ${content}; mkfifo ${file} ${content}; ${hashes} ${pipe}; wait`;
      },
    },
  };
}

/** What the table calls them. */
export function namesFor(compression: Compression): Readonly<Record<ToolName, string>> {
  return {
    curl: 'curl, registry → file, fsync',
    hashFile: 'openssl sha256, file',
    unpack: `${compression} -d`,
    hashBoth: 'openssl sha256, file and content',
    ddWrite: 'dd oflag=direct, fsync',
    hashContent: 'openssl sha256, content',
    ddRead: 'dd iflag=direct',
    pipe: 'curl, both hashes, unpack, dd: in a pipe',
  };
}

const run = promisify(execFile);

/** Seconds. */
export interface ToolTimes {
  /** Until the last of them has ended. */
  readonly took: number;
  /** Processor time of all of them. */
  readonly cpuSeconds: number;
}

/** Runs as many of them at once as there are to be. */
export async function runTool(
  { many, command }: Tool,
  disks: readonly string[],
): Promise<ToolTimes> {
  const startedMs = performance.now();
  const ran = disks.slice(0, many).map((disk) => shell(`{ ${command(disk)}; } >&2; times`));
  const outputs = await Promise.all(ran);
  const took = (performance.now() - startedMs) / 1_000;
  return { took, cpuSeconds: outputs.reduce((sum, output) => sum + childrensTime(output), 0) };
}

/** The second line of `times`: user and system time of what the shell has waited for. */
function childrensTime(output: string): number {
  const words = output.trim().split('\n').at(-1)?.split(/\s+/) ?? [];
  return words.reduce((sum, word) => {
    const [, minutes, seconds] = /^(\d+)m([\d.]+)s$/.exec(word) ?? [];
    if (seconds === undefined) throw new Error(`times: ${output}`);
    return sum + 60 * Number(minutes) + Number(seconds);
  }, 0);
}

/** Answers its output. */
export async function shell(command: string): Promise<string> {
  const { stdout } = await run('/bin/bash', ['-c', `set -o pipefail; ${command}`]);
  return stdout;
}
