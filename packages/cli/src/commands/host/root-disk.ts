/** `--root-disk` of hosts: the disk that gets an image. */
import { create } from '@bufbuild/protobuf';
import { type RootDiskHints, RootDiskHintsSchema } from '@rackwright/messages';
import { UsageError } from '../../failure.ts';
import { parsePair } from '../../flags.ts';

/** The flag. */
export const rootDiskFlag = {
  rootDisk: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    optional: true,
    brief:
      'Disk of the image: serial=, wwn=, model=, by-path=, rotational=yes|no, size=BYTES, ' +
      'min-size= as 480GB; all that is given must match just one; none removes the hints',
    placeholder: 'hint=value',
  },
} as const;

const units: Readonly<Record<string, bigint>> = {
  '': 1n,
  kB: 10n ** 3n,
  MB: 10n ** 6n,
  GB: 10n ** 9n,
  TB: 10n ** 12n,
  KiB: 2n ** 10n,
  MiB: 2n ** 20n,
  GiB: 2n ** 30n,
  TiB: 2n ** 40n,
};

/** Hints from the flag's values; undefined: none are to be. Throws `UsageError`. */
export function parseRootDisk(texts: readonly string[]): RootDiskHints | undefined {
  if (texts.join() === 'none') return undefined;
  const hints = create(RootDiskHintsSchema);
  for (const text of texts) {
    const [name, value] = parsePair('--root-disk', text);
    setHint(hints, name, value);
  }
  return hints;
}

function setHint(hints: RootDiskHints, name: string, value: string): void {
  switch (name) {
    case 'serial':
    case 'wwn':
    case 'model':
      hints[name] = value;
      return;
    case 'by-path':
      hints.byPath = value;
      return;
    case 'rotational':
      if (value !== 'yes' && value !== 'no') {
        throw new UsageError(`--root-disk rotational is "${value}"; it must be yes or no`);
      }
      hints.rotational = value === 'yes';
      return;
    case 'size':
      hints.sizeBytes = exactBytes(value);
      return;
    case 'min-size':
      hints.minSizeBytes = bytesOf(name, value);
      return;
    default: {
      const known = 'serial, wwn, model, by-path, rotational, size and min-size';
      throw new UsageError(`--root-disk knows no "${name}"; there are ${known}`);
    }
  }
}

/** A disk that is sold as 480 GB has some other number of bytes: a unit would fit none. */
function exactBytes(value: string): bigint {
  if (/^\d{1,19}$/.test(value)) return BigInt(value);
  const right = 'the exact number of bytes, as `rackwright host get HOST -o json` shows it';
  throw new UsageError(`--root-disk size is "${value}"; it must be ${right}, or use min-size`);
}

function bytesOf(name: string, value: string): bigint {
  const [, count, unit = ''] = /^(\d{1,19})([A-Za-z]*)$/.exec(value) ?? [];
  const factor = units[unit];
  if (count !== undefined && factor !== undefined) return BigInt(count) * factor;
  const right = `a number of bytes, or with ${Object.keys(units).filter(Boolean).join(', ')}`;
  throw new UsageError(`--root-disk ${name} is "${value}"; it must be ${right}`);
}
