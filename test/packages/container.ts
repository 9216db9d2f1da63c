/**
 * A machine with Debian and a real systemd, in the lab's network: systemd-nspawn over a root that
 * mmdebstrap has made from this machine's own package sources.
 *
 * 1. The root is made once and kept as an archive; every container has a copy of its own.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { debianRoot } from '../lab/debian-root.ts';
import type { Lab } from '../lab/lab.ts';
import { runProgram, startProcess, tryProgram, until } from '../lab/processes.ts';

const ROOT = join(import.meta.dirname, '../..');
const CACHE = join(ROOT, '.cache/packages-test');
const BOOT_WAIT_MS = 60_000;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** What a server has before anything of ours; the last line is what our packages depend on. */
const INCLUDED = [
  ...['systemd', 'systemd-sysv', 'dbus', 'iproute2'],
  ...['ipmitool', 'ipxe', 'libgcc-s1', 'libstdc++6', 'passwd'],
];

/** A running container. */
export interface Container {
  /** Its root, as seen from outside. */
  readonly root: string;
  /** The process that all of it descends from, as seen from outside. */
  readonly pid: number;
  /** A path in it as seen from outside, also below what it has mounted, such as /run. */
  path(inside: string): string;
  /** Runs a command in it; throws with its words when it fails. Input may come later. */
  run(
    command: readonly string[],
    environment?: Readonly<Record<string, string>>,
    input?: string | (() => Promise<string>),
  ): Promise<string>;
  /** Runs it, whatever it ends with. */
  attempt(command: readonly string[]): ReturnType<typeof tryProgram>;
}

/** What must be on the machine; the names of what is not. */
export function missingForContainers(): string[] {
  const present = (name: string): boolean =>
    PATH.split(':').some((folder) => existsSync(join(folder, name)));
  return ['systemd-nspawn', 'mmdebstrap', 'tar', 'nsenter', 'lintian'].filter(
    (name) => !present(name),
  );
}

/** Boots a fresh container in the lab's network namespace; the lab's end is its end. */
export async function startContainer(lab: Lab): Promise<Container> {
  const root = join(lab.folder, 'container');
  mkdirSync(root);
  await runProgram('tar', ['-xf', await rootArchive(), '-C', root]);
  writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 localhost\n');
  const logFile = join(lab.folder, 'container.log');
  writeFileSync(logFile, '');
  const started = startProcess(lab.undo, {
    name: 'container',
    file: 'systemd-nspawn',
    args: [
      ...['-q', '-D', root, '--register=no', '--keep-unit', '--boot', '--console=read-only'],
      `--network-namespace-path=/run/netns/${lab.network.namespace}`,
    ],
    logFile,
  });
  let leader = 0;
  const command = (args: readonly string[], environment: Readonly<Record<string, string>> = {}) => [
    ...['env', '-i', `PATH=${PATH}`, 'LC_ALL=C.UTF-8', 'DEBIAN_FRONTEND=noninteractive'],
    ...Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    ...['nsenter', '-t', String(leader), '-a', '--', ...args],
  ];
  const attempt: Container['attempt'] = (args) => tryProgram(command(args), {});
  await until(
    'the start of the container',
    BOOT_WAIT_MS,
    async () => {
      leader = Number(childrenOf(started.pid)[0] ?? 0);
      if (leader === 0) return false;
      const { out } = await attempt(['systemctl', 'is-system-running']);
      return /^(running|degraded)/.test(out);
    },
    logFile,
  );
  const run: Container['run'] = async (args, environment, input = '') => {
    const { code, out, err } = await tryProgram(command(args, environment), { input });
    if (code !== 0) throw new Error(`${args.join(' ')}: ${code}: ${err.trim()}${out.trim()}`);
    return out;
  };
  const path = (inside: string): string => join(`/proc/${leader}/root`, inside);
  return { root, pid: started.pid, path, run, attempt };
}

function childrenOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  } catch {
    return []; // not there yet, or gone
  }
}

/** The archive of the root. */
async function rootArchive(): Promise<string> {
  const file = join(CACHE, 'root.tar');
  await debianRoot(file, ['--variant=minbase', `--include=${INCLUDED.join(',')}`]);
  return file;
}
