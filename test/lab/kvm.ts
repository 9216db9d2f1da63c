/**
 * Does hardware virtualisation work here? `/dev/kvm` may exist and open and still boot no guest, so
 * a tiny system is started under it and must say a word within five seconds. Otherwise QEMU
 * emulates (TCG), which is fast enough for everything in the lab.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { arch, release } from 'node:os';
import { join } from 'node:path';
import { cpioArchive } from '@rackwright/disk-image';
import { runProgram } from './processes.ts';

/** How long the tiny system may take. */
const BOOT_LIMIT_MS = 5_000;
const WORD = 'virtualisation-works';
const BUSYBOX = '/bin/busybox';

/** `kvm` when it really boots a guest. The answer is kept in `cacheFolder` until a reboot. */
export async function chooseAccelerator(
  vmlinuz: string,
  cacheFolder: string,
): Promise<'kvm' | 'tcg'> {
  if (!existsSync('/dev/kvm')) return 'tcg';
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const key = `${release()} ${arch()} ${bootId}`;
  const cache = join(cacheFolder, 'accelerator');
  if (existsSync(cache)) {
    const [cachedKey, cached] = readFileSync(cache, 'utf8').split('\n');
    if (cachedKey === key && (cached === 'kvm' || cached === 'tcg')) return cached;
  }
  mkdirSync(cacheFolder, { recursive: true });
  const initrd = join(cacheFolder, 'kvm-probe.cpio');
  writeFileSync(initrd, probeInitrd());
  const accelerator = (await boots(vmlinuz, initrd)) ? 'kvm' : 'tcg';
  writeFileSync(cache, `${key}\n${accelerator}\n`);
  return accelerator;
}

function probeInitrd(): Uint8Array {
  const script = `#!/bin/busybox sh\necho ${WORD}\n/bin/busybox poweroff -f\n`;
  return cpioArchive([
    { kind: 'folder', path: 'bin', mode: 0o755 },
    { kind: 'folder', path: 'dev', mode: 0o755 },
    { kind: 'characterDevice', path: 'dev/console', mode: 0o600, major: 5, minor: 1 },
    { kind: 'file', path: 'bin/busybox', mode: 0o755, bytes: readFileSync(BUSYBOX) },
    { kind: 'file', path: 'init', mode: 0o755, bytes: Buffer.from(script) },
  ]);
}

async function boots(vmlinuz: string, initrd: string): Promise<boolean> {
  const args = ['-accel', 'kvm', '-m', '256', '-display', 'none', '-no-reboot', '-nodefaults'];
  const guest = ['-kernel', vmlinuz, '-initrd', initrd, '-append', 'console=ttyS0 quiet panic=-1'];
  try {
    const said = await runProgram('qemu-system-x86_64', [...args, ...guest, '-serial', 'stdio'], {
      timeoutMs: BOOT_LIMIT_MS,
    });
    return said.includes(WORD);
  } catch {
    return false; // it could not start, or had to be ended
  }
}
