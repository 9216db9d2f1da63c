/** Validation of the hints for the disk of the image in a host's spec. */
import type { RootDiskHints } from '@rackwright/messages';
import { controlCharacters } from '../../call/texts.ts';
import type { Violations } from '../../call/violations.ts';

const diskNameCharactersMax = 128;
const byPathCharactersMax = 255;

/** Adds every violation in the hints for the disk of the image. */
export function checkRootDisk(path: string, hints: RootDiskHints, violations: Violations): void {
  for (const name of ['serial', 'wwn', 'model'] as const) {
    if (hints[name] !== '') violations.addIf(`${path}.${name}`, diskNameProblem(hints[name]));
  }
  const { byPath, sizeBytes, minSizeBytes } = hints;
  if (byPath !== '' && !isByPath(byPath)) {
    const example = '"pci-0000:00:17.0-ata-1"';
    violations.add(`${path}.by_path`, `must be a name under /dev/disk/by-path, as ${example}`);
  }
  if (sizeBytes > 0n && minSizeBytes > sizeBytes) {
    violations.add(`${path}.min_size_bytes`, `is more than size_bytes, so that no disk fits`);
  }
  const isEmpty = ['serial', 'wwn', 'model', 'byPath'].every((name) => hints[name as 'wwn'] === '');
  if (isEmpty && hints.rotational === undefined && sizeBytes === 0n && minSizeBytes === 0n) {
    violations.add(path, 'says nothing; leave it out for a host that has just one disk');
  }
}

function isByPath(text: string): boolean {
  return text.length <= byPathCharactersMax && /^[A-Za-z0-9][A-Za-z0-9:._+-]*$/.test(text);
}

/** What is wrong with the name of a disk; undefined when it is possible. */
export function diskNameProblem(text: string): string | undefined {
  if (text === '') return 'is empty; give the serial number or the WWN of a disk';
  if (text.length <= diskNameCharactersMax && !controlCharacters.test(text)) return undefined;
  return `must be a serial number or WWN of at most ${diskNameCharactersMax} characters`;
}
