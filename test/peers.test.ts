import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { isNewEnough, parsePeers } from './peers.ts';
import { peer } from './peers-tests/peer.ts';

test('comments and empty lines are no packages', () => {
  expect(parsePeers('# all\n\nqemu-utils  # images\n  curl\n')).toEqual(['qemu-utils', 'curl']);
});

test('the list names no package twice', () => {
  const names = parsePeers(readFileSync(join(import.meta.dirname, 'peers.txt'), 'utf8'));
  expect(new Set(names).size).toBe(names.length);
});

test('a NATS server below 2.10.27 is refused and any above is taken', () => {
  const accepted = ['v2.10.27', 'v2.10.28', 'v2.11.0', 'v2.15.1', 'v3.0.0-rc1'];
  const refused = ['v2.9.10', 'v2.10.26', 'v1.99.99', 'nats-server: unusable'];
  expect(accepted.map((one) => isNewEnough(`nats-server: ${one}`))).not.toContain(false);
  expect(refused.map((one) => isNewEnough(`nats-server: ${one}`))).not.toContain(true);
});

test('a link that atftpd has under the name of another server is not that server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'peer-'));
  try {
    const other = join(folder, 'rackwright-atftpd');
    writeFileSync(other, '#!/bin/sh\n', { mode: 0o755 });
    symlinkSync('rackwright-atftpd', join(folder, 'rackwright-in.tftpd'));
    vi.stubEnv('PATH', folder);
    expect(peer('rackwright-in.tftpd').kind).toBe('found');
    expect(peer('rackwright-in.tftpd', { noLink: true }).kind).toBe('missing');
    expect(peer('rackwright-atftpd', { noLink: true })).toEqual({ kind: 'found', path: other });
  } finally {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  }
});
