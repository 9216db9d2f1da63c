/** What a test has made in the machine, and what of it is there. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

export interface Made {
  readonly folders: string[];
  readonly mounts: string[];
  /** Paths of loop devices. */
  readonly loops: string[];
  readonly namespaces: string[];
  readonly groups: string[];
  /** Process ids. */
  readonly processes: number[];
}

/** Those that are there still, each by kind and name. */
export function stillThere(made: Made): string[] {
  const mounted = readFileSync('/proc/self/mountinfo', 'utf8').replaceAll('\\040', ' ');
  const isThere: Record<keyof Made, (name: string) => boolean> = {
    folders: existsSync,
    mounts: (path) => mounted.includes(` ${path} `),
    loops: (path) => existsSync(join('/sys/block', basename(path), 'loop/backing_file')),
    namespaces: (name) => existsSync(join('/run/netns', name)),
    groups: existsSync,
    processes: isAlive,
  };
  const kinds = Object.keys(isThere) as (keyof Made)[];
  return kinds.flatMap((kind) =>
    made[kind]
      .map(String)
      .filter(isThere[kind])
      .map((name) => `${kind}: ${name}`),
  );
}

function isAlive(pid: string): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Where a control group of this process stands; undefined: nowhere. */
export function controlGroups(): string | undefined {
  const mounted = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/mounts', 'utf8'))?.[1];
  const own = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
  return mounted === undefined || own === undefined ? undefined : join(mounted, own);
}
