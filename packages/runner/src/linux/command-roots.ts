/**
 * Folders that commands take for "/", in a folder of this runner.
 *
 * M1 /dev, /proc and /sys are mounted in a mount namespace of the program alone: they are gone with
 *    its last process, at each end, and no removal of the folder can reach them.
 * M2 The program sees its own environment and nothing of ours. No list of arguments holds a secret,
 *    because others could see it there more easily.
 */
import { access, mkdir, readdir, readFile, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type CommandRoot,
  type CommandRoots,
  type EnteredProgram,
  type UnpackLimits,
} from '../command/roots.ts';
import { operationVariable, type ProgramRequest } from '../program/program.ts';
import { LayeredRoot } from './layered-root.ts';

const ownerOnly = 0o700;
const mountedFolders = ['dev', 'proc', 'sys'] as const;

/**
 * The lines between the namespace and the program: mounts, then the change of "/". They set no
 * variable: one of the same name in the program's environment would get its value.
 */
const mountLines = mountedFolders.map((name) => `mount -o rbind /${name} "$1/${name}"`).join('\n');
const enterScript = `set -e
${mountLines}
shift
exec env -i "${operationVariable}=$${operationVariable}" "$@"`;

/** The same for an environment that holds secrets: our own variables are removed one by one. */
const ownVariables = ['PATH', 'LC_ALL', 'PWD', 'OLDPWD', 'SHLVL', '_'];
const secretEnterScript = enterScript.replace(
  /exec env .*/,
  `exec env ${ownVariables.map((name) => `-u ${name}`).join(' ')} "$@"`,
);

export interface CommandRootsParts {
  /** All roots are made and removed in it; made if it is missing. */
  readonly folder: string;
  /** PATH in which `unshare`, `mount` and `env` are. */
  readonly path: string;
  readonly procRoot: string;
  /** Whether files get the owners that their archive names. */
  readonly chowns: boolean;
}

/** Makes roots one at a time: a new one removes those before it. */
export function linuxCommandRoots(parts: CommandRootsParts): CommandRoots {
  return { make: (limits) => make(parts, limits) };
}

async function make(parts: CommandRootsParts, limits: UnpackLimits): Promise<CommandRoot> {
  await mkdir(parts.folder, { recursive: true, mode: ownerOnly });
  const folder = await realpath(parts.folder);
  for (const name of await readdir(folder)) await removeRoot(parts, join(folder, name));
  const root = join(folder, 'root');
  await mkdir(root, ownerOnly);
  const layered = new LayeredRoot(root, limits, parts.chowns);
  return {
    apply: (archive) => layered.apply(archive),
    get leftOut() {
      return layered.leftOut;
    },
    enter: (program) => enter(parts, root, layered, program),
    remove: () => removeRoot(parts, root),
  };
}

async function enter(
  { path }: CommandRootsParts,
  root: string,
  layered: LayeredRoot,
  { operationId, commandLine, environment, secrets, folder }: EnteredProgram,
): Promise<ProgramRequest> {
  const lost = Object.keys(secrets).find((name) => ownVariables.includes(name));
  if (lost !== undefined) throw new Error(`a secret cannot be the variable ${lost}: rename it`);
  const unshare = await findProgram('unshare', path);
  for (const name of mountedFolders) await layered.ownFolder(name);
  await layered.folder(folder);
  const assignments = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const script = Object.keys(secrets).length === 0 ? enterScript : secretEnterScript;
  const inside = [unshare, `--root=${root}`, `--wd=${folder}`, '--', ...commandLine];
  return {
    operationId,
    file: unshare,
    args: ['--mount', '--', '/bin/sh', '-c', script, 'sh', root, ...assignments, ...inside],
    environment: { ...secrets, PATH: path, LC_ALL: 'C' },
    folder: '/',
  };
}

async function findProgram(name: string, path: string): Promise<string> {
  for (const folder of path.split(':')) {
    const file = join(folder, name);
    const isThere = await access(file).then(
      () => true,
      // A folder may lack the program, or be missing: execvp(3) continues as well.
      () => false,
    );
    if (isThere) return file;
  }
  throw new Error(`this ramdisk has no program ${name}: build it again`);
}

/** M1 covers our programs only. A foreign mount in the folder keeps the folder. */
async function removeRoot({ procRoot }: CommandRootsParts, root: string): Promise<void> {
  const mounts = await readFile(join(procRoot, 'self/mountinfo'), 'utf8');
  const mounted = mounts.split('\n').map((line) => line.split(' ')[4] ?? '');
  const inside = mounted.find(
    (mountPoint) => mountPoint === root || mountPoint.startsWith(`${root}/`),
  );
  if (inside !== undefined) throw new Error(`something is mounted at ${inside}: boot again`);
  await rm(root, { recursive: true, force: true });
}
