/** The kernel modules that are needed, by the kernel's own dependency list. */

/** `modules.dep` as a map: path of a module → paths that it needs, itself not included. */
export type ModuleDependencies = ReadonlyMap<string, readonly string[]>;

/** Reads `modules.dep` (depmod(8)): `path: needed needed…`, one module a line. */
export function parseModulesDep(text: string): ModuleDependencies {
  const found = new Map<string, readonly string[]>();
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue;
    const needed = line.slice(colon + 1).trim();
    found.set(line.slice(0, colon), needed === '' ? [] : needed.split(' '));
  }
  return found;
}

/** Paths of the modules called `names` and of all that they need, and the names without a file. */
export function moduleClosure(
  dependencies: ModuleDependencies,
  names: readonly string[],
): { readonly paths: string[]; readonly unknown: string[] } {
  const byName = new Map([...dependencies.keys()].map((path) => [moduleName(path), path]));
  const paths = new Set<string>();
  const unknown: string[] = [];
  for (const name of names) {
    const path = byName.get(moduleName(name));
    if (path === undefined) {
      unknown.push(name);
      continue;
    }
    paths.add(path);
    for (const needed of dependencies.get(path) ?? []) paths.add(needed);
  }
  return { paths: [...paths].sort(), unknown };
}

/** The module's name: its file name without endings, "-" and "_" being the same. */
function moduleName(path: string): string {
  const file = path.slice(path.lastIndexOf('/') + 1);
  return file.replace(/\.ko(\.\w+)?$/, '').replaceAll('-', '_');
}
