/**
 * A rack's agent in a process of its own that tells facts as fast as they are taken, until it has
 * told so many or somebody ends it. Says "welcomed" and "over". The first argument is JSON.
 */
import type { HostUid } from '@rackwright/messages';
import type { Credentials } from '../bench/agents/lean-agent.ts';
import { AgentStream } from './hostile-agent-site.ts';

/** What it is told. */
export interface NoiseOrder {
  readonly port: number;
  readonly credentials: Credentials;
  readonly hostUid: HostUid;
  readonly journal: { readonly id: string; readonly generation: string };
  readonly factsMax: number;
}

const order = JSON.parse(process.argv[2] ?? '') as NoiseOrder;
const noisy = new AgentStream(order.port, order.credentials);
noisy.hello({ id: order.journal.id, generation: BigInt(order.journal.generation) });
if (!(await noisy.settled())) throw new Error('the noisy agent was not welcomed');
process.stdout.write('welcomed\n');
for (let sent = 0; sent < order.factsMax && !noisy.isOver; sent += 1) {
  const value = { observations: { poweredOn: sent % 2 === 0 } };
  const result = { case: 'hostUpdated' as const, value };
  const report = { hostUid: order.hostUid, result };
  if (!noisy.stream.send({ case: 'report', value: report })) await noisy.stream.drained();
}
if (!noisy.isOver) await noisy.settled();
process.stdout.write('over\n');
noisy.stream.cut();
