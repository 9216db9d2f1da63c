/**
 * A start from the disk: the system on it runs, and reports that to the URL in its first-boot data.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '@rackwright/platform';
import { type FirstBoot, findSystem, type SystemName } from './system.ts';

/** cloud-init's delay between two calls. */
const callPauseMs = 3_000;
const callTimeoutMs = 10_000;

/** Resolves when nothing more comes by itself. A machine without a system does nothing. */
export async function startFromDisk(folder: string, print: (text: string) => void): Promise<void> {
  const found = findSystem(join(folder, 'disks'));
  if (found.kind === 'none') return;
  if (found.kind === 'broken') {
    print(`the disk ${found.disk} does not start: ${found.problem}`);
    return;
  }
  const { system, firstBoot } = found;
  print(`${firstBoot.hostName} runs ${system.name} ${system.version} from ${found.disk}`);
  writeFileSync(runningPath(folder), JSON.stringify(system));
  await phoneHome(firstBoot, print);
}

/** The system that was started from a disk since the machine was switched on; undefined: none. */
export function runningSystem(folder: string): SystemName | undefined {
  const path = runningPath(folder);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as SystemName) : undefined;
}

function runningPath(folder: string): string {
  return join(folder, 'run', 'system.json');
}

/** A system keeps nothing on its disk, so each start is its first one. */
async function phoneHome(boot: FirstBoot, print: (text: string) => void): Promise<void> {
  const { hostName, instanceId, phoneHome: call } = boot;
  const form = { instance_id: instanceId, hostname: hostName, fqdn: hostName };
  for (let tried = 0; tried < (call?.tries ?? 0); tried += 1) {
    if (tried > 0) await sleep(callPauseMs);
    try {
      const status = await post(call?.url ?? '', String(new URLSearchParams(form)));
      if (status === 200) return print('has phoned home');
      print(`phones home in vain: HTTP status ${status}`);
    } catch (error) {
      print(`phones home in vain: ${errorText(error)}`);
    }
  }
}

function post(url: string, body: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const options = { method: 'POST', headers, agent: false, timeout: callTimeoutMs };
    const call = request(url, options, (response) => {
      response.resume();
      response.once('error', reject);
      response.once('end', () => resolve(response.statusCode));
    });
    call.once('timeout', () => call.destroy(new Error('no answer in time')));
    call.once('error', reject);
    call.end(body);
  });
}
