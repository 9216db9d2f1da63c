/** Defects of the rack's agent: journal, outbox, lease, and what it does to machines. */
import type { CaughtBy, Plant } from './plant.ts';

const bySimulation: CaughtBy = { kind: 'simulation' };
const test = (file: string, name: string): CaughtBy => ({ kind: 'test', file, name });

export const agentPlants: readonly Plant[] = [
  {
    name: 'journalNotAwaited',
    breaks: 'R4: an intent is durable before anything destructive begins',
    file: 'agent/src/journal/journal.ts',
    find: 'await file.append(frame);',
    replace: 'void file.append(frame).catch(() => undefined);',
    caughtBy: test('agent/src/journal/journal.test.ts', 'R4: rejects when the disk does'),
  },
  {
    name: 'intentNotJournalled',
    breaks: 'R4: an intent is journalled before anything destructive begins',
    file: 'agent/src/session/attempt-context.ts',
    find: "await durably(attempt, deps, () => journal.append({ case: 'begun', value: { operationId } }));",
    replace: 'void journal; void operationId;',
    caughtBy: bySimulation,
  },
  {
    name: 'begunRunsAgain',
    breaks: 'R4: what had begun when the agent died is never repeated by itself',
    file: 'agent/src/session/attempts.ts',
    find: "if (operation.kind.case !== 'runStep' && operation.kind.case !== 'inspect') {",
    replace: 'attempt.begun = false;\n    if (Date.now() > 0) return this.#start(attempt);\n    {',
    caughtBy: test('agent/src/session/crash.test.ts', 'no operation begins twice'),
  },
  {
    name: 'knownIdRunsAgain',
    breaks: 'R3: an id that is known is answered from the journal',
    file: 'agent/src/session/attempts.ts',
    find: 'if (known !== undefined) return this.#again(known);',
    replace: 'void known;',
    caughtBy: bySimulation,
  },
  {
    name: 'reportNotKept',
    breaks: 'R7: a final report is kept until it is answered',
    file: 'agent/src/session/outbox.ts',
    find: '      await this.#write(attempt);\n    }\n    attempt.phase',
    replace: '    }\n    attempt.phase',
    caughtBy: bySimulation,
  },
  {
    name: 'leaseFromTheAnswer',
    breaks: 'R11: a lease runs from when the heartbeat was sent',
    file: 'agent/src/session/work-lease.ts',
    find: 'this.#endMs = sentAtMs + Math',
    replace: 'this.#endMs = this.#clock.suspendAwareMs() + Math',
    caughtBy: test('agent/src/session/session.test.ts', 'runs from the sending'),
  },
  {
    name: 'leaseOnlyAtReceipt',
    breaks: 'R11: the lease is checked directly before each destructive begin',
    file: 'agent/src/session/attempt-context.ts',
    find: '  // Writing took time; nothing has been touched yet (C2).\n  await mayGoOn(attempt, deps);',
    replace: '',
    caughtBy: test('agent/src/session/session.test.ts', 'a slow disk begins nothing late'),
  },
  {
    name: 'leaseNeverEnds',
    breaks: 'R11: without a lease nothing destructive begins',
    file: 'agent/src/session/work-lease.ts',
    find: 'return this.#clock.suspendAwareMs() < this.#endMs;',
    replace: 'return this.#endMs > 0;',
    caughtBy: test('agent/src/session/session.test.ts', 'runs out while the machine is suspended'),
  },
  {
    name: 'twoExclusive',
    breaks: 'R12: while an exclusive operation may run, another one is answered locked',
    file: 'agent/src/session/attempts.ts',
    find: 'return other === undefined ? undefined : locked(other.id);',
    replace: 'return undefined;',
    caughtBy: test('agent/src/session/operations.test.ts', '.'),
  },
  {
    name: 'grantWithoutPowerOn',
    breaks: 'a boot grant is open only for a boot that this agent has ordered',
    file: 'agent/src/operations/set-power.ts',
    find: 'await context.begin();\n  await prepareGrant(request, context);',
    replace: 'await context.begin();',
    caughtBy: test('agent/src/operations/operations.test.ts', '.'),
  },
  {
    name: 'grantBeforeTheIdentity',
    breaks: 'a BMC that is not the expected one is told nothing',
    file: 'agent/src/operations/set-power.ts',
    find: 'if (difference !== undefined) {',
    replace: 'if (difference === "") {',
    caughtBy: test('agent/src/operations/operations.test.ts', '.'),
  },
  {
    name: 'freezeIgnoredByTheAgent',
    breaks: 'R11: a frozen rack begins nothing destructive within one lease period',
    file: 'agent/src/session/work-lease.ts',
    find: "return this.#frozen === '' && this.#runs();",
    replace: 'return this.#runs();',
    caughtBy: test('agent/src/session/session.test.ts', 'ends as frozen'),
  },
];
