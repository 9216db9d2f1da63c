import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('compiled code stays in the cache when a program is killed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-compiled-'));
  try {
    const program = join(folder, 'program.mjs');
    const ours = join(import.meta.dirname, 'compile-cache.ts');
    const text = `import { keepCompiled } from ${JSON.stringify(ours)};
      keepCompiled(); console.log('kept'); setInterval(() => {}, 1_000);`;
    await writeFile(program, text);
    const cache = join(folder, 'cache');
    const env = { ...process.env, NODE_COMPILE_CACHE: cache };
    const child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(child, 'exit');
    await Promise.race([once(child.stdout, 'data'), exited]);
    child.kill('SIGKILL');
    expect(await exited).toEqual([null, 'SIGKILL']);
    const kept = await readdir(cache, { recursive: true });
    expect(kept.length).toBeGreaterThan(1);
  } finally {
    await rm(folder, { recursive: true });
  }
});
