/**
 * `node hunt.ts NAME FIRST_SEED SEEDS WORLDS`: plants a defect and looks for a seed that notices it
 * in worlds of that kind, which is given as JSON. The last line says what came of it, as JSON.
 */
import { plantAtLoad } from './load.ts';
import type { Hunted } from './plant.ts';
import { plants } from './table.ts';

/** What a hunt came to. */
export type Found =
  | { readonly kind: 'violation'; readonly seed: number; readonly text: string }
  | { readonly kind: 'survived'; readonly seeds: number };

/** Names the code as it is: what it violates, no planted fault can be blamed for. */
export const nothing = 'nothing';

async function hunt(
  name: string,
  first: number,
  seeds: number,
  { from: _from, ...more }: Hunted,
): Promise<Found> {
  const plant = plants.find((each) => each.name === name);
  if (plant === undefined && name !== nothing)
    throw new Error(`no planted fault is called ${name}`);
  const isLoaded = plant === undefined ? () => true : plantAtLoad(plant);
  const { runWorld } = await import('../world.ts');
  if (!isLoaded()) throw new Error(`${name}: the simulation does not use ${plant?.file}`);
  for (let seed = first; seed < first + seeds; seed++) {
    const world = { seed, hosts: 2, batches: false, discovery: false, pools: false, ...more };
    const [violation] = (await runWorld(world)).violations;
    if (violation === undefined) continue;
    return { kind: 'violation', seed, text: `${violation.rule} ${violation.text}` };
  }
  return { kind: 'survived', seeds };
}

if (import.meta.main) {
  const [name = '', first, seeds, worlds = '{}'] = process.argv.slice(2);
  const hunted = JSON.parse(worlds) as Hunted;
  console.log(JSON.stringify(await hunt(name, Number(first), Number(seeds), hunted)));
}
