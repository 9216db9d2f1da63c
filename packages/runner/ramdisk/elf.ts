/**
 * A program's own description in its file. Nothing is run for it: the program may be for another
 * processor than the build machine's.
 */

/**
 * The commands that a static busybox answers to, from the list of their names in it; what
 * `busybox --list` prints. Throws when there is no such list. Source: applets/applet_tables.c of
 * busybox (sorted names, each with a zero byte behind it, the first two "[" and "[[").
 */
export function busyboxApplets(program: Uint8Array): string[] {
  const bytes = Buffer.from(program.buffer, program.byteOffset, program.byteLength);
  const begin = bytes.indexOf('\0[\0[[\0', 0, 'latin1') + 1;
  const end = bytes.indexOf('\0\0', begin, 'latin1');
  const names = begin === 0 || end < 0 ? [] : bytes.toString('latin1', begin, end).split('\0');
  const applets = names.filter((name) => name !== 'busybox');
  if (!['modprobe', 'sh', 'udhcpc'].every((name) => applets.includes(name))) {
    throw new Error('this busybox has no list of its commands');
  }
  const odd = applets.find((name) => !/^[A-Za-z0-9_.[-]+$/.test(name));
  if (odd !== undefined) throw new Error(`busybox names a command ${JSON.stringify(odd)}`);
  return applets;
}

/** The libraries that programs ask for, from the text of `readelf --dynamic`; each once. */
export function neededLibraries(text: string): string[] {
  const needed = text.matchAll(/\(NEEDED\)\s+Shared library: \[(.+)\]/g);
  return [...new Set([...needed].map(([, name = '']) => name))];
}
