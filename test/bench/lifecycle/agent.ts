/**
 * An agent whose machines are instant: identity, mTLS, session, work lease and journal with fsync
 * are the production code; BMCs and runners answer at once. Runs as a process of its own.
 *
 *     agent.ts STATE_FOLDER
 */
import { AgentSession, grpcTransport, IdentityFiles, Journal, readKey } from '@rackwright/agent';
import { nodeClock, nodeDisk, nodeLog, nodeRandom } from '@rackwright/platform/node';
import { instantExecutor } from '../../instant/machines.ts';

const [folder = ''] = process.argv.slice(2);
const clock = nodeClock();
const disk = nodeDisk();
const random = nodeRandom();
const log = nodeLog('warn');
const identity = await new IdentityFiles(disk, folder).load();
if (identity === undefined) throw new Error(`${folder} holds no identity: join first`);

const journal = await Journal.open({ disk, path: `${folder}/journal`, clock, random, log });
const session = new AgentSession({
  journal,
  disk,
  snapshotPath: `${folder}/boot-snapshot`,
  clock,
  random,
  log,
  crashPoint: () => {},
  agentVersion: 'bench',
  transport: grpcTransport(() => ({
    target: identity.agentEndpoint,
    caPem: identity.caCertificatePem,
    own: {
      privateKeyPem: identity.privateKeyPem,
      certificateChainPem: identity.certificatePem,
    },
  })),
});
const key = readKey(identity.privateKeyPem);
await session.start(instantExecutor({ session: () => session, clock, key, runners: new Map() }));
process.once('SIGTERM', () => {
  const { user, system } = process.cpuUsage();
  process.stdout.write(`${JSON.stringify({ cpuMs: (user + system) / 1000 })}\n`, () => {
    process.exit(0);
  });
});
