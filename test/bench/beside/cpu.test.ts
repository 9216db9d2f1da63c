import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { CpuMeter } from './cpu.ts';

/** Uses 150 ms of a processor in each of two threads, says what it has used, and waits. */
const busy = `
const { Worker } = require('node:worker_threads');
const work = () => {
  for (let used = 0; used < 150_000; ) {
    const { user, system } = process.threadCpuUsage();
    used = user + system;
  }
};
new Worker('(' + work + ')(); setInterval(() => {}, 1e6)', { eval: true });
work();
process.stdin.once('data', () => {
  const { user, system } = process.cpuUsage();
  console.log((user + system) / 1_000);
});
`;

/** Uses 150 ms of a processor in a thread, which ends before it says what it has used. */
const ended = `
const { Worker } = require('node:worker_threads');
const work = () => {
  for (let used = 0; used < 150_000; ) {
    const { user, system } = process.threadCpuUsage();
    used = user + system;
  }
};
process.stdin.once('data', () => {
  new Worker('(' + work + ')()', { eval: true }).once('exit', () => {
    const { user, system } = process.cpuUsage();
    console.log((user + system) / 1_000);
  });
});
`;

test('the meter counts the time of a thread that has ended', async () => {
  const child = spawn(process.execPath, ['-e', ended], { stdio: ['pipe', 'pipe', 'inherit'] });
  const meter = new CpuMeter(child.pid ?? 0);
  // Its readings while the thread lives are not what is tried here.
  meter.stop();
  try {
    child.stdin.write('say');
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    expect(meter.readMs()).toBeGreaterThan(Number(said) * 0.8 - 20);
  } finally {
    child.kill('SIGKILL');
  }
});

test('the meter counts all threads of a process, as the process itself does', async () => {
  const child = spawn(process.execPath, ['-e', busy], { stdio: ['pipe', 'pipe', 'inherit'] });
  const meter = new CpuMeter(child.pid ?? 0);
  try {
    await expect.poll(() => meter.readMs(), { timeout: 60_000 }).toBeGreaterThan(300);
    child.stdin.write('say');
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    const counted = meter.readMs();
    // Its answer costs it something; a thread that was left out would be half of it.
    expect(counted).toBeGreaterThan(Number(said) * 0.8);
    expect(counted).toBeLessThan(Number(said) * 1.2 + 50);
  } finally {
    meter.stop();
    child.kill('SIGKILL');
  }
});
