/** Builds vmlinuz, initrd.zst and manifest.json of the ramdisk into `.cache/ramdisk`. */
import { join } from 'node:path';
import { buildRamdisk } from './build.ts';

const ROOT = join(import.meta.dirname, '../../..');

const startedAt = performance.now();
const ramdisk = await buildRamdisk({
  entry: join(import.meta.dirname, '../src/main.ts'),
  cacheFolder: join(ROOT, '.cache'),
  outputFolder: join(ROOT, '.cache/ramdisk'),
  now: Date.now(),
});
const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
const { files, kernelVersion } = ramdisk.manifest;
process.stdout.write(
  `${ramdisk.rebuilt ? 'built' : 'unchanged'} in ${seconds} s: kernel ${kernelVersion}, ` +
    `initrd ${(files['initrd.zst'].bytes / 1e6).toFixed(1)} MB\n` +
    `${ramdisk.vmlinuz}\n${ramdisk.initrd}\n`,
);
