import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where a running system writes by itself, or dpkg keeps its own records. */
const elsewhere = [
  /^(dev|proc|run|sys|tmp)\//,
  /^var\/(cache|log|tmp)\//,
  /^var\/lib\/dpkg\//,
  /^var\/lib\/systemd\/(timers|random-seed|catalog|rfkill)(\/|$)/,
  /^etc\/(passwd|group|shadow|gshadow|subuid|subgid)-$/,
  /^etc\/\.pwd\.lock$/,
  /^root\//,
];
/** Files that show who is known to the system. */
const people = ['etc/passwd', 'etc/group'];

/** All that a system has of its own, one line each: paths, and who is known to it. */
export function footprint(root: string): ReadonlySet<string> {
  const lines = new Set<string>();
  const visit = (path: string): void => {
    for (const name of readdirSync(join(root, path))) {
      const below = path === '' ? name : `${path}/${name}`;
      const isFolder = lstatSync(join(root, below)).isDirectory();
      if (elsewhere.some((place) => place.test(isFolder ? `${below}/` : below))) continue;
      lines.add(below);
      if (isFolder) visit(below);
    }
  };
  visit('');
  for (const file of people) {
    for (const line of readFileSync(join(root, file), 'utf8').split('\n')) {
      if (line !== '') lines.add(`${file}: ${line}`);
    }
  }
  return lines;
}

/** What `after` has and `before` has not. */
export function added(before: ReadonlySet<string>, after: ReadonlySet<string>): string[] {
  return [...after].filter((line) => !before.has(line)).sort();
}
