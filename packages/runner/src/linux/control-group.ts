/**
 * The kernel's control group (cgroups(7), version 2) of the program at work: all processes that it
 * starts are in it, also one that has left its session and its process group and has cleared its
 * environment. Only a program that moves itself into another control group, as root can, is not
 * seen in it.
 *
 * Nothing of it survives the kernel, so a runner that finds processes in it may end them.
 */
import { writeFileSync } from 'node:fs';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn, readText } from './sys-files.ts';

/** Groups in groups that a program may have made for its own; deeper ones are not looked for. */
const depthMax = 16;

/** Puts a process into the group, with all that it starts from now on. */
export async function enterGroup(folder: string, pid: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'cgroup.procs'), String(pid));
}

/** The living processes of the group and of those below it; `''`: there is no group. */
export async function membersOfGroup(folder: string): Promise<ReadonlySet<number>> {
  const members = new Set<number>();
  for (const each of await groupsIn(folder)) {
    const text = await readText(each, 'cgroup.procs');
    for (const pid of text.split('\n')) if (/^[1-9]\d*$/.test(pid)) members.add(Number(pid));
  }
  return members;
}

/** SIGKILL to all members at once, so that none starts another meanwhile. */
export function killGroup(folder: string): void {
  if (folder === '') return;
  try {
    writeFileSync(join(folder, 'cgroup.kill'), '1', { flag: 'r+' });
  } catch {
    // There is no group, or a kernel before 5.14: members are killed one by one.
  }
}

/** Removes a group without members; a group with members stays. */
export async function removeGroup(folder: string): Promise<void> {
  for (const each of (await groupsIn(folder)).reverse()) {
    // EBUSY: it has members. ENOENT: it was removed meanwhile.
    await rmdir(each).catch(() => undefined);
  }
}

/** The group and those below it, each after its parent. */
async function groupsIn(folder: string, depth = 0): Promise<string[]> {
  // There is no group. Node would read the working folder.
  if (folder === '') return [];
  const names = await namesIn(folder);
  if (!names.includes('cgroup.procs')) return [];
  const found = [folder];
  if (depth >= depthMax) return found;
  for (const name of names) {
    if (name.includes('.')) continue;
    found.push(...(await groupsIn(join(folder, name), depth + 1)));
  }
  return found;
}
