/** For the run that `stopped-run.peer.test.ts` starts and stops. */
import { defineConfig } from 'vitest/config';
import { openRunFolder } from '../run-folder.ts';

openRunFolder();

export default defineConfig({
  test: { root: import.meta.dirname, include: ['./everything.fixture.ts'], testTimeout: 600_000 },
});
