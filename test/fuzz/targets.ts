/** The table of targets, by groups: a worker loads only the code of its own. */
import type { Target } from './target.ts';

type Group = () => Promise<{ readonly targets: readonly Target[] }>;

const groups: Readonly<Record<string, Group>> = {
  boot: () => import('./targets/boot.ts'),
  machine: () => import('./targets/machine.ts'),
  images: () => import('./targets/images.ts'),
  bmc: () => import('./targets/bmc.ts'),
  redfish: () => import('./targets/redfish.ts'),
  records: () => import('./targets/records.ts'),
  texts: () => import('./targets/texts.ts'),
};

/** Parsers that are broken on purpose, for the fuzzer's own tests; no list has them. */
const planted: Group = () => import('./targets/planted.ts');

export async function loadTarget(name: string): Promise<Target> {
  const group = name.slice(0, name.indexOf('.'));
  const load = group === 'planted' ? planted : groups[group];
  const found = (await load?.())?.targets.find((target) => target.name === name);
  if (found === undefined) throw new Error(`there is no target ${name}`);
  return found;
}

/** All targets, in the order of the table. */
export async function allTargets(): Promise<Target[]> {
  const loaded = await Promise.all(Object.values(groups).map((load) => load()));
  return loaded.flatMap(({ targets }) => targets);
}
