/** Runs tests with a planted fault in the code that they test; RACKWRIGHT_PLANT names it. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { withDefect } from './plant.ts';
import { plants } from './table.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const plant = plants.find(({ name }) => name === process.env['RACKWRIGHT_PLANT']);
if (plant === undefined) throw new Error('RACKWRIGHT_PLANT names no planted fault');

export default defineConfig({
  root,
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fsModuleCache: false,
    include: ['**/*.test.ts'],
  },
  plugins: [
    {
      name: 'planted-fault',
      enforce: 'pre',
      transform: (code, id) =>
        id === `${root}${plant.file}` ? withDefect(code, plant) : undefined,
    },
  ],
});
