/** A partition with a file system on a disk file, made and read from outside of the machine. */
import { runProgram, tryProgram } from './processes.ts';
import type { LabDisk } from './qemu-disks.ts';

const START_BYTES = 1024 * 1024;
const SECTOR_BYTES = 512;
const KIB = 1024;

/** Gives the disk one partition, number 1, with an empty ext4. The machine must be off. */
export async function makePartition({ image, bytes }: LabDisk): Promise<void> {
  const start = START_BYTES / SECTOR_BYTES;
  const input = `label: dos\nstart=${start}, type=83\n`;
  await runProgram('sfdisk', ['--quiet', image], { input });
  const kibibytes = String((bytes - START_BYTES) / KIB);
  const where = ['-E', `offset=${START_BYTES}`, image, kibibytes];
  await runProgram('mke2fs', ['-q', '-F', '-t', 'ext4', ...where], {});
}

/** What is in a file on the partition; undefined when there is none. */
export async function readFromPartition(
  { image }: LabDisk,
  path: string,
): Promise<string | undefined> {
  const place = `${image}?offset=${START_BYTES}`;
  const { code, out, err } = await tryProgram(['debugfs', '-R', `cat ${path}`, place], {});
  const wrong = err.split('\n').slice(1).join('\n').trim(); // the first line names the program
  if (code === 0 && wrong === '') return out;
  if (wrong.includes('not found')) return undefined;
  throw new Error(`debugfs, ${path} of ${image}: ${code}: ${wrong}`);
}
