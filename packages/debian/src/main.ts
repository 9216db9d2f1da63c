/**
 * `npm run package`: builds the Debian packages into `.cache/packages`, and prints a line for each.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { errorText } from '@rackwright/platform';
import { type BuildRequest, buildPackages } from './build.ts';
import { programNames } from './contents.ts';
import { architectures } from './node-program.ts';

const root = join(import.meta.dirname, '../../..');
const usage = `usage: npm run package -- [options]
  --architectures LIST  of ${architectures.join(', ')}; default: both
  --only LIST           of ${programNames.join(', ')}, ramdisk; default: all
  --version VERSION     default: that of package.json
  --output FOLDER       default: .cache/packages
SOURCE_DATE_EPOCH is the time in the packages; without it, that of the commit.
`;
const versionForm = /^\d[A-Za-z0-9.+~]*$/;

function readRequest(args: readonly string[]): BuildRequest {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: { architectures: text, only: text, version: text, output: text },
  });
  const { version: own } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  const version = values.version ?? own;
  if (!versionForm.test(version)) throw new Error(`--version: "${version}" is none`);
  const chosen = chosenOf('only', [...programNames, 'ramdisk'] as const, values.only);
  return {
    root,
    version,
    programs: programNames.filter((name) => chosen.includes(name)),
    architectures: chosenOf('architectures', architectures, values.architectures),
    ramdisk: chosen.includes('ramdisk'),
    outputFolder: values.output ?? join(root, '.cache/packages'),
    now: Date.now(),
  };
}

/** What `--option a,b` names; all without it. */
function chosenOf<T extends string>(option: string, all: readonly T[], list?: string): T[] {
  const words = list?.split(',');
  const unknown = words?.find((word) => !all.some((one) => one === word));
  if (unknown !== undefined) {
    throw new Error(`--${option}: "${unknown}" is none of ${all.join(', ')}`);
  }
  return all.filter((one) => words === undefined || words.includes(one));
}

function requested(): BuildRequest | undefined {
  try {
    return readRequest(process.argv.slice(2));
  } catch (cause) {
    process.stderr.write(`${errorText(cause)}\n${usage}`);
    return undefined;
  }
}

const request = requested();
if (request === undefined) process.exitCode = 2;
else {
  for await (const { path, bytes, sha256 } of buildPackages(request)) {
    process.stdout.write(`${path}  ${(bytes / 1e6).toFixed(1)} MB  sha256 ${sha256}\n`);
  }
}
