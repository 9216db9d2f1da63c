/** What the agent counts: within bounds, and no label names a machine. */

import { expose } from '@rackwright/metrics';
import { EventHeap, SimProcess } from '@rackwright/sim';
import { expect, test } from 'vitest';
import { arrivesWithinMs } from './boots-served.ts';
import { createAgentFigures, observeAgent } from './index.ts';

function figuresOnHeap() {
  const heap = new EventHeap();
  const { clock } = new SimProcess('p', heap, 0, () => false);
  const figures = createAgentFigures(clock);
  const pass = async (ms: number) => {
    const untilMs = heap.nowMs + ms;
    heap.after(ms, () => undefined);
    await heap.run(untilMs, () => false);
  };
  const text = () => expose(figures.registry.families(), 'prometheus');
  return { figures, pass, text };
}

test('a boot whose runner does not come is lost, once, and others have arrived', async () => {
  const { figures, pass, text } = figuresOnHeap();
  for (let at = 0; at < 3; at += 1) figures.boot.runnerServed('u/clean-1/0/1');
  figures.boot.runnerServed('v/clean-1/0/1');
  await pass(40_000);
  figures.bootArrived('v/clean-1/0/1');
  figures.bootArrived('v/clean-1/0/1');
  figures.bootArrived('w/was-never-served/0/1');
  await pass(arrivesWithinMs);
  expect(text()).toContain('rackwright_agent_boots_total{outcome="lost"} 1\n');
  expect(text()).toContain('rackwright_agent_boots_total{outcome="arrived"} 1\n');
  expect(text()).toContain('rackwright_agent_boot_duration_seconds_sum 40\n');
});

test('the number of boots that are waited for is bounded', async () => {
  const { figures, pass, text } = figuresOnHeap();
  for (let at = 0; at < 10_000; at += 1) figures.boot.runnerServed(`u${at}/clean-1/0/1`);
  await pass(arrivesWithinMs);
  expect(text()).toContain('rackwright_agent_boots_total{outcome="lost"} 4096\n');
});

test('an answer is bounded, and no label can name a host, a MAC or an address', () => {
  const { figures } = figuresOnHeap();
  observeAgent(figures.registry, {
    status: () => ({ kind: 'stopped' }),
    leaseLeftMs: () => 0,
    unanswered: () => 0,
    transfers: () => 0,
    certificateEndMs: () => 0,
  });
  expect(figures.registry.linesMax).toBeLessThan(600);
  const labels = [...figures.registry.labels.values()].flatMap((spec) => Object.keys(spec));
  expect([...new Set(labels)].toSorted()).toEqual([
    ...['answered', 'by', 'certificate', 'end', 'fault', 'outcome', 'protocol', 'reason', 'result'],
    ...['status', 'what'],
  ]);
});

test('a network on which the server is silent is counted while it is', () => {
  const { figures, text } = figuresOnHeap();
  const [one, other] = [{}, {}];
  figures.boot.dhcpQuiet(one, true);
  figures.boot.dhcpQuiet(one, true);
  figures.boot.dhcpQuiet(other, true);
  figures.boot.dhcpFault('otherServer');
  expect(text()).toContain('rackwright_agent_dhcp_quiet 2\n');
  figures.boot.dhcpQuiet(one, false);
  expect(text()).toContain('rackwright_agent_dhcp_quiet 1\n');
  expect(text()).toContain('rackwright_agent_dhcp_faults_total{fault="otherServer"} 1\n');
});
