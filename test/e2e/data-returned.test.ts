/**
 * A disk that lies through a whole clean, from its order to an auditor: it is certified, its data
 * is back at the next boot, and what was exported says so to whoever has nothing but the files.
 */
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { FailureType, HostGoal, HostState } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { typed } from './command.ts';
import {
  cleanOnce,
  documentsOf,
  forgetfulMachine,
  judgeClean,
  onlyRow,
  readAgainInVain,
} from './kill-clean.ts';
import { Rack } from './rack.ts';

const exitCodes = { revoked: 11, revocationsUnknown: 12 } as const;

async function rackwright(rack: Rack, args: readonly string[]) {
  const { code, out, err } = await typed(rack.commandEnvironment, args);
  return { code, out: `${out}${err}` };
}

/** Exports everything into a new folder below the rack's; answers the folder and its files. */
async function exported(rack: Rack, name: string) {
  const folder = join(rack.folder, name);
  mkdirSync(folder);
  const { code, out } = await rackwright(rack, ['erasure', 'export', '--folder', folder]);
  expect(code, out).toBe(0);
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
  return { folder, said: out, files: files.map((file) => join(folder, file)) };
}

async function verified(rack: Rack, folder: string, files: readonly string[], more: string[] = []) {
  const trust = ['--trust', join(folder, 'trust.pem')];
  return rackwright(rack, ['erasure', 'verify', ...trust, ...more, ...files]);
}

describe('a disk whose data is back once it was off', () => {
  test('a disk whose data is back loses its certificate, and the files alone say so', async () => {
    const rack = await Rack.start({ machines: [forgetfulMachine], goal: HostGoal.MANAGEABLE });
    try {
      await cleanOnce(onlyRow(rack));
      const before = await exported(rack, 'before');
      expect(before.said).toContain('2 certificates and 1 document written');
      expect(await verified(rack, before.folder, before.files)).toMatchObject({ code: 0 });
      const strict = await verified(rack, before.folder, before.files, ['--require-revocations']);
      expect(strict.code).toBe(exitCodes.revocationsUnknown);

      const { status } = await readAgainInVain(onlyRow(rack));
      expect(status).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
      expect(status?.run?.error?.type).toBe(FailureType.DATA_RETURNED);
      expect(status?.faults.map(({ type }) => type)).toContain('dataReturned');
      expect(judgeClean(onlyRow(rack), 'runner').left, 'what the medium holds').toEqual(['vda']);
      expect(await documentsOf(onlyRow(rack))).toEqual({
        manifests: 1,
        addenda: 0,
        revocations: 1,
      });

      const after = await exported(rack, 'after');
      expect(after.said).toContain('2 certificates and 2 documents written');
      const judged = await verified(rack, after.folder, after.files);
      expect(judged.code, judged.out).toBe(exitCodes.revoked);
      expect(judged.out).toMatch(/: REVOKED: .*DISK-1/);
      expect(judged.out).toMatch(/: verified: .*NVME-1/);
    } finally {
      await rack.stop();
    }
  });
});
