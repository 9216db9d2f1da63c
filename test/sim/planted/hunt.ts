/**
 * `node hunt.ts NAME FIRST_SEED SEEDS [workflows]`: plants a defect and looks for a seed that
 * notices it. The last line says what came of it, as JSON.
 */
import { plantAtLoad } from './load.ts';
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
  more: { readonly workflows?: true },
): Promise<Found> {
  const plant = plants.find((each) => each.name === name);
  if (plant === undefined && name !== nothing)
    throw new Error(`no planted fault is called ${name}`);
  const isLoaded = plant === undefined ? () => true : plantAtLoad(plant);
  const { runWorld } = await import('../world.ts');
  if (!isLoaded()) throw new Error(`${name}: the simulation does not use ${plant?.file}`);
  for (let seed = first; seed < first + seeds; seed++) {
    const [violation] = (await runWorld({ seed, hosts: 2, ...more })).violations;
    if (violation === undefined) continue;
    return { kind: 'violation', seed, text: `${violation.rule} ${violation.text}` };
  }
  return { kind: 'survived', seeds };
}

if (import.meta.main) {
  const [name = '', first, seeds, workflows] = process.argv.slice(2);
  const more = workflows === undefined ? {} : { workflows: true as const };
  console.log(JSON.stringify(await hunt(name, Number(first), Number(seeds), more)));
}
