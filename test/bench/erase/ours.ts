/** The runner's erase step over the loop devices of a folder, in a process like the runner's. */
import { eraseDevices } from '@rackwright/runner';
import { eraseEverything } from '../../erase-order.ts';
import { devicesIn } from '../../loop-disks.ts';

export interface OurTimes {
  readonly totalMs: number;
  readonly cpuMs: number;
}

const [folder = ''] = process.argv.slice(2);
const startMs = performance.now();
const end = await eraseEverything(eraseDevices, devicesIn(folder), 'overwrite');
const totalMs = performance.now() - startMs;
const { userCPUTime, systemCPUTime } = process.resourceUsage();
const times: OurTimes = { totalMs, cpuMs: (userCPUTime + systemCPUTime) / 1_000 };
if (end.result.kind !== 'complete') throw new Error(JSON.stringify(end.result));
console.log(JSON.stringify(times));
