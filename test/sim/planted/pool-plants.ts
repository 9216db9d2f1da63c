/** Defects of deployments and pools: slots, proofs, the ledger, the threshold, claims. */
import type { CaughtBy, Plant } from './plant.ts';

const bySimulation = { kind: 'simulation', pools: true } as const;
const test = (file: string, name: string): CaughtBy => ({ kind: 'test', file, name });
const seeded = (from: number): CaughtBy => ({ ...bySimulation, from });

export const poolPlants: readonly Plant[] = [
  {
    name: 'slotForgotten',
    breaks: 'P6: a slot is given back only by what its host’s record says',
    file: 'controlplane/src/pool/slots.ts',
    find: 'if (run.phase !== RunPhase.ENDED) return true;',
    replace: 'if (run.phase !== RunPhase.ENDED) return run.waiting === undefined;',
    caughtBy: seeded(103),
  },
  {
    name: 'poolOverwritten',
    breaks: 'P9: the record of a pool is changed by compare-and-set',
    file: 'controlplane/src/pool/loop.ts',
    find: 'const written = await writeShared(this.#deps, schema, key, step.record, kept.revision);',
    replace:
      'const now = (await readShared(this.#deps.store, schema, key))?.revision ?? kept.revision;\n' +
      '    const written = await writeShared(this.#deps, schema, key, step.record, now);',
    caughtBy: seeded(102),
  },
  {
    name: 'oneMoreOut',
    breaks: 'P6: no more slots at once than hosts may be out',
    file: 'controlplane/src/pool/survey.ts',
    find: 'if (this.#slots >= max)',
    replace: 'if (this.#slots > max)',
    caughtBy: seeded(115),
  },
  {
    name: 'illHostsNotCounted',
    breaks: 'P1: a host in service is taken only while fewer than may be are out for any reason',
    file: 'controlplane/src/pool/survey.ts',
    find: 'if (this.count >= max) return',
    replace: 'if (this.count >= max + 9) return',
    caughtBy: test('controlplane/src/pool/rollout.test.ts', 'out for another reason counts'),
  },
  {
    name: 'proofNotAwaited',
    breaks: 'P2: a host is in service once it has said so itself',
    file: 'agent/src/operations/await-image.ts',
    find: 'if (deployment.deploy?.proof === DeployProof.POWER_ON) return',
    replace: 'if (deployment.deploy?.proof !== DeployProof.UNSPECIFIED - 1) return',
    caughtBy: seeded(103),
  },
  {
    name: 'olderProofAccepted',
    breaks: 'P2: a proof is of the deployment that it names, and of no later one',
    file: 'agent/src/deploy/proofs.ts',
    find: 'return this.#parts.journal.state.proved.get(hostUid)?.deploymentId === deploymentId;',
    replace: 'return this.#parts.journal.state.proved.get(hostUid) !== undefined;',
    caughtBy: seeded(107),
  },
  {
    name: 'toldBeforeTheProof',
    breaks: 'P3: the ledger tells of hosts that have proved themselves',
    file: 'controlplane/src/pool/slots.ts',
    find: '  slot.state = RUNNING;\n  slot.run = run.number;',
    replace:
      '  slot.state = RUNNING;\n  slot.run = run.number;\n' +
      '  draft.deployments.push(deploymentOf(draft.record, slot));',
    caughtBy: seeded(103),
  },
  {
    name: 'everyFailureCounts',
    breaks: 'P7: only hosts that have lost their image by it count for the threshold',
    file: 'controlplane/src/pool/slots.ts',
    find: 'fail(draft, slot, { message, counted: hasLeft(run) });',
    replace: 'fail(draft, slot, { message, counted: true });',
    caughtBy: seeded(181),
  },
  {
    name: 'haltIgnored',
    breaks: 'P7: so many failed hosts stop the rollout',
    file: 'controlplane/src/pool/survey.ts',
    find: 'if (!isBack && failedCount >= threshold) {',
    replace: 'if (!isBack && failedCount >= threshold + 9) {',
    caughtBy: test('controlplane/src/pool/rollout.test.ts', 'R11'),
  },
  {
    name: 'actsWithoutClaim',
    breaks: 'P5: a pool acts only on hosts whose claim it holds',
    file: 'controlplane/src/pool/survey.ts',
    find: "if (host.claimedBy !== record.pool?.name) return stands('unclaimed'",
    replace: "if (host.claimedBy === '') return stands('unclaimed'",
    caughtBy: seeded(103),
  },
  {
    name: 'untouchedHeldForIll',
    breaks: 'P10: a host whose failed reimage has written nothing is in service as before',
    file: 'controlplane/src/host/events/landing.ts',
    find: 'if (isBack) setFault(turn, type, cause, anySuccess, FaultSeverity.WARNING);',
    replace: 'if (isBack) setFault(turn, type, cause, anySuccess);',
    caughtBy: test(
      'controlplane/src/host/deployment/untouched-disk.test.ts',
      'that was not written',
    ),
  },
  {
    name: 'untouchedLeftOff',
    breaks: 'P10: a host whose failed reimage has written nothing is switched on again',
    file: 'controlplane/src/host/events/landing.ts',
    find: "if (disk === 'lost') return ['power.off'];",
    replace: "if (disk !== 'whole') return ['power.off'];",
    caughtBy: test(
      'controlplane/src/host/deployment/untouched-disk.test.ts',
      'that was not written',
    ),
  },
  {
    name: 'untouchedImageForgotten',
    breaks: 'P10: a host whose failed reimage has written nothing keeps its image in its status',
    file: 'controlplane/src/host/deployment/deployment.ts',
    find: 'if (isUntouched(result)) replaced.attemptOpen = false;',
    replace: 'if (!isUntouched(result)) replaced.attemptOpen = false;',
    caughtBy: test(
      'controlplane/src/host/deployment/untouched-disk.test.ts',
      'that was not written is warned',
    ),
  },
  {
    name: 'hostsCountedTwice',
    breaks: 'P4: the history counts different hosts',
    file: 'controlplane/src/pool/history.ts',
    find: 'hostCount: hostsOf(group),',
    replace: 'hostCount: group.length,',
    caughtBy: test('controlplane/src/pool/rollout.test.ts', 'H1, H3'),
  },
  {
    name: 'goneHostCountedTwice',
    breaks: 'P4: what an entry for many has taken in counts once, whoever dies meanwhile',
    file: 'controlplane/src/pool/ledger-folding.ts',
    find: '!facts.hostUids.has(uid) && !here.has(uid)',
    replace: '!facts.hostUids.has(uid) && here.size >= 0',
    caughtBy: test('controlplane/src/pool/ledger-folding.test.ts', 'L1, L2'),
  },
  {
    name: 'queueTimeCounted',
    breaks: 'R5: what an order waits for its turn is no time of its step',
    file: 'controlplane/src/host/deployment/image-turn.ts',
    find: 'step.deadline = later(turn, timing.imageTimeoutMs + agentWordMs);',
    replace: 'step.deadline = slot.sendTime && later(turn, agentWordMs);',
    caughtBy: test('controlplane/src/host/deployment/deployment.test.ts', 'a step’s time begins'),
  },
];
