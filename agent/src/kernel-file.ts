/**
 * The processor architecture of the runner's kernel, by its file. A host with a kernel for another
 * architecture stops in its firmware, without a report.
 */
import type { ConfigProblem, LargeFiles } from '@rackwright/platform';
import type { NamedFile } from './boot/index.ts';

type Architecture = 'amd64' | 'arm64';

interface RunnerFiles {
  readonly runner: {
    readonly architecture: Architecture;
    /** Names out of `files`. */
    readonly kernel: string;
    readonly initrd: string;
  };
  readonly files: readonly NamedFile[];
}

/** The folder of the package, whose kernel and ramdisk are for amd64. */
const packagedFolder = '/usr/lib/rackwright/ramdisk/';
const missing =
  'those for arm64 are of the package rackwright-ramdisk-arm64: name them under "files"';

/** The problem that the configuration alone shows. Pure. */
export function architectureProblem({ runner, files }: RunnerFiles): ConfigProblem | undefined {
  if (runner.architecture === 'amd64') return undefined;
  const packaged = files.find(({ name, path }) => {
    return [runner.kernel, runner.initrd].includes(name) && path.startsWith(packagedFolder);
  });
  if (packaged === undefined) return undefined;
  const text = `has to be amd64 with ${packaged.path}; ${missing}`;
  return { key: 'runner.architecture', text };
}

/** The problem of the file itself; undefined as well when it is absent or inconclusive. */
export async function kernelProblem(
  { runner, files }: RunnerFiles,
  disk: Pick<LargeFiles, 'find' | 'read'>,
): Promise<ConfigProblem | undefined> {
  const path = files.find(({ name }) => name === runner.kernel)?.path;
  if (path === undefined || (await disk.find(path)) === undefined) return undefined;
  for await (const head of disk.read(path)) {
    const architecture = kernelArchitecture(head);
    if (architecture === undefined || architecture === runner.architecture) return undefined;
    const right = `has to be a kernel for ${runner.architecture}`;
    const more = runner.architecture === 'arm64' ? `; ${missing}` : '';
    const text = `${right}; ${path} is one for ${architecture}${more}`;
    return { key: 'runner.kernel', text };
  }
  return undefined;
}

/** Machines of PE/COFF, which a kernel with an EFI stub is as well. */
const machines: ReadonlyMap<number, Architecture> = new Map([
  [0x8664, 'amd64'],
  [0xaa64, 'arm64'],
]);

/**
 * By the first bytes of a kernel: PE/COFF §3.3; else the "HdrS" of the x86 boot protocol, or the
 * magic number of an arm64 Image (Linux Documentation/arch/x86/boot.rst, arch/arm64/booting.rst).
 */
export function kernelArchitecture(head: Uint8Array): Architecture | undefined {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  const textAt = (at: number, length: number) => bytes.toString('latin1', at, at + length);
  if (textAt(0, 2) === 'MZ' && bytes.length >= 64) {
    const at = bytes.readUInt32LE(0x3c);
    if (textAt(at, 4) === 'PE\0\0' && at + 6 <= bytes.length) {
      return machines.get(bytes.readUInt16LE(at + 4));
    }
  }
  if (textAt(0x202, 4) === 'HdrS') return 'amd64';
  return textAt(0x38, 4) === 'ARM\x64' ? 'arm64' : undefined;
}
