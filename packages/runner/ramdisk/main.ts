/**
 * Builds vmlinuz, initrd.zst and manifest.json of the ramdisk into `.cache/ramdisk`; with the word
 * `arm64` those for that architecture, into `.cache/ramdisk-arm64`.
 */
import { join } from 'node:path';
import { buildRamdisk, ramdiskFolder } from './build.ts';

const ROOT = join(import.meta.dirname, '../../..');

const startedAt = performance.now();
const architecture = process.argv[2] === 'arm64' ? 'arm64' : 'amd64';
const ramdisk = await buildRamdisk({
  architecture,
  entry: join(import.meta.dirname, '../src/main.ts'),
  root: ROOT,
  outputFolder: ramdiskFolder(ROOT, architecture),
  now: Date.now(),
});
const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
const { files, kernelVersion } = ramdisk.manifest;
process.stdout.write(
  `${ramdisk.rebuilt ? 'built' : 'unchanged'} in ${seconds} s: kernel ${kernelVersion}, ` +
    `initrd ${(files['initrd.zst'].bytes / 1e6).toFixed(1)} MB\n` +
    `${ramdisk.vmlinuz}\n${ramdisk.initrd}\n`,
);
