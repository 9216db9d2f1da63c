/** Loads the simulation with a defect in it: to be called before anything of it is imported. */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { type Plant, withDefect } from './plant.ts';

/** From now on the plant's file is loaded with its defect. Returns whether it has been. */
export function plantAtLoad(plant: Plant): () => boolean {
  const path = fileURLToPath(new URL(`../../../${plant.file}`, import.meta.url));
  let loaded = false;
  registerHooks({
    load: (url, context, nextLoad) => {
      const module = nextLoad(url, context);
      if (!url.startsWith('file:') || fileURLToPath(url) !== path) return module;
      loaded = true;
      return { ...module, source: withDefect(readFileSync(path, 'utf8'), plant) };
    },
  });
  return () => loaded;
}
