/**
 * `node hunt.ts NAME FIRST_SEED SEEDS WORLDS`: plants a defect and looks for a seed that notices it
 * in worlds of that kind, which is given as JSON. The last line says what came of it, as JSON.
 */
import { plantAtLoad } from './load.ts';
import type { Hunted } from './plant.ts';
import { plants } from './table.ts';

/** What a hunt came to. */
export type HuntOutcome =
  | { readonly kind: 'violation'; readonly seed: number; readonly text: string }
  | { readonly kind: 'survived'; readonly seeds: number };

/** What the code, as it has been loaded, violates in the world of that seed. */
export async function violationIn(
  seed: number,
  { from: _from, rule, ...more }: Hunted,
): Promise<string | undefined> {
  const { runWorld } = await import('../world.ts');
  const world = {
    seed,
    hosts: 2,
    batches: false,
    discovery: false,
    pools: false,
    views: false,
    ...more,
  };
  const { violations } = await runWorld(world);
  const violation = violations.find((each) => rule === undefined || each.rule === rule);
  return violation && `${violation.rule} ${violation.text}`;
}

async function hunt(
  name: string,
  first: number,
  seeds: number,
  worlds: Hunted,
): Promise<HuntOutcome> {
  const plant = plants.find((each) => each.name === name);
  if (plant === undefined) throw new Error(`no planted fault is called ${name}`);
  const isLoaded = plantAtLoad(plant);
  await import('../world.ts');
  if (!isLoaded()) throw new Error(`${name}: the simulation does not use ${plant.file}`);
  for (let seed = first; seed < first + seeds; seed++) {
    const text = await violationIn(seed, worlds);
    if (text !== undefined) return { kind: 'violation', seed, text };
  }
  return { kind: 'survived', seeds };
}

if (import.meta.main) {
  const [name = '', first, seeds, worlds = '{}'] = process.argv.slice(2);
  const hunted = JSON.parse(worlds) as Hunted;
  console.log(JSON.stringify(await hunt(name, Number(first), Number(seeds), hunted)));
}
