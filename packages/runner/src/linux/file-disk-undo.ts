/**
 * Writes that a file disk has confirmed and does not keep: the earlier blocks, in `<image>.undo`,
 * so that they survive the process that wrote.
 */
import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

/** A block as it was. `until`: the time at which it is there again; absent: at power-off. */
export interface KeptBlock {
  readonly offset: number;
  readonly bytes: string;
  readonly until?: number;
}

/**
 * The power of a simulated machine goes: its disks lose writes that were not durable. Content that
 * is due by `nowMs` is there again; `Infinity` lets all time pass.
 */
export function switchOffFileDisks(folder: string, nowMs: number): void {
  for (const file of readdirSync(folder)) {
    if (!file.endsWith(undoEnding)) continue;
    const image = join(folder, file.slice(0, -undoEnding.length));
    restore(image, ({ until }) => until === undefined || until <= nowMs);
  }
}

const undoEnding = '.undo';

/** Keeps one more block. */
export function addKept(image: string, kept: KeptBlock): void {
  appendFileSync(undoPath(image), `${JSON.stringify(kept)}\n`);
}

function undoPath(image: string): string {
  return `${image}${undoEnding}`;
}

/** Restores the due blocks and forgets them; returns their number. */
export function restore(image: string, isDue: (kept: KeptBlock) => boolean): number {
  const all = readKept(image);
  const due = all.filter(isDue);
  if (due.length === 0) return 0;
  const fd = openSync(image, 'r+');
  try {
    for (const { offset, bytes } of due) {
      const content = Buffer.from(bytes, 'base64');
      writeSync(fd, content, 0, content.length, offset);
    }
  } finally {
    closeSync(fd);
  }
  writeKept(
    image,
    all.filter((kept) => !isDue(kept)),
  );
  return due.length;
}

/** The entries of the image's undo file, oldest first. */
export function readKept(image: string): KeptBlock[] {
  if (!existsSync(undoPath(image))) return [];
  const lines = readFileSync(undoPath(image), 'utf8').trimEnd().split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as KeptBlock);
}

/** Replaces it; without blocks the file goes. */
export function writeKept(image: string, kept: readonly KeptBlock[]): void {
  if (kept.length === 0) return rmSync(undoPath(image), { force: true });
  writeFileSync(undoPath(image), kept.map((each) => `${JSON.stringify(each)}\n`).join(''));
}
