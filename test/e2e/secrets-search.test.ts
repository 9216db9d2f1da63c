import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventually } from './rack.ts';
import { ProcessWatch, SecretSearch, secret } from './secrets-search.ts';

describe('the search', () => {
  const planted = secret('planted');
  const bytes = Buffer.from(planted);
  const found = (text: string) => {
    const search = new SecretSearch({ planted });
    search.text('here', text);
    return search.findings.length > 0;
  };

  test.each([
    ['as it is', `before ${planted} after`],
    ['in base64', `x${bytes.toString('base64')}`],
    ['in base64 at an odd place', Buffer.from(`ab${planted}cd`).toString('base64')],
    ['in base64 at another', Buffer.from(`a${planted}cd`).toString('base64')],
    ['in base64 for URLs', bytes.toString('base64url')],
    ['in hex', bytes.toString('hex')],
    ['in a URL', `https://x.example/?q=${encodeURIComponent(planted)}`],
    ['in JSON', JSON.stringify({ a: planted })],
  ])('finds a secret %s', (_, text) => expect(found(text)).toBe(true));

  test('finds nothing where there is nothing, and what may stand there', () => {
    expect(found('planted/0123456789abcdef')).toBe(false);
    const search = new SecretSearch({ planted });
    search.text('here', planted, ['planted']);
    expect(search.findings).toEqual([]);
  });

  test('finds a secret in arguments and in the environment of a child of a child', async () => {
    for (const inEnvironment of [false, true]) {
      const search = new SecretSearch({ planted });
      const args = ['-c', 'sleep 20 & wait', 'sh', ...(inEnvironment ? [] : [planted])];
      const env = inEnvironment ? { PATH: '/usr/bin:/bin', TOKEN: planted } : {};
      const child = spawn('/bin/sh', args, {
        env: { PATH: '/usr/bin:/bin', ...env },
        detached: true,
      });
      const watch = new ProcessWatch(search, () => [process.pid]);
      await eventually('the child to be seen', () => {
        if (![...watch.seen].some((line) => line.startsWith('sleep 20')))
          throw new Error('not yet');
      });
      watch.stop();
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      const where = inEnvironment ? 'environment of' : 'arguments of';
      expect(search.findings.map((finding) => finding.where).join()).toContain(where);
    }
  });

  test('finds a secret in a file, and in bytes of a message', () => {
    const folder = mkdtempSync(join(tmpdir(), 'rackwright-planted-'));
    writeFileSync(join(folder, 'a.db-wal'), Buffer.concat([Buffer.alloc(5), bytes]));
    const search = new SecretSearch({ planted });
    expect(search.folder(folder)).toBe(1);
    expect(search.findings).toHaveLength(1);
    rmSync(folder, { recursive: true });
    search.message('answer', { tail: new Uint8Array(bytes) });
    expect(search.findings).toHaveLength(2);
  });
});
