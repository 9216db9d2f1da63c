/**
 * The corpus in the repository: one folder a target, `corpus/TARGET/`, with one escaped input a
 * line. `failures.txt` has what once failed, `reached.txt` what reached code that the seeds do not.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { escapeBytes, unescapeBytes } from './escape.ts';

const corpusFolder = join(import.meta.dirname, 'corpus');

export type CorpusFile = 'failures.txt' | 'reached.txt';
const corpusFiles: readonly CorpusFile[] = ['failures.txt', 'reached.txt'];

function linesOf(path: string): string[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
}

/** What the repository has for a target. */
export function readCorpus(target: string, folder = corpusFolder): Uint8Array[] {
  return corpusFiles.flatMap((file) =>
    linesOf(join(folder, target, file)).map((line) => unescapeBytes(line)),
  );
}

/** Adds inputs that are not there yet; gives how many were new. */
export function addToCorpus(
  target: string,
  file: CorpusFile,
  inputs: readonly Uint8Array[],
  folder = corpusFolder,
): number {
  const known = new Set(corpusFiles.flatMap((each) => linesOf(join(folder, target, each))));
  const added = [...new Set(inputs.map(escapeBytes))].filter(
    (line) => line !== '' && !known.has(line),
  );
  if (added.length === 0) return 0;
  mkdirSync(join(folder, target), { recursive: true });
  const path = join(folder, target, file);
  writeFileSync(path, `${[...linesOf(path), ...added].join('\n')}\n`);
  return added.length;
}

/** Targets that have a folder. */
export function corpusTargets(): string[] {
  return existsSync(corpusFolder) ? readdirSync(corpusFolder) : [];
}
