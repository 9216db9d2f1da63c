/**
 * The SQLite driver as the conformance suite sees it. A crash copies the files as they are at that
 * moment, as a SIGKILL leaves them: the kernel has all writes, the process nothing. `kill.test.ts`
 * does the same with a real process.
 */
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { nodeRandom } from '@rackwright/platform/node';
import {
  bytes,
  HandClock,
  type StoreUnderTest,
  TESTED_AGE_MS,
  testedRetention,
} from '../conformance/subject.ts';
import { openSqliteStore } from './store.ts';
import { SWEEP_PAUSE_MS } from './sweep.ts';

/** Writes that let a sweep finish: more than the rows of any case need. */
const SWEEPS = 20;

export async function sqliteUnderTest(): Promise<StoreUnderTest> {
  const root = await mkdtemp(join(tmpdir(), 'rackwright-store-'));
  let life = 0;
  const folder = () => join(root, String(life));
  const clock = new HandClock();
  const retention = testedRetention(TESTED_AGE_MS);
  const open = (restored = false) => {
    const path = join(folder(), 'store.db');
    const dictionary = bytes('a value of every case is packed where it is long enough');
    const parts = { path, random: nodeRandom(), clock, retention, restored };
    return openSqliteStore({ ...parts, dictionary });
  };
  await mkdir(folder());
  const store = await open();
  const left = [store];
  const subject: StoreUnderTest = {
    first: store,
    second: store,
    async crash() {
      const before = folder();
      life += 1;
      await cp(before, folder(), { recursive: true });
      const after = await open();
      left.push(after);
      subject.first = after;
      subject.second = after;
    },
    async restore() {
      await subject.first.close();
      const after = await open(true);
      left.push(after);
      subject.first = after;
      subject.second = after;
    },
    wait: (delayMs) => delay(delayMs),
    async growOld() {
      clock.move(TESTED_AGE_MS + 1);
      for (let at = 0; at < SWEEPS; at += 1) {
        clock.move(SWEEP_PAUSE_MS);
        await subject.first.put(`sweeps.s${clock.nowMs()}`, bytes(''), 'absent');
      }
    },
    async dispose() {
      for (const each of left) await each.close();
      await rm(root, { recursive: true });
    },
  };
  return subject;
}
