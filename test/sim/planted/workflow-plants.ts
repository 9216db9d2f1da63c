/** Defects of runs of workflows: their loop, the engine's steps of templates, and hand-offs. */
import type { CaughtBy, Plant } from './plant.ts';

const bySimulation = { kind: 'simulation', workflows: true } as const;
const byBatches: CaughtBy = { ...bySimulation, batches: true };
const test = (file: string, name: string): CaughtBy => ({ kind: 'test', file, name });

export const workflowPlants: readonly Plant[] = [
  {
    name: 'endedRunIsRevived',
    breaks: 'W4: a run of a workflow that has ended never changes',
    file: 'controlplane/src/workflow/decide.ts',
    find: '    case WorkflowRunState.RUNNING:\n      return ofRunning(record, snapshot, host);',
    replace:
      '    case WorkflowRunState.TIMED_OUT:\n    case WorkflowRunState.CANCELLED:\n' +
      '      return ofPending(record, id, snapshot, host);\n' +
      '    case WorkflowRunState.RUNNING:\n      return ofRunning(record, snapshot, host);',
    caughtBy: { ...bySimulation, from: 5 },
  },
  {
    name: 'handOffBeforeTheAnswer',
    breaks: 'W2: what takes its runner away acts after its end is recorded',
    file: 'agent/src/runner-gateway/hand-offs.ts',
    find: "        // The control plane's answer comes first (H1).\n        return;",
    replace:
      "        link.send({ case: 'reportReceived', value: { operationId, handOff: true } });\n" +
      '        return;',
    caughtBy: { ...bySimulation, from: 60 },
  },
  {
    name: 'interruptedScriptRunsAgain',
    breaks: 'W1: what never runs twice by itself waits for a person when it was cut short',
    file: 'controlplane/src/host/run/template-steps.ts',
    find: 'return each.handOff ? RerunClass.NEVER_TWICE : (ofAgent ?? each.rerunClass);',
    replace: 'return each.handOff ? RerunClass.NEVER_TWICE : (ofAgent ?? RerunClass.SAFE);',
    caughtBy: test('controlplane/src/host/run/workflow-run.test.ts', 'waits for a person when'),
  },
  {
    name: 'retriesNotBounded',
    breaks: 'W1: a failed step is tried again as often as its template says',
    file: 'controlplane/src/host/run/step-policy.ts',
    find: 'if (step.failures < step.retries && mayRetryStep',
    replace: 'if (step.failures < 9 && mayRetryStep',
    caughtBy: { ...bySimulation, from: 136 },
  },
  {
    name: 'conditionIgnored',
    breaks: 'W3: no step runs whose condition is false',
    file: 'controlplane/src/host/run/step-start.ts',
    find: "if (step.condition !== '' && !conditionHolds(",
    replace: "if (step.condition === ' ' && !conditionHolds(",
    caughtBy: { ...bySimulation, from: 64 },
  },
  {
    name: 'handlerNotCalled',
    breaks: 'onFailure calls the handler that it names',
    file: 'controlplane/src/host/run/step-policy.ts',
    find: 'if (at === -1 || handler) return fail;',
    replace: 'if (at >= -1 || handler) return fail;',
    caughtBy: test('controlplane/src/host/run/workflow-run.test.ts', 'handler'),
  },
  {
    name: 'staleTemplate',
    breaks: 'W5: a run executes the template that was in force when it started',
    file: 'controlplane/src/workflow/snapshot.ts',
    find: '    readTemplate(store, id.templateId),',
    replace:
      '    ((globalThis as never as Record<string, never>)[`stale ${id.templateId}`] ??=\n' +
      '      readTemplate(store, id.templateId) as never) as ReturnType<typeof readTemplate>,',
    caughtBy: { ...bySimulation, from: 5 },
  },
  {
    name: 'sweepsWhatRuns',
    breaks: 'W4: the sweeper takes away no run that is open',
    file: 'controlplane/src/workflow/sweep-rules.ts',
    find: 'if (run.state !== WorkflowRunState.TIMED_OUT) return false;',
    replace:
      'if (run.state === WorkflowRunState.RUNNING) return true;\n' +
      '    if (run.state !== WorkflowRunState.TIMED_OUT) return false;',
    caughtBy: { ...bySimulation, from: 9 },
  },
  {
    name: 'oneKeyForAllCalls',
    breaks: 'W7: the key of a webhook names one call',
    file: 'controlplane/src/host/operation/calls.ts',
    find: 'id: operationId(pass, run, run.currentStep, step.attempt),',
    replace: 'id: operationId(pass, run, 0, 1),',
    caughtBy: { ...bySimulation, from: 31 },
  },
  {
    name: 'secondStartAccepted',
    breaks: 'a run of a workflow holds its host: a second one is refused with its name',
    file: 'controlplane/src/host/life/machine-tables.ts',
    find: '  workflow: noStartWhileAny,',
    replace: '  workflow: { ...noStartWhileAny, [RunKind.WORKFLOW]: accept },',
    caughtBy: test(
      'controlplane/src/host/request/workflow-start.test.ts',
      'a second start is refused',
    ),
  },
  {
    name: 'pendingRunOfAnotherHost',
    breaks: 'the fence of the host uid: a pending run never starts on who bears the name later',
    file: 'controlplane/src/workflow/decide.ts',
    find: 'if (host?.host === undefined || host.host.uid !== hostUid)',
    replace: "if (host?.host === undefined || hostUid === '')",
    caughtBy: test('controlplane/src/workflow/decide.test.ts', 'a run goes with its host'),
  },
  {
    name: 'keyMadeAnew',
    breaks: 'W6: nothing is called but what stands in the record, under its id',
    file: 'controlplane/src/workflow/webhook.ts',
    find: "const own = { 'idempotency-key': id,",
    replace: "const own = { 'idempotency-key': `${id}/again`,",
    caughtBy: { ...bySimulation, from: 9 },
  },
  {
    name: 'pendingForEver',
    breaks: 'no pending run outlives its deadline, whatever it waits for',
    file: 'controlplane/src/workflow/decide.ts',
    find: 'if (hasPassed(run.deadline, snapshot.nowMs)) {',
    replace: 'if (run.deadline === undefined) {',
    caughtBy: test(
      'controlplane/src/workflow/decide.test.ts',
      'a pending run ends by its deadline',
    ),
  },
  {
    name: 'endNeverSeen',
    breaks: 'W8: a run of a workflow ends when the run of the host that carries it does',
    file: 'controlplane/src/workflow/decide.ts',
    find: 'return carrier.phase === RunPhase.ENDED ? write(',
    replace: 'return carrier.phase === undefined ? write(',
    caughtBy: { ...bySimulation, from: 4 },
  },
  {
    name: 'beginsUnasked',
    breaks: 'W9: what took long to prepare asks for the work lease of that moment (R11)',
    file: 'packages/runner/src/steps/command.ts',
    find: 'const end = await context.requestBegin();',
    replace: "const end = await Promise.resolve({ kind: 'granted' as const, reason: '' });",
    caughtBy: test(
      'packages/runner/src/steps/command.test.ts',
      'never begins when the question ends',
    ),
  },
  {
    name: 'turnsWithoutCounting',
    breaks: 'B1: never more hosts of a batch than may have a slot at once',
    file: 'controlplane/src/workflow/batch-rules.ts',
    find: 'const free = Math.max(0, (spec?.maxParallel ?? 1) - started);',
    replace: 'const free = Math.max(0, spec?.maxParallel ?? 1) + started * 0;',
    caughtBy: { ...byBatches, from: 3 },
  },
  {
    name: 'secondTurn',
    breaks: 'B2: a batch gives a host one run',
    file: 'controlplane/src/workflow/batch-slot.ts',
    find: "return entry.run !== '' || (workflow !== undefined && isKnown(workflow));",
    replace:
      'return workflow !== undefined && (isOpen(runOf(workflow, batch)) || ' +
      "(isKnown(workflow) && entry.run === 'none'));",
    caughtBy: byBatches,
  },
  {
    name: 'failureCountsAsSuccess',
    breaks: 'B3: a host of a batch ends as its run did',
    file: 'controlplane/src/workflow/batch-rules.ts',
    find: "host.state = FAILED;\n      host.message = cut(run.error?.message ?? 'its run",
    replace: "host.state = SUCCEEDED;\n      host.message = cut(run.error?.message ?? 'its run",
    caughtBy: test('controlplane/src/workflow/batch-rules.test.ts', 'a host whose run ended as'),
  },
  {
    name: 'turnsAfterTheStop',
    breaks: 'B4: nobody gets a slot once a batch has failed as often as it may',
    file: 'controlplane/src/workflow/batch-rules.ts',
    find: "if (giving.kind === 'goesOn') giveSlots(batch, isBusy);",
    replace: 'giveSlots(batch, isBusy);',
    caughtBy: { ...byBatches, from: 11 },
  },
  {
    name: 'stoppedNeverOver',
    breaks: 'B5: a batch that was stopped ends',
    file: 'controlplane/src/workflow/batch-rules.ts',
    find: 'if (!isMoving && !isWaiting) status.endTime',
    replace: "if (!isMoving && !isWaiting && batch.name === '') status.endTime",
    caughtBy: { ...byBatches, from: 8 },
  },
  {
    name: 'ownProgramAfterErasure',
    breaks: 'C2: no program of the site’s own runs on disks that its clean has erased',
    file: 'controlplane/src/steps/plan.ts',
    find: '  if (late.length === 0) return byPriority;',
    replace: '  if (late.length >= 0) return byPriority;',
    caughtBy: { ...bySimulation, from: 13 },
  },
  {
    name: 'noBootBeforeErasure',
    breaks: 'C2: no disk is erased in a boot in which a program of the site’s own ran',
    file: 'controlplane/src/host/run/render.ts',
    find: "  if (found?.source !== 'fleet' || erasure === -1) return false;",
    replace: "  if (found?.source === 'fleet' || erasure === -1) return false;",
    caughtBy: { ...bySimulation, from: 13 },
  },
];
