/** A test that makes each kind of thing, says what it has made, and never ends by itself. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'vitest';
import { makeNamespace, namespaceName } from '../lab/namespaces.ts';
import { createUndo } from '../lab/undo.ts';
import { LoopDisks, noLoops } from '../loop-disks.ts';
import { folderInClone } from '../run-folder.ts';
import { controlGroups, type Made } from './made.ts';

test('a test makes everything, and is busy for ever', async () => {
  const made: Made = {
    folders: [tmpdir(), folderInClone('stopped-')],
    mounts: [],
    loops: [],
    namespaces: [],
    groups: [],
    processes: [process.pid, sleeper()],
  };
  if (process.getuid?.() === 0) await addRootsOwn(made);
  const path = process.env['RACKWRIGHT_MADE'] ?? '';
  writeFileSync(`${path}.part`, JSON.stringify(made));
  renameSync(`${path}.part`, path);
  // No word of the runner reaches a worker that is busy.
  for (;;);
});

async function addRootsOwn(made: Made): Promise<void> {
  const mounted = mkdtempSync(join(tmpdir(), 'mounted here-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'rackwright', mounted]);
  made.mounts.push(mounted);
  if (noLoops(tmpdir()) === undefined) {
    made.loops.push(new LoopDisks(tmpdir()).add(1024 * 1024).path);
  }
  const namespace = namespaceName('rwdhcp', 'server');
  await makeNamespace(createUndo(), namespace);
  made.namespaces.push(namespace);
  // A name, variables or words of the run: these processes have none.
  made.processes.push(sleeper('ip', 'netns', 'exec', namespace, 'env', '-i'));
  const place = controlGroups();
  if (place === undefined) return;
  const group = join(place, `rackwright-test-${basename(tmpdir())}-${process.pid}`);
  mkdirSync(group);
  const daemon = sleeper('-i');
  writeFileSync(join(group, 'cgroup.procs'), String(daemon));
  made.processes.push(daemon);
  made.groups.push(group);
}

/** A process in a session of its own, that would outlive everybody. */
function sleeper(...before: readonly string[]): number {
  const child = spawn('env', [...before, 'sleep', '3600'], {
    cwd: '/',
    detached: true,
    stdio: 'ignore',
  });
  child.unref();
  if (child.pid === undefined) throw new Error('sleep could not be started');
  return child.pid;
}
