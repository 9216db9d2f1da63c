/** Defects of the control plane: the host machine, its shell, and the agents' sessions. */
import type { CaughtBy, Plant } from './plant.ts';

const bySimulation: CaughtBy = { kind: 'simulation' };
const test = (file: string, name: string): CaughtBy => ({ kind: 'test', file, name });

export const controlPlants: readonly Plant[] = [
  {
    name: 'answersEarly',
    breaks: 'R7: applied means durable',
    file: 'controlplane/src/agents/reports/reports.ts',
    find: ': hosts.report(hostId, report);',
    replace:
      ': ((this.#deps as never as { clock: { after(ms: number, act: () => void): void } })\n' +
      '          .clock.after(2_000, () => void hosts.report(hostId, report).catch(() => 0)),\n' +
      "          Promise.resolve({ kind: 'kept', verdict: { kind: 'applied' } } as never));",
    caughtBy: bySimulation,
  },
  {
    name: 'sendsBeforeItIsStored',
    breaks: 'R3: an operation is in the record before it is sent',
    file: 'controlplane/src/host/shell/reconcile.ts',
    find: '      const revision = await this.#write(key,',
    replace:
      "      for (const e of outcome.effects) if (e.kind === 'send') await this.#performing.perform(hostId, found.record, e);\n" +
      '      const revision = await this.#write(key,',
    caughtBy: test('controlplane/src/agents/hello/hello.test.ts', 'sent again under its id'),
  },
  {
    name: 'cleansWhatIsHeld',
    breaks: 'what may keep a host from its clean is judged before the clean takes a boot over',
    file: 'controlplane/src/host/life/shared-boot.ts',
    find: ' || holdOf(turn, HoldScope.WORK) !== undefined',
    replace: '',
    caughtBy: test('controlplane/src/host/life/shared-boot.test.ts', 'a person holds it'),
  },
  {
    name: 'erasesByTheLookBefore',
    breaks: 'nothing is erased by what another run saw',
    file: 'controlplane/src/host/life/shared-boot.ts',
    find: 'run.steps.slice(0, intoRunner.length)',
    replace: 'run.steps.slice(0, intoRunner.length + 1)',
    caughtBy: test('controlplane/src/host/life/shared-boot.test.ts', 'what the clean itself sees'),
  },
  {
    name: 'listingWithAHole',
    breaks: 'F1 of following: whoever follows the store misses nothing',
    file: 'controlplane/src/following/following.ts',
    find: 'listing.before < joined.since || ',
    replace: '',
    caughtBy: test('controlplane/src/following/following.test.ts', 'is not believed'),
  },
  {
    name: 'viewMissesADelete',
    breaks: 'V1: the fleet view is what the store has',
    file: 'controlplane/src/fleet-view/fleet-view.ts',
    find: '      else this.#rows.take(hostId, revision);',
    replace: '',
    caughtBy: { kind: 'simulation', views: true, rule: 'V1' },
  },
  {
    name: 'viewTellsNotWhatItMissed',
    breaks: 'who listens to the fleet view hears of every row that differs from before',
    file: 'controlplane/src/fleet-view/fleet-view.ts',
    find: 'if (this.#listeners.size > 0) this.#tellDifferences(before, rows);',
    replace: '',
    caughtBy: test('controlplane/src/fleet-view/fleet-view.test.ts', 'what the watch has missed'),
  },
  {
    name: 'poolPassReadsTheFleet',
    breaks: 'a pass over a pool costs what its hosts cost',
    file: 'controlplane/src/pool/shell/snapshot.ts',
    find: '    fleetView.caughtUp(),\n',
    replace: "    fleetView.caughtUp(),\n    store.list('hosts'),\n",
    caughtBy: test('controlplane/src/pool/shell/cost.test.ts', 'costs the same'),
  },
  {
    name: 'staleIndex',
    breaks: 'V1: each index names exactly the rows whose field has that value',
    file: 'controlplane/src/fleet-view/rows.ts',
    find: 'for (const value of indexed[field](row)) this.#indexes[field].delete(value, row.hostId);',
    replace: '',
    caughtBy: { kind: 'simulation', views: true, rule: 'V1' },
  },
  {
    name: 'driftingCount',
    breaks: 'V1: counts count the rows',
    file: 'controlplane/src/fleet-view/rows.ts',
    find: 'this.#tally.count(row, -1);',
    replace: '',
    caughtBy: { kind: 'simulation', views: true, rule: 'V1' },
  },
  {
    name: 'lateReadTakesThePlace',
    breaks: 'a decoded record is the one of exactly this write, and the newest stays',
    file: 'controlplane/src/records/decoded.ts',
    find: 'if (before !== undefined && before.revision > decoded.revision) return;',
    replace: '',
    caughtBy: test('controlplane/src/records/decoded.test.ts', 'does not take the place'),
  },
  {
    name: 'writesWithoutAChange',
    breaks: 'R2: what has not changed is not written',
    file: 'controlplane/src/host/shell/reconcile.ts',
    find: 'if (sameMessage(before, outcome.record)) return revision;',
    replace: '',
    caughtBy: bySimulation,
  },
  {
    name: 'retryUnderTheOldId',
    breaks: 'an operation id names one attempt',
    file: 'controlplane/src/host/run/engine.ts',
    find: '  step.attempt += 1;\n  delete step.deadline;',
    replace: '  delete step.deadline;',
    caughtBy: bySimulation,
  },
  {
    name: 'terminalRunMoves',
    breaks: 'H3: a run that has ended never changes again',
    file: 'controlplane/src/host/turn/turn.ts',
    find: 'status.run !== undefined && status.run.phase !== RunPhase.ENDED ? status.run : undefined;',
    replace: 'status.run;',
    caughtBy: bySimulation,
  },
  {
    name: 'resultOfAnotherAttempt',
    breaks: 'H3, R7: only a result of the present attempt moves the run',
    file: 'controlplane/src/host/events/fold.ts',
    find: 'return turn.record.operation?.operation?.id === operationId ? { run, step } : undefined;',
    replace: 'return turn.record.operation === undefined ? undefined : { run, step };',
    caughtBy: test('controlplane/src/host/promises.test.ts', 'a result of an earlier attempt'),
  },
  {
    name: 'redeliveryCountsTwice',
    breaks: 'R7: a report that comes again changes nothing',
    file: 'controlplane/src/host/events/fold.ts',
    find: '  if (before !== undefined) return before;',
    replace:
      '  if (before !== undefined) {\n' +
      '    if (turn.status.backoff !== undefined) turn.status.backoff.failures += 1;\n' +
      '    return before;\n  }',
    caughtBy: test('controlplane/src/host/promises.test.ts', 'delivered twice counts once'),
  },
  {
    name: 'hostUidIgnored',
    breaks: 'the fence of the host uid: who bears a name later holds nothing of its predecessor',
    file: 'controlplane/src/host/fleet/reservations.ts',
    find: '    if (kept?.record.holderUid !== uid) return false;',
    replace: '    if (kept === undefined || uid === "") return false;',
    caughtBy: test('controlplane/src/host/fleet/reservations.test.ts', 'bears the name'),
  },
  {
    name: 'sentToDropped',
    breaks: 'R9: what went to a journal that is lost is never sent again',
    file: 'controlplane/src/host/operation/operation.ts',
    find: "  if (!descends(journal, sentTo)) return 'lost';",
    replace: '',
    caughtBy: test('controlplane/src/host/machine.test.ts', 'R9: an operation sent'),
  },
  {
    name: 'conflictClearsTheError',
    breaks: 'a conflict neither clears nor adds an error',
    file: 'controlplane/src/host/events/fold.ts',
    find: '  const first = slot?.firstConflictTime ?? now(turn);',
    replace:
      '  delete turn.status.lastError;\n  const first = slot?.firstConflictTime ?? now(turn);',
    caughtBy: test('test/scenarios/lifecycle.test.ts', 'metal3-23'),
  },
  {
    name: 'deadlineBeforeHello',
    breaks: 'R5: silence alone never fails a run',
    file: 'controlplane/src/host/operation/operation.ts',
    find: 'if (session === undefined || session.awaitsReport) return false;',
    replace: 'if (session === undefined || session.awaitsReport) return true;',
    caughtBy: test('controlplane/src/host/events/deadlines.test.ts', '.'),
  },
  {
    name: 'neverTwiceRunsAgain',
    breaks: 'R4: a neverTwice step that was cut short waits for a person',
    file: 'controlplane/src/host/run/engine.ts',
    find: '  if (step.rerunClass === RerunClass.NEVER_TWICE) {\n    holdForPerson(turn, run, step, failure);',
    replace:
      '  if (step.rerunClass === RerunClass.NEVER_TWICE) {\n    retryStep(turn, run, step, {}, {});',
    caughtBy: test('controlplane/src/host/promises.test.ts', 'must never run twice'),
  },
  {
    name: 'identityGuardSkipped',
    breaks: 'guard 0: nothing is erased on a machine that is not the right one',
    file: 'controlplane/src/host/erasure/device-plan.ts',
    find: '  if (wrongMachine !== undefined) return wrongMachine;',
    replace: '',
    caughtBy: test('controlplane/src/host/erasure/erasure-rules.test.ts', 'guard 0'),
  },
  {
    name: 'erasesWhatIsNotInScope',
    breaks: 'no device is written that is not in the plan',
    file: 'controlplane/src/host/erasure/device-plan.ts',
    find: "decisions.filter((decision) => decision.kind === 'inScope');",
    replace:
      "decisions.filter((decision) => decision.kind !== 'refused') as never as { device: never; method: never; kind: 'inScope' }[];",
    caughtBy: test('controlplane/src/host/promises.test.ts', 'out of scope'),
  },
  {
    name: 'keptAvailable',
    breaks: 'a host that was switched on without an order is not available any more',
    file: 'controlplane/src/host/turn/transitions.ts',
    find: "  used: notAvailable({ disks: 'dirty', use: 'next' }),",
    replace: "  used: everywhere({ disks: 'dirty', use: 'next' }),",
    caughtBy: test('controlplane/src/host/events/observe.test.ts', '.'),
  },
  {
    name: 'anyOrderOfTheRunCounts',
    breaks: 'a host that somebody else switches on while a clean holds it off is not clean',
    file: 'controlplane/src/host/erasure/use.ts',
    find: '  if (latest === undefined) return false;\n  if (latest.name !== engineSteps.off)',
    replace:
      '  if (latest === undefined) return false;\n' +
      '  const all = activeRun(turn.status)?.steps ?? [];\n' +
      '  if (all.some(({ name, attempt }) => switchesOn(name) && attempt > 0)) return true;\n' +
      '  if (latest.name !== engineSteps.off)',
    caughtBy: test('controlplane/src/host/erasure/use.test.ts', 'while the list holds it off'),
  },
  {
    name: 'certifiedWithoutReadBack',
    breaks: 'exit codes are not evidence',
    file: 'controlplane/src/host/erasure/certify.ts',
    find: "  if (verdict.kind !== 'erased') {",
    replace: "  if (verdict.kind === 'notErased') {",
    caughtBy: test('controlplane/src/host/promises.test.ts', 'whose reading proved nothing'),
  },
  {
    name: 'exitCodeTrusted',
    breaks: 'exit codes are not evidence: the blocks that were read are',
    file: 'packages/erasure/src/verdict.ts',
    find: '    proof ??= judge(offset, bytes);',
    replace: '    proof ??= judge(offset, new Uint8Array(bytes.length));',
    caughtBy: test('packages/runner/src/erase/step.test.ts', 'a disk that lies about its '),
  },
  {
    name: 'anotherUseEpoch',
    breaks: 'a certificate counts only for its own use epoch',
    file: 'controlplane/src/host/erasure/certify.ts',
    find: '.filter((each) => each.useEpoch === turn.status.useEpoch)',
    replace: '.filter((each) => each.useEpoch <= turn.status.useEpoch)',
    caughtBy: test('controlplane/src/host/promises.test.ts', 'certificates of an earlier use'),
  },
  {
    name: 'leaseWithoutStoreAccess',
    breaks: 'R11: a replica renews only after its own store access has succeeded',
    file: 'controlplane/src/agents/stream/rack-session.ts',
    find: '    const asOf = await readForRenewal(store, this.#rackId);',
    replace:
      "    const early = { heartbeatSequence: heartbeat.sequence, durationMs: timing.leaseDurationMs };\n    this.#sink.send({ case: 'leaseRenewal', value: create(agent.LeaseRenewalSchema, early) });\n    const asOf = await readForRenewal(store, this.#rackId);",
    caughtBy: test('controlplane/src/agents/stream/sessions.test.ts', 'unless the store is away'),
  },
  {
    name: 'busyDeleteWrites',
    breaks: 'a refused request leaves the record byte for byte as it was',
    file: 'controlplane/src/host/shell/reconcile.ts',
    find: "      if (outcome.kind === 'refused') {\n",
    replace:
      "      if (outcome.kind === 'refused') {\n" +
      '        const refused = { ...found.record, requestIds: [...found.record.requestIds, String(found.revision)] };\n' +
      '        await writeShared(this.#deps, wire.HostRecordSchema, key, refused, found.revision);\n',
    caughtBy: bySimulation,
  },
  {
    name: 'requestActsTwice',
    breaks: 'a request id that comes again acts once',
    file: 'controlplane/src/host/machine.ts',
    find: 'if (hasApplied(turn.record, event.by.requestId)) return undefined;',
    replace: "if (event.by.requestId === ' ') return undefined;",
    caughtBy: test('controlplane/src/host/machine.test.ts', 'repeated request id'),
  },
  {
    name: 'powerWhileARunHolds',
    breaks: 'no power command while a run other than verify holds the host',
    file: 'controlplane/src/host/life/machine-tables.ts',
    find: '  ...whileAny(noPower),\n  [RunKind.VERIFY]: accept,',
    replace: '  ...whileAny(accept),\n  [RunKind.VERIFY]: accept,',
    caughtBy: test(
      'controlplane/src/host/machine.test.ts',
      'a power request during a clean is refused',
    ),
  },
  {
    name: 'heldHostStarts',
    breaks: 'nothing new starts on a held host',
    file: 'controlplane/src/host/machine.ts',
    find: '  if (holdOf(turn, HoldScope.WORK) !== undefined) return false;',
    replace: '',
    caughtBy: test('controlplane/src/host/life/holds.test.ts', '.'),
  },
  {
    name: 'forceReadTooEarly',
    breaks: 'force is read when something is decided: an upgrade during a hanging call counts',
    file: 'controlplane/src/host/deletion/deletion.ts',
    find: '  const mode = request.mode === DeletionMode.FORCE ?',
    replace:
      '  const begun = turn.status.run?.kind === 4 && turn.status.run.endTime === undefined;\n' +
      '  const mode = request.mode === DeletionMode.FORCE && !begun ?',
    caughtBy: test('controlplane/src/host/run/forced.test.ts', 'an upgrade to force'),
  },
  {
    name: 'tombstoneLost',
    breaks: 'what an agent has still to forget is kept until it says that it has',
    file: 'controlplane/src/host/fleet/tombstones.ts',
    find: '    if (!rack.tombstones.includes(uid)) rack.tombstones.push(uid);',
    replace: '    if (rack.tombstones.length > 1e9) rack.tombstones.push(uid);',
    caughtBy: test('controlplane/src/host/fleet/removal.test.ts', '.'),
  },
  {
    name: 'freezeNotTold',
    breaks: 'R11: a freeze stands in the next renewal of every lease',
    file: 'controlplane/src/agents/hello/renewal.ts',
    find: 'frozen: whyNothingDestructive(rack?.record, fleet?.record).slice(0, frozenCharsMax),',
    replace: "frozen: '',",
    caughtBy: test('controlplane/src/host/shell/brakes.test.ts', 'next renewal of the lease'),
  },
  {
    name: 'planNotCompared',
    breaks: 'a start by plan is refused when what it would do has changed',
    file: 'controlplane/src/host/foresee/plan-check.ts',
    find: '  if (now.plan.hash !== kept.plan?.hash)',
    replace: '  if (now.plan.hash === "")',
    caughtBy: test('controlplane/src/host/api/plans.test.ts', 'after a disk was swapped'),
  },
  {
    name: 'plannedDisksNotCompared',
    breaks: 'a run that was started by a plan erases no disk that the plan does not name',
    file: 'controlplane/src/host/erasure/device-plan.ts',
    find: '  if (lost.length === 0 && added.length === 0) return undefined;',
    replace: '  if (lost.length + added.length < 1e9) return undefined;',
    caughtBy: test('controlplane/src/host/foresee/foresee.test.ts', 'meets another disk'),
  },
  {
    name: 'plansOutliveTheirHost',
    breaks: 'a host made anew under the same name inherits nothing',
    file: 'controlplane/src/plan/plans.ts',
    find: "  return storeKey('plans', hostUid, hash);",
    replace: "  return storeKey('plans', hostUid.slice(0, 0) + 'any', hash);",
    caughtBy: test('controlplane/src/host/api/plans.test.ts', 'made anew under the same name'),
  },
  {
    name: 'adviceThatMovesNothing',
    breaks: 'doing what explain says makes a run move',
    file: 'controlplane/src/host/request/request.ts',
    find: '  delete record.call?.notBefore;',
    replace: '',
    caughtBy: test('controlplane/src/host/explain/waiting.test.ts', 'a run that waits for'),
  },
  {
    name: 'deadlineOfEachAttempt',
    breaks: 'no attempt moves the deadline of a shutdown later',
    file: 'controlplane/src/host/operation/shutdown.ts',
    find: 'isPending(known) ? known : {};',
    replace: '{};\n  void known;',
    caughtBy: test(
      'controlplane/src/host/operation/shutdown.test.ts',
      'the deadline stays where it was',
    ),
  },
];
